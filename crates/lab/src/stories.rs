//! Stories: which of the catalogue are told in the lab.
//!
//! All of them are told in the embedded world. Here it is those that real time allows: under three minutes each. The longer
//! ones are for `cargo xtask soak --lab`.

/// Told in every run of the tests.
pub const TOLD: &[&str] = &[
    "power_failure",
    "power_failure_is_proven_first",
    "partition_that_still_writes",
    "partition_from_peers_too",
    "kubelet_hangs",
    "bmc_is_slow",
    "two_stateful_sets_on_one_node",
    "all_sorts_beside_the_database",
    "pods_that_share_a_claim_go_together",
    "pod_with_a_finalizer",
    "request_on_a_healthy_node",
    "node_returns_during_the_fence",
    "node_returns_after_the_release",
    "somebody_switches_it_on_before_the_release",
    "somebody_switches_it_on_after_the_mark",
    "somebody_switches_it_on_after_the_release",
    "fence_deleted_after_the_mark",
    "quarantine_taint_removed",
    "pod_deleted_by_an_admin",
    "two_operators_at_once",
    "crash_in_isolating",
    "crash_when_marked",
    "leader_on_the_dying_node",
    "config_that_deletes_the_node",
    "remedy_of_its_own",
    "policy_comes_back",
    "history_is_not_kept_for_ever",
    "drained_before_it_is_switched_off",
    "agent_alone",
];

/// Told by nobody here, for want of what they need: machines that hibernate, a link to the storage that can be cut, an admission
/// rule, six machines or three zones, a policy for nodes that fail all day, switched outlets.
pub const UNTOLD: &[&str] = &[
    "hibernated_machine_is_not_off",
    "process_hangs_in_a_write",
    "deletion_refused_for_one_of_two",
    "half_of_the_nodes_gone",
    "whole_zone_gone",
    "budget_of_one_with_two_dead",
    "pause_lifted_with_two_dead",
    "first_failure_of_a_small_zone",
    "outlet_that_the_bmc_reads_back",
    // The default policy takes its place, by which the nodes of a lab that has told other stories flap.
    "policy_deleted_for_good",
];

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_scenarios::catalogue::NAMES;

    #[test]
    fn at_least_twenty_stories_of_the_catalogue_are_told() {
        assert!(TOLD.len() >= 20);
        let unknown: Vec<_> = TOLD.iter().filter(|name| !NAMES.contains(name)).collect();
        assert!(unknown.is_empty(), "not in the catalogue: {unknown:?}");
    }
}
