//! I4: each destructive request names the UID of what it is about, and writes to a Node name the version that was decided on.

use palisade_cluster::api::wire::Call;
use palisade_cluster::api::{Kind, Verb};

use super::{Seen, ours};

pub(super) fn call(seen: &mut Seen, call: &Call) {
    if !ours(call.actor.name()) {
        return;
    }
    let destroys = matches!(call.kind, Some(Kind::POD | Kind::NODE | Kind::VOLUME_ATTACHMENT));
    match call.verb {
        Verb::Delete if destroys && !call.guard.uid => {
            seen.broken(format!("I4: `{call}` names no UID"));
        }
        // What was decided on is what is marked: a pod that has changed since is looked at again.
        Verb::Delete if call.kind == Some(Kind::POD) && !call.guard.at_once && !call.guard.version => {
            seen.broken(format!("I4: `{call}` marks a pod, and names no version"));
        }
        Verb::DeleteCollection => seen.broken(format!("I4: `{call}` deletes without looking")),
        Verb::Patch | Verb::Update if call.kind == Some(Kind::NODE) && !(call.guard.uid && call.guard.version) => {
            seen.broken(format!("I4: `{call}` names no UID or no version"));
        }
        _ => {}
    }
}
