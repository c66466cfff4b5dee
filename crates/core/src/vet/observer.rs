//! Vet / observer: am I the isolated one?
//!
//! Promise (I3): a replica that cannot vouch for its own eyes fences nobody.
//! Never: believes a standby replica that has itself gone silent; lets a standby contradict what is not about silence.

use super::{Case, Gate};
use crate::policy::Policy;
use crate::reason::vet::HoldReason;
use crate::snapshot::ObserverView;
use crate::time::{Span, Tick};

pub(super) fn gate(case: &Case<'_>) -> Gate {
    if let Some((why, until)) = blind(&case.view.observer, case.policy, case.now) {
        return Case::hold_until(until, why);
    }
    if let Some(published) = standby_sees_alive(case) {
        return case.hold(HoldReason::StandbySeesAlive { published });
    }
    Gate::Open
}

/// Why this replica may judge nobody now, whoever it is, and when to look again; `None`: its eyes are good.
pub fn blind(observer: &ObserverView, policy: &Policy, now: Tick) -> Option<(HoldReason, Tick)> {
    let age = now.since(observer.api_last_answered.unwrap_or(Tick::START));
    if observer.api_last_answered.is_none() || age > policy.observer_fresh {
        return Some((HoldReason::ApiStale { age, limit: policy.observer_fresh }, now + policy.recheck));
    }
    if observer.self_check == Some(false) {
        return Some((HoldReason::SelfCheckFailed, now + policy.recheck));
    }
    let quiet = policy.outage_quiet;
    let ended = observer.outage_ended.filter(|ended| now < *ended + quiet)?;
    Some((HoldReason::AfterOutage { ended: now.since(ended), quiet }, ended + quiet))
}

/// How long ago the standby said that it sees the target alive, if that contradicts the claim.
fn standby_sees_alive(case: &Case<'_>) -> Option<Span> {
    let standby = case.view.observer.standby.as_ref().filter(|_| case.rests_on_silence())?;
    let published = case.age(standby.published);
    (published <= case.policy.observer_fresh && standby.sees_alive.contains(&case.claim.target)).then_some(published)
}
