//! I3: whatever is asked of the ledger, and in whatever order, the budget holds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail loudly
#![allow(missing_docs)] // read as a story, not as a library

use std::collections::BTreeMap;

use palisade_core::ident::{NodeName, Uid};
use palisade_core::ledger::{Entry, GiveBack, Ledger, Take, give_back, take};
use palisade_core::policy::{Budget, Rate};
use palisade_core::time::Span;
use proptest::prelude::*;

/// What happens to a ledger.
#[derive(Clone, Debug)]
enum Happens {
    Asks { fence: u8, grant: u32, member: bool },
    GivesBack { fence: u8, grant: u32 },
    TimePasses(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    let fence = 0_u8..6;
    prop_oneof![
        4 => (fence.clone(), 1_u32..4, any::<bool>()).prop_map(|(fence, grant, member)| Happens::Asks { fence, grant, member }),
        2 => (fence, 1_u32..4).prop_map(|(fence, grant)| Happens::GivesBack { fence, grant }),
        2 => (0_u64..400_000).prop_map(Happens::TimePasses),
    ]
}

fn budgets() -> impl Strategy<Value = Budget> {
    let rate =
        proptest::option::of((1_u32..4, 1_u64..600).prop_map(|(count, per)| Rate { count, per: Span::secs(per) }));
    (0_u32..4, 0_u64..120, rate).prop_map(|(max_concurrent, spacing, rate)| Budget {
        max_concurrent,
        spacing: Span::secs(spacing),
        rate,
    })
}

fn entry(fence: u8, grant: u32, control_plane: bool) -> Entry {
    Entry { node: NodeName::from(format!("n{fence}").as_str()), control_plane, grant }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_budget_is_never_exceeded(budget in budgets(), events in proptest::collection::vec(happens(), 1..60)) {
        let policy = Uid::from("policy");
        let mut ledger = Ledger { policy_uid: policy.clone(), entries: BTreeMap::new(), grants: Vec::new() };
        let mut granted: Vec<Span> = Vec::new();
        for event in events {
            match event {
                Happens::Asks { fence, grant, member } => {
                    let uid = Uid::from(format!("f{fence}").as_str());
                    let known = ledger.entries.contains_key(&uid);
                    match take(Some(&ledger), &policy, &uid, entry(fence, grant, member), &budget) {
                        Take::Write(next) => {
                            if !known {
                                let room = u32::try_from(ledger.entries.len()).unwrap() < budget.max_concurrent;
                                prop_assert!(room, "one more beside {:?}", ledger.entries);
                                prop_assert!(!member || ledger.other_member(Some(&uid)).is_none(), "two members at once");
                                let last = granted.iter().min().copied();
                                prop_assert!(last.is_none_or(|since| since >= budget.spacing), "{last:?} after the last");
                                if let Some(rate) = budget.rate {
                                    let recent = granted.iter().filter(|age| **age < rate.per).count();
                                    prop_assert!(u32::try_from(recent).unwrap() < rate.count, "{recent} within {}", rate.per);
                                }
                            }
                            granted.push(Span::ZERO);
                            ledger = next;
                        }
                        Take::Already | Take::Full(_) => {}
                        Take::Missing => prop_assert!(false, "the ledger is there"),
                    }
                }
                Happens::GivesBack { fence, grant } => {
                    let uid = Uid::from(format!("f{fence}").as_str());
                    let newer = ledger.entries.get(&uid).is_some_and(|entry| entry.grant > grant);
                    if let GiveBack::Write(next) = give_back(&ledger, &uid, grant) {
                        prop_assert!(!newer, "a later slot was given back");
                        ledger = next;
                    }
                }
                Happens::TimePasses(millis) => {
                    let passed = Span::millis(millis);
                    for age in &mut granted {
                        *age += passed;
                    }
                    ledger = ledger.aged(passed, &budget);
                }
            }
        }
    }
}
