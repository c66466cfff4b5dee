//! Recover / lift: in which order isolations are undone, and which of them has to wait for a new boot.
//!
//! Promise (I1): storage and driver isolation are lifted last, and where a pod was released under them only after a new
//! boot, unless the provider leaves old sessions dead: a process that hung in I/O through the whole partition would
//! otherwise flush stale pages onto a volume that now belongs to another node.

use crate::fence::{Fence, Isolation, IsolationKind, IsolationState, ReleaseState, SinceMark};
use crate::observe::{NodeSeen, Observations};
use crate::reason::recover::ReturnReason;

/// The next isolation to lift while recovering: storage, driver, cordon, out-of-service, and our taint last.
/// Refuses while any of them may not be lifted yet.
pub(crate) fn next_lift(fence: &Fence, seen: &Observations) -> Result<Option<Isolation>, ReturnReason> {
    let mut left: Vec<&Isolation> = fence.isolations.iter().collect();
    left.sort_by_key(|isolation| isolation.kind);
    if let Some(held) = left.iter().find(|isolation| same_boot_matters(fence, isolation, seen)) {
        return Err(ReturnReason::OldBoot { method: held.method.to_string() });
    }
    Ok(left.first().map(|next| (*next).clone()))
}

/// What a method of the recovery step could lift: the intent has to be on record before that step begins.
pub(crate) fn not_lifting_yet(fence: &Fence) -> Option<&Isolation> {
    fence.isolations.iter().find(|isolation| match isolation.kind {
        IsolationKind::Network | IsolationKind::Storage | IsolationKind::Driver => {
            isolation.state != IsolationState::Lifting
        }
        IsolationKind::Power
        | IsolationKind::Cordon
        | IsolationKind::OutOfService
        | IsolationKind::Quarantine
        | IsolationKind::NodeDeletion => false,
    })
}

/// Whether lifting `isolation` now could let stale writes through.
fn same_boot_matters(fence: &Fence, isolation: &Isolation, seen: &Observations) -> bool {
    let guards_data = matches!(isolation.kind, IsolationKind::Network | IsolationKind::Storage | IsolationKind::Driver);
    let released = fence.releases.iter().any(|release| release.state > ReleaseState::Intended);
    let already_lifting = isolation.state == IsolationState::Lifting;
    let by_a_person = isolation.kind == IsolationKind::Network && seen.admin.resume;
    if !guards_data || !released || already_lifting || by_a_person {
        return false;
    }
    if seen.settings.undo.get(&isolation.method).is_some_and(|method| method.revokes_sessions) {
        return false;
    }
    !booted_since(fence, seen)
}

/// Whether nothing that ran at the last mark can still run. A boot that nobody reports is not a new one, and a Node object
/// that was made anew says nothing about the machine behind it.
fn booted_since(fence: &Fence, seen: &Observations) -> bool {
    match (&fence.since_mark, &seen.node) {
        (SinceMark::Off, _) => true,
        (SinceMark::FirstBoot(first), NodeSeen::There(node)) => node.boot().is_some_and(|boot| boot != first),
        (SinceMark::Unknown | SinceMark::Baseline { .. } | SinceMark::FirstBoot(_), _) => false,
    }
}
