//! Vet / observer: am I the isolated one?
//!
//! Promise (I3): a replica that cannot vouch for its own eyes fences nobody.
//! Never: believes a standby replica that has itself gone silent; lets a standby contradict what is not about silence.

use super::{Case, Gate};
use crate::reason::vet::HoldReason;
use crate::time::{Span, Tick};

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let observer = &case.view.observer;
    let limit = case.policy.observer_fresh;
    match observer.api_last_answered {
        Some(answered) if case.age(answered) <= limit => {}
        Some(answered) => return case.hold(HoldReason::ApiStale { age: case.age(answered), limit }),
        None => return case.hold(HoldReason::ApiStale { age: case.age(Tick::START), limit }),
    }
    if observer.self_check == Some(false) {
        return case.hold(HoldReason::SelfCheckFailed);
    }
    if let Some(ended) = observer.outage_ended.filter(|ended| case.now < *ended + case.policy.outage_quiet) {
        let quiet = case.policy.outage_quiet;
        return Case::hold_until(ended + quiet, HoldReason::AfterOutage { ended: case.age(ended), quiet });
    }
    if let Some(published) = standby_sees_alive(case) {
        return case.hold(HoldReason::StandbySeesAlive { published });
    }
    Gate::Open
}

/// How long ago the standby said that it sees the target alive, if that contradicts the claim.
fn standby_sees_alive(case: &Case<'_>) -> Option<Span> {
    let standby = case.view.observer.standby.as_ref().filter(|_| case.rests_on_silence())?;
    let published = case.age(standby.published);
    (published <= case.policy.observer_fresh && standby.sees_alive.contains(&case.claim.target)).then_some(published)
}
