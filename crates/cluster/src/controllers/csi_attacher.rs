//! The CSI attacher: turns VolumeAttachments into calls of the storage system.
//!
//! Promise: an attachment has its finalizer before the storage system is asked, and loses it only when the storage
//! system said that the volume is no longer published. An error is written into the attachment and tried again.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::WorkQueue;
use crate::{
    api::{Change, Key, Kind, metadata},
    clock::seconds,
    nature::{Actor, Ctx, Hears, fetch},
    objects::{flag, list_at, text},
    truth::Name,
    volumes,
};

/// `--retry-interval-start` and `--retry-interval-max`.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_LIMIT: Duration = Duration::from_mins(5);
const FINALIZER: &str = "external-attacher/csi-cluster-palisade-dev";

/// The controller.
#[derive(Default)]
pub(crate) struct CsiAttacher {
    queue: WorkQueue,
    /// Calls on their way, and those that wait for their next try.
    calls: BTreeMap<Key, Call>,
}

struct Call {
    /// When the storage system answers.
    answers_at: Duration,
    /// How long to wait after an error.
    backoff: Duration,
}

impl CsiAttacher {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::VOLUME_ATTACHMENT]);
}

impl Actor for CsiAttacher {
    fn notice(&mut self, change: &Change) -> bool {
        let ours = [&change.old, &change.new].into_iter().flatten().any(|attachment| is_ours(attachment));
        ours && change.by.name() != "csi-attacher" && self.queue.add(change.key.clone())
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        for (key, attachment) in fetch(ctx.api, &self.queue.take(Kind::VOLUME_ATTACHMENT, ctx)) {
            if !is_ours(&attachment) {
                continue;
            }
            let attached = flag(&attachment, "/status/attached");
            if metadata::is_deleting(&attachment) || !attached {
                hold(&key, &attachment, ctx);
                // A call that is on its way is not sent twice.
                let answers_at = ctx.now + ctx.dice.millis(200, 1_200);
                self.calls.entry(key).or_insert(Call { answers_at, backoff: RETRY });
            }
        }
        let due: Vec<Key> =
            self.calls.iter().filter(|(_, call)| call.answers_at <= ctx.now).map(|(key, _)| key.clone()).collect();
        for key in due {
            let Some(call) = self.calls.remove(&key) else { continue };
            if let Some(attachment) = ctx.api.get(&key) {
                self.answered(&key, &attachment, &call, ctx);
            }
        }
        self.calls.values().map(|call| call.answers_at.saturating_sub(ctx.now)).min()
    }
}

/// Other drivers have attachers of their own.
fn is_ours(attachment: &Value) -> bool {
    text(attachment, "/spec/attacher") == volumes::DRIVER
}

impl CsiAttacher {
    fn answered(&mut self, key: &Key, attachment: &Value, call: &Call, ctx: &mut Ctx<'_>) {
        let node = Name::from(text(attachment, "/spec/nodeName"));
        let pv = Key::cluster(Kind::PERSISTENT_VOLUME, text(attachment, "/spec/source/persistentVolumeName"));
        let volume = ctx.api.read(|store| volumes::of_pv(store, store.get(&pv)?));
        let deleting = metadata::is_deleting(attachment);
        let answer = match volume {
            // Without a volume there is nothing to unpublish, and nothing to publish.
            None if deleting => Ok(()),
            None => Err(format!("could not find PersistentVolume {}", pv.name)),
            Some(volume) if deleting => ctx.truth.act(|world| world.unpublish(&volume.handle, &node)),
            Some(volume) => ctx.truth.act(|world| world.publish(&volume.handle, &node)),
        };
        let error = answer.err().map(|message| json!({"message": message, "time": seconds(ctx.api.now())}));
        if error.is_some() {
            let answers_at = ctx.now + call.backoff;
            self.calls.insert(key.clone(), Call { answers_at, backoff: (call.backoff * 2).min(RETRY_LIMIT) });
        }
        // Deleted meanwhile: the next look takes it from there.
        drop(ctx.api.update(key, |attachment| tell(attachment, deleting, error)));
        if ctx.api.get(key).is_some_and(|now| metadata::is_deleting(&now) != deleting) {
            self.queue.add(key.clone());
            self.calls.entry(key.clone()).or_insert(Call { answers_at: ctx.now + RETRY, backoff: RETRY });
        }
    }
}

/// The finalizer, before the storage system is asked.
fn hold(key: &Key, attachment: &Value, ctx: &Ctx<'_>) {
    if metadata::is_deleting(attachment) {
        return;
    }
    drop(ctx.api.update(key, |attachment| {
        if let Some(finalizers) = list_at(attachment, &["metadata", "finalizers"])
            && !finalizers.iter().any(|name| name == FINALIZER)
        {
            finalizers.push(FINALIZER.into());
        }
        let node = text(attachment, "/spec/nodeName").to_owned();
        attachment["metadata"]["annotations"]["csi.alpha.kubernetes.io/node-id"] = node.into();
    }));
}

fn tell(attachment: &mut Value, deleting: bool, error: Option<Value>) {
    let status = &mut attachment["status"];
    match error {
        Some(error) => status[if deleting { "detachError" } else { "attachError" }] = error,
        None => *status = json!({"attached": !deleting}),
    }
    if deleting
        && status.get("detachError").is_none()
        && let Some(finalizers) = list_at(attachment, &["metadata", "finalizers"])
    {
        finalizers.retain(|name| name != FINALIZER);
    }
}
