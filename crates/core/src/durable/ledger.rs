//! Durable / ledger: how the ledger is written into `FencePolicy.status`, and read back.
//!
//! Promise (I3): a status without the policy's UID is no ledger; an entry that cannot be read is an error, never an empty slot.

use palisade_api::policy as api;

use super::{Unreadable, unreadable};
use crate::ident::{NodeName, Uid};
use crate::ledger::{Entry, Ledger};
use crate::time::Span;

/// Writes the ledger into a status. Conditions are the shell's, and stay as they are.
pub fn write_ledger(ledger: &Ledger, status: &mut api::FencePolicyStatus) {
    let uid = ledger.policy_uid.to_string();
    status.policy_uid = (!uid.is_empty()).then_some(uid);
    status.entries = ledger.entries.iter().map(|(fence, entry)| write_entry(fence, entry)).collect();
    status.in_flight = u32::try_from(status.entries.len()).unwrap_or(u32::MAX);
    let millis = |age: &Span| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    status.grant_ages_millis = ledger.grants.iter().map(millis).collect();
}

fn write_entry(fence: &Uid, entry: &Entry) -> api::LedgerEntry {
    api::LedgerEntry {
        fence_uid: fence.to_string(),
        node: entry.node.to_string(),
        control_plane: entry.control_plane,
        grant: entry.grant,
    }
}

/// Reads a ledger back; none if the status has none. Whether it is the ledger of this policy, `Ledger::is_for` tells.
pub fn read_ledger(status: &api::FencePolicyStatus) -> Result<Option<Ledger>, Unreadable> {
    let Some(policy_uid) = &status.policy_uid else { return Ok(None) };
    let age = |millis: &i64| u64::try_from(*millis).or_else(|_| unreadable("grantAgesMillis", millis));
    let mut grants = Vec::with_capacity(status.grant_ages_millis.len());
    for millis in &status.grant_ages_millis {
        grants.push(Span::millis(age(millis)?));
    }
    let entries = status.entries.iter().map(|seen| {
        let entry =
            Entry { node: NodeName::from(seen.node.as_str()), control_plane: seen.control_plane, grant: seen.grant };
        (Uid::from(seen.fence_uid.as_str()), entry)
    });
    let entries = entries.collect();
    Ok(Some(Ledger { policy_uid: Uid::from(policy_uid.as_str()), entries, grants }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_read_back_as_it_was_written() {
        let entry = Entry { node: "n1".into(), control_plane: true, grant: 3 };
        let ledger = Ledger {
            policy_uid: "p1".into(),
            entries: [("f1".into(), entry)].into(),
            grants: vec![Span::ZERO, Span::secs(90)],
        };
        let mut status = api::FencePolicyStatus::default();
        write_ledger(&ledger, &mut status);
        assert_eq!(status.in_flight, 1);
        assert_eq!(read_ledger(&status), Ok(Some(ledger)));
    }

    #[test]
    fn a_policy_that_was_applied_again_has_no_ledger() {
        assert_eq!(read_ledger(&api::FencePolicyStatus::default()), Ok(None));
    }

    #[test]
    fn an_age_that_makes_no_sense_is_an_error_with_its_field() {
        let status = api::FencePolicyStatus {
            policy_uid: Some("p1".to_owned()),
            grant_ages_millis: vec![-1],
            ..api::FencePolicyStatus::default()
        };
        assert!(read_ledger(&status).is_err_and(|why| why.field == "grantAgesMillis"));
    }
}
