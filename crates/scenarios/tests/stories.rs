//! Every story of the catalogue, on the embedded world, in virtual time.
//!
//! `PALISADE_SEED=7` tells them with another seed; `PALISADE_TIMELINE=1` shows every write of a story that broke.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(clippy::disallowed_methods, reason = "how long a story takes to tell is for people")]

use std::sync::Arc;
use std::time::Instant;

use palisade_cluster::api::Change;
use palisade_scenarios::catalogue::{self, Story};
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::world::World;

macro_rules! stories {
    ($($name:ident)*) => {
        const TOLD: &[&str] = &[$(stringify!($name)),*];

        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            tell(stringify!($name)).await;
        })*
    };
}

async fn tell(name: &str) {
    let story = Story::<Embedded>::named(name).unwrap();
    let seed = std::env::var("PALISADE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let real = Instant::now();
    let mut world = Embedded::for_story(&story.needs, seed).await;
    let told = story.tell(&mut world).await;
    let seconds = world.cluster.elapsed().as_secs();
    println!("{name}: {seconds} s of virtual time, {} ms of real time", real.elapsed().as_millis());
    let bites = world.two_writers();
    if told.is_err() || !bites.is_empty() || std::env::var_os("PALISADE_TIMELINE").is_some() {
        timeline(&world);
    }
    assert!(bites.is_empty(), "{name}: two writers: {bites:#?}");
    if let Err(why) = told {
        panic!("{name} ({}), seed {seed}: {why}", story.about);
    }
}

/// What was written and what happened, for people.
fn timeline(world: &Embedded) {
    let mut lines = Vec::new();
    let begin =
        world.cluster.clock().now().as_millisecond() - i64::try_from(world.cluster.elapsed().as_millis()).unwrap();
    for change in remembered(world) {
        let kind =
            change.new.as_ref().or(change.old.as_ref()).map(|object| object["kind"].to_string()).unwrap_or_default();
        if ["\"Lease\"", "\"CustomResourceDefinition\""].contains(&kind.as_str()) {
            continue;
        }
        let text = |path: &str| {
            change.new.as_ref().and_then(|new| new.pointer(path)).map(ToString::to_string).unwrap_or_default()
        };
        let said = if change.new.is_none() {
            "gone".to_owned()
        } else {
            ["/status/phase", "/status/reason", "/status/message", "/status/result", "/reason", "/message"]
                .map(text)
                .join(" ")
        };
        let at = change.at.as_millisecond() - begin;
        lines.push((at, format!("{} {kind} {} {said}", change.by.name(), change.key.name)));
    }
    world.cluster.truth().look(|truth| {
        for event in &truth.events {
            let at = i64::try_from(event.at.as_millis()).unwrap();
            lines.push((at, format!("nature {:?}", event.what)));
        }
    });
    lines.sort_by_key(|(at, _)| *at);
    for (at, line) in lines {
        println!("{:>6}.{:03} {line}", at / 1000, at % 1000);
    }
}

/// Every write that the API still remembers.
fn remembered(world: &Embedded) -> Vec<Arc<Change>> {
    let (mut low, mut high) = (0, world.cluster.api().revision());
    while low < high {
        let middle = low + (high - low) / 2;
        if world.cluster.api().changes_since(middle).is_ok() { high = middle } else { low = middle + 1 }
    }
    world.cluster.api().changes_since(low).unwrap_or_default()
}

#[test]
fn every_story_is_told() {
    assert_eq!(TOLD, catalogue::NAMES);
}

stories! {
    power_failure
    power_failure_is_proven_first
    feed_fails_and_takes_the_bmc_along
    hibernated_machine_is_not_off
    partition_that_still_writes
    partition_from_peers_too
    process_hangs_in_a_write
    short_partition_is_forgiven
    kubelet_hangs
    kubelet_hangs_for_a_moment
    everything_is_cut_and_nobody_knows
    bmc_only_says_yes
    bmc_says_off_while_the_kubelet_answers
    bmc_says_nothing
    bmc_refuses
    bmc_is_slow
    bmc_is_very_slow
    bmc_answers_late
    bmc_loses_the_reply
    bmc_shows_off_from_its_cache
    machine_comes_back_by_itself
    bmc_needs_eight_seconds
    bmc_away_for_an_hour
    bmc_refuses_to_switch_on
    half_of_the_nodes_gone
    whole_zone_gone
    all_nodes_gone
    budget_of_one_with_two_dead
    pause_lifted_with_two_dead
    first_failure_of_a_small_zone
    api_outage_fences_nobody
    node_dies_during_an_api_outage
    api_outage_in_the_middle
    node_returns_before_the_fence
    node_returns_during_the_fence
    node_returns_while_the_fence_fails
    node_returns_after_the_release
    somebody_switches_it_on_before_the_release
    somebody_switches_it_on_after_the_mark
    somebody_switches_it_on_after_the_release
    leader_on_the_dying_node
    leader_is_the_isolated_one
    leader_crashes_with_the_node
    two_operators_at_once
    rolling_update_in_the_middle
    crash_in_new
    crash_in_isolating
    crash_in_isolated
    crash_when_intended
    crash_when_marked
    crash_when_removed
    crash_in_powering_on
    crash_in_returning
    crash_in_recovering
    crash_again_and_again
    two_stateful_sets_on_one_node
    all_sorts_beside_the_database
    pods_that_share_a_claim_go_together
    bare_pod_holds_its_group
    pod_with_a_finalizer
    deletion_refused_for_one_of_two
    stateless_node_is_left_alone
    request_on_a_healthy_node
    power_off_and_resume
    two_admins_ask_for_the_same
    power_off_asked_for_in_the_middle
    fence_deleted_while_it_fails
    fence_deleted_after_the_mark
    fence_torn_out_with_its_slot
    stop_before_the_off
    dry_run_does_nothing
    paused_until_somebody_lifts_it
    paused_in_the_middle
    excluded_node
    node_in_maintenance
    node_deleted_in_the_middle
    node_deleted_and_made_again
    policy_applied_again_in_the_middle
    policy_comes_back
    policy_deleted_for_good
    quarantine_taint_removed
    pod_deleted_by_an_admin
    agent_with_native_read_back
    outlet_that_the_bmc_reads_back
    agent_alone
    agent_only_says_so
    agent_lies_while_the_kubelet_answers
    agent_lies_behind_a_partition
    agent_fails_after_success
    agent_without_a_report
    agent_tells_of_trouble_and_exits_zero
    agent_leaves_a_wrong_report
    agent_meets_a_power_cycle
    agent_hangs
    image_that_nobody_has
    executor_dies_in_the_middle
    nobody_left_to_run_the_agent
    executor_without_a_way
    job_deleted_by_an_admin
    pod_left_by_its_job
    own_pod_that_is_read_back
    own_pod_alone_proves_nothing
    own_pod_that_the_policy_trusts
    own_pod_without_permission
    own_pod_is_trusted_and_the_node_lives
    own_pod_is_trusted_and_the_bmc_says_on
    own_pod_is_trusted_and_the_node_comes_back
    own_pod_is_trusted_and_the_operator_dies
    both_or_else_power
    drained_before_it_is_switched_off
    drain_of_a_dead_node_is_left_out
    cordon_of_somebody_else_stays
    taint_of_ones_own
    config_that_makes_no_sense
    config_that_deletes_the_node
    remedy_of_its_own
    object_that_cannot_be_understood
    request_for_nobody
    history_is_not_kept_for_ever
    request_ahead_of_its_node
    request_from_a_stranger
    template_with_a_wrong_address
    bmc_goes_silent_on_a_healthy_node
    addresses_of_two_nodes_are_swapped
    bmc_says_off_of_a_healthy_node
}
