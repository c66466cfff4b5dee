//! Recover / lift: in which order isolations are undone, and which of them has to wait for a new boot.
//!
//! Promise (I1): storage and driver isolation are lifted last, and where a pod was released under them only after a new
//! boot, unless the provider leaves old sessions dead: a process that hung in I/O through the whole partition would
//! otherwise flush stale pages onto a volume that now belongs to another node.

use crate::fence::{Fence, Isolation, IsolationKind, IsolationState, ReleaseState};
use crate::observe::{NodeSeen, Observations};
use crate::reason::recover::ReturnReason;

/// What is undone next, once the node has passed its return checks.
pub(crate) enum Lift {
    /// This isolation.
    Next(Isolation),
    /// This one may not be lifted yet.
    Blocked(ReturnReason),
    /// Nothing is left.
    Nothing,
}

/// The next isolation to lift while recovering: storage, driver, cordon, out-of-service, and our taint last.
pub(crate) fn next_lift(fence: &Fence, seen: &Observations) -> Lift {
    let mut left: Vec<&Isolation> = fence.isolations.iter().collect();
    left.sort_by_key(|isolation| isolation.kind);
    let Some(next) = left.first() else { return Lift::Nothing };
    if same_boot_matters(fence, next, seen) {
        return Lift::Blocked(ReturnReason::OldBoot { method: next.method.to_string() });
    }
    Lift::Next((*next).clone())
}

/// Whether lifting `isolation` now could let stale writes through.
fn same_boot_matters(fence: &Fence, isolation: &Isolation, seen: &Observations) -> bool {
    let guards_data = matches!(isolation.kind, IsolationKind::Storage | IsolationKind::Driver);
    let released = fence.releases.iter().any(|release| release.state > ReleaseState::Intended);
    let already_lifting = isolation.state == IsolationState::Lifting;
    if !guards_data || !released || already_lifting {
        return false;
    }
    if seen.settings.undo.get(&isolation.method).is_some_and(|method| method.revokes_sessions) {
        return false;
    }
    !booted_since(fence, seen)
}

/// Whether the node runs another boot than the one that was cut off. A boot that nobody reports is not a new one.
fn booted_since(fence: &Fence, seen: &Observations) -> bool {
    let (Some(target), NodeSeen::There(node)) = (&fence.target, &seen.node) else { return false };
    node.boot().is_some_and(|boot| *boot != target.boot) || node.uid != target.uid
}
