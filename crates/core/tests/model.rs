//! The model check: small worlds with a ground truth, explored to exhaustion, around the real `step`.
//!
//! **What is real.** Every decision is made by `palisade_core::step`, every write of the ledger by `palisade_core::ledger`.
//! Modelled is the rest: the API server (records by compare-and-swap, UIDs, resourceVersions), two operator processes with
//! memories and caches of their own, devices, a machine with its kubelet, the owners of pods, the attach/detach controller.
//!
//! **What is asked** (`check`): at every instant and for every act, by the machines' truth and never by an operator's belief:
//! - I1: never do two nodes write to the volume. I2: a pod is removed, a volume detached, an attachment deleted, a pod of a
//!   replacing owner marked only when its processes cannot write any more; half a group never goes.
//! - I4: what is hit has the UID that was decided on. I5: the record held the intent before. I6: a proof stands on an answered
//!   read-back of a cut-off that was carried out in this very attempt. I3 (in `ledger`): no more fences act than the budget allows.
//!
//! Each world also has to reach what it is about (a release, a replacement, a voided proof, a return, a crash right after
//! each kind of effect), so that none is empty. Liveness is left to the simulation.
//!
//! **Time.** No clock moves: a timer has run out or it has not, at every decision anew. That allows more than any real clock
//! does, and order never rests on ticks in `core` but on the numbers of reads. Two things only are said about lengths. A boot and a
//! Node that registers take longer than a read stays `fresh`, and so than what rests on it may wait before it is sent. And a new
//! attempt, an `on` and the end of a fence come later than a device call may be sent that nobody has answered for: `core` waits
//! for that (`crossing`), so that a device call is gone when a timer has run out; it may well be sent after a boot.
//!
//! **What an operator sees.** Its caches are as old as they like. Lists of pods and attachments were made in this phase, and may
//! be as old as the phase. Reads of the Node and of devices are numbered, as in `core`.
//!
//! **Limits** (printed with each result): how often each fault, crash, handover and outside act happens. Within them the
//! exploration is exhaustive; `PALISADE_MODEL=full` widens them. One operator decides at a time and the other one may take over
//! at any point, with the old one's requests still under way; `handovers` bounds how often. Not modelled: kubelets that list
//! from a lagging API server (the documented exception), driver fencing, a person who confirms, a kernel dump that proves.
//!
//! **Mutations.** A shell that breaks its contract in one way. Each has to be caught, with the promise that it breaks.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test has no readers of its API, and may fail loudly"
)]
#![allow(
    clippy::unused_self,
    clippy::trivially_copy_pass_by_ref,
    clippy::match_same_arms,
    reason = "the verbs of a world read alike, and so do the arms of a table, whether each needs everything or not"
)]

#[path = "model/api.rs"]
mod api;
#[path = "model/check.rs"]
mod check;
#[path = "model/events.rs"]
mod events;
#[path = "model/ledger.rs"]
mod ledger;
#[path = "model/nature.rs"]
mod nature;
#[path = "model/operators.rs"]
mod operators;
#[path = "model/setup.rs"]
mod setup;
#[path = "model/shell.rs"]
mod shell;
#[path = "model/tables.rs"]
mod tables;
#[path = "model/world.rs"]
mod world;
#[path = "model/worlds.rs"]
mod worlds;

use crate::check::{Found, explore};
use crate::ledger::LedgerWorld;
use crate::setup::{Mutation, Setup};
use crate::world::Kind;

/// The world holds under each of its bounds, and is not empty.
fn holds(worlds: Vec<Setup>, reaches: &[&str]) -> Vec<Kind> {
    let mut crashed_after = Vec::new();
    for setup in worlds {
        let found = explore(&setup);
        expect_whole(setup.name, &found, reaches);
        crashed_after.extend(found.crashed_after);
    }
    crashed_after
}

fn expect_whole(name: &str, found: &Found, reaches: &[&str]) {
    assert!(found.broken.is_none(), "{name} breaks {}:\n{}", found.broken.unwrap_or(""), found.story.join("\n"));
    let missing: Vec<_> = reaches.iter().filter(|reached| found.never.contains(reached)).collect();
    assert!(missing.is_empty(), "{name} is empty, it never reaches {missing:?}");
}

/// The mutation is caught, by the promise that it breaks.
fn caught(setup: &Setup, mutation: Mutation, promise: &str) {
    let found = explore(&Setup { mutation: Some(mutation), ..setup.clone() });
    expect_caught(&found, promise);
}

fn expect_caught(found: &Found, promise: &str) {
    let broken = found.broken.expect("the mutation has to be caught");
    println!("caught by {broken}, in {} lines:\n{}", found.story.len(), found.story.join("\n"));
    assert!(broken.starts_with(promise), "caught by {broken}, not by {promise}");
}

const RELEASED: &str = "a pod is released";
const REPLACED: &str = "its replacement writes";
const VOIDED: &str = "a proof is voided";
const BACK: &str = "the node is back and clean";

#[test]
fn power_releases_once_whoever_switches_the_machine_on() {
    let crashed_after = holds(worlds::power(), &[RELEASED, REPLACED, VOIDED]);
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Close) {
        assert!(crashed_after.contains(&kind), "nobody crashed right after {kind:?}");
    }
}

#[test]
fn power_and_back_again() {
    let crashed_after = holds(worlds::power_and_back(), &[RELEASED, REPLACED, VOIDED, BACK]);
    assert_eq!(Kind::ALL.into_iter().find(|kind| !crashed_after.contains(kind)), None, "nobody crashed right after it");
}

#[test]
fn power_with_evictions_and_pods_that_come_back_under_their_name() {
    holds(worlds::power_with_evictions(), &[RELEASED, REPLACED, VOIDED, BACK]);
}

#[test]
fn storage_fence_under_a_partition() {
    holds(worlds::storage(), &[RELEASED, REPLACED, VOIDED]);
}

#[test]
fn a_network_cut_is_no_substitute_for_a_lost_storage_fence() {
    holds(worlds::storage_else_network(), &[RELEASED, REPLACED, VOIDED]);
}

#[test]
fn a_group_goes_whole() {
    holds(worlds::group(), &[RELEASED, REPLACED, VOIDED]);
}

#[test]
fn jobs_count_for_their_own_attempt() {
    holds(worlds::jobs(), &[RELEASED, REPLACED, VOIDED]);
}

#[test]
fn ledger_grants_one_slot() {
    for bounds in worlds::ledger() {
        let found = LedgerWorld::new(bounds, false).explore("ledger");
        expect_whole("ledger", &found, &["a fence acts", "the other one had a turn"]);
    }
}

#[test]
fn storage_fence_of_a_machine_that_reboots() {
    holds(worlds::storage_with_reboots(), &[RELEASED, REPLACED]);
}

#[test]
fn a_group_that_grows_while_a_removal_is_under_way() {
    holds(worlds::group_that_grows(), &[RELEASED, REPLACED, VOIDED]);
}

#[test]
fn a_mark_that_releases_comes_right_after_a_read_back() {
    holds(worlds::replacing_owner(), &[RELEASED, REPLACED, VOIDED]);
}

#[test]
fn a_node_made_anew_while_a_release_is_under_way() {
    holds(worlds::node_made_anew(), &[RELEASED, REPLACED]);
}

#[test]
fn a_node_that_another_machine_takes_over_while_a_release_is_under_way() {
    holds(worlds::node_taken_over(), &[RELEASED, REPLACED]);
}

#[test]
fn a_node_that_is_out_of_service_loses_nothing_that_still_writes() {
    holds(worlds::out_of_service(), &[RELEASED, REPLACED, VOIDED, "the node is out of service"]);
}

#[test]
fn a_node_is_deleted_by_us_when_nothing_that_writes_is_bound_to_it() {
    holds(worlds::delete_node(), &[RELEASED, REPLACED, VOIDED, "its Node is deleted by us"]);
}

#[test]
fn ledger_entry_of_an_earlier_slot() {
    for bounds in worlds::ledger_with_retries() {
        let found = LedgerWorld::new(bounds, false).explore("ledger with retries");
        expect_whole("ledger with retries", &found, &["a fence acts", "the other one had a turn"]);
    }
}

#[test]
fn ledger_made_anew_while_a_slot_is_taken() {
    for bounds in worlds::ledger_made_anew() {
        let found = LedgerWorld::new(bounds, false).explore("ledger made anew");
        expect_whole("ledger made anew", &found, &["a fence acts"]);
    }
}

#[test]
fn mutation_no_deletion_mark() {
    caught(&worlds::for_mutations(), Mutation::NoDeletionMark, "I2");
}

#[test]
fn mutation_mark_with_grace_zero() {
    caught(&worlds::for_mutations(), Mutation::GraceZero, "I2");
}

#[test]
fn mutation_read_back_before_the_mark() {
    caught(&worlds::for_mutations(), Mutation::ReadBackBeforeMark, "I2");
}

#[test]
fn mutation_old_job_adopted() {
    caught(&worlds::for_old_jobs(), Mutation::OldJobAdopted, "I6");
}

#[test]
fn mutation_no_precondition() {
    caught(&worlds::for_mutations(), Mutation::NoPrecondition, "I4");
}

#[test]
fn mutation_unfence_on_an_old_boot() {
    caught(&worlds::storage()[1], Mutation::OldBootCalledNew, "I1");
}

#[test]
fn mutation_half_a_group_released() {
    caught(&worlds::group()[0], Mutation::SharedClaimHidden, "I2");
}

#[test]
fn mutation_live_ledger_entry_taken_for_garbage() {
    let found = LedgerWorld::new(ledger::Bounds { operators: 1, ..worlds::LEDGER }, true)
        .explore("ledger with a live entry taken for garbage");
    expect_caught(&found, "I3");
}

#[test]
fn mutation_silence_taken_for_off() {
    caught(&worlds::for_mutations(), Mutation::SilenceTakenForOff, "I6");
}

#[test]
fn mutation_out_of_service_before_the_release() {
    caught(&worlds::out_of_service()[0], Mutation::OutOfServiceTooEarly, "I2");
}

#[test]
fn mutation_node_deleted_under_pods_that_were_not_shown() {
    caught(&worlds::delete_node()[0], Mutation::PodsHidden, "I2");
}
