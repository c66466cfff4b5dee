//! Catalogue: every story by name, with what it needs. The tests tell all of them, and the demo shows them to people.

use futures_util::future::LocalBoxFuture;

use crate::stories::{
    admin, agent, api, builtin, config, crash, device, leader, meddling, partition, power, preflight, returns, storm,
    workload,
};
use crate::world::{Needs, Told, World};

/// A story.
pub struct Story<W> {
    /// Its name. The demo's `--scenario` takes it, with dashes.
    pub name: &'static str,
    /// What it is about, in one sentence.
    pub about: &'static str,
    /// What it needs.
    pub needs: Needs,
    tell: for<'a> fn(&'a mut W) -> LocalBoxFuture<'a, Told>,
}

impl<W: World + 'static> Story<W> {
    /// The story of this name.
    pub fn named(name: &str) -> Option<Self> {
        all().into_iter().find(|story| story.name == name)
    }

    /// Tells it in a world.
    pub async fn tell(&self, world: &mut W) -> Told {
        (self.tell)(world).await
    }
}

macro_rules! catalogue {
    ($($theme:ident::$story:ident [$nodes:literal $zones:literal] $about:literal)*) => {
        /// The names of all stories, in the order in which they are told.
        pub const NAMES: &[&str] = &[$(stringify!($story)),*];

        /// All stories.
        pub fn all<W: World + 'static>() -> Vec<Story<W>> {
            vec![$(Story {
                name: stringify!($story),
                about: $about,
                needs: Needs { nodes: $nodes, zones: $zones },
                tell: |world| Box::pin($theme::$story(world)),
            }),*]
        }
    };
}

catalogue! {
    power::power_failure [4 1] "a machine loses its power: it is proven off, and its database moves"
    power::power_failure_is_proven_first [4 1] "nothing is given up before the machine is proven off"
    power::feed_fails_and_takes_the_bmc_along [4 1] "machine and BMC lose their feed together"
    power::hibernated_machine_is_not_off [4 1] "a machine that hibernates looks like off"
    partition::partition_that_still_writes [4 1] "a node that nobody hears goes on writing"
    partition::partition_from_peers_too [4 1] "a node loses its network and writes on: it is switched off before anything moves"
    partition::process_hangs_in_a_write [4 1] "a process hangs in a write through the whole partition"
    partition::short_partition_is_forgiven [4 1] "a hiccup of the network fences nobody"
    partition::kubelet_hangs [4 1] "a kubelet hangs while its pods go on"
    partition::kubelet_hangs_for_a_moment [4 1] "a kubelet hangs for a moment"
    partition::everything_is_cut_and_nobody_knows [4 1] "node and BMC are both out of reach"
    device::bmc_only_says_yes [4 1] "a node loses its network, and its BMC says yes and does nothing: nothing may move"
    device::bmc_says_off_while_the_kubelet_answers [4 1] "the BMC says off while the kubelet answers"
    device::bmc_says_nothing [4 1] "the BMC takes every request and says nothing"
    device::bmc_refuses [4 1] "the BMC refuses every command"
    device::bmc_is_slow [4 1] "the BMC is slow"
    device::bmc_is_very_slow [4 1] "the BMC needs four seconds for each answer"
    device::bmc_answers_late [4 1] "the BMC does what it was told a minute too late"
    device::bmc_loses_the_reply [4 1] "the BMC does it, and its answer gets lost"
    device::bmc_shows_off_from_its_cache [4 1] "the BMC does nothing and shows off from its cache for a moment"
    device::machine_comes_back_by_itself [4 1] "the machine comes back by itself after each off"
    device::bmc_needs_eight_seconds [4 1] "the BMC needs eight seconds for each answer"
    device::bmc_away_for_an_hour [4 1] "the BMC is away and back an hour later"
    device::bmc_refuses_to_switch_on [4 1] "the BMC refuses to switch the machine on again"
    storm::half_of_the_nodes_gone [6 1] "half of the nodes are silent at once: perhaps it is we who are blind, so nothing is done"
    storm::whole_zone_gone [6 3] "a whole zone is silent"
    storm::all_nodes_gone [4 1] "every node is silent"
    storm::budget_of_one_with_two_dead [6 1] "two nodes die, and the budget is one"
    storm::pause_lifted_with_two_dead [6 1] "a pause is lifted while two nodes are dead"
    storm::first_failure_of_a_small_zone [6 3] "the first failure of a small zone is never blocked"
    api::api_outage_fences_nobody [4 1] "the API server is away for five minutes"
    api::node_dies_during_an_api_outage [4 1] "a node dies while the API server is away"
    api::api_outage_in_the_middle [4 1] "the API server goes away in the middle of a fence"
    returns::node_returns_before_the_fence [4 1] "the node is back before anything was done"
    returns::node_returns_during_the_fence [4 1] "a node loses its network, and has it back while off is on its way"
    returns::node_returns_while_the_fence_fails [4 1] "the node is back while the fence fails"
    returns::node_returns_after_the_release [4 1] "the node is back after its pod has moved"
    returns::somebody_switches_it_on_before_the_release [4 1] "somebody presses the button before the release"
    returns::somebody_switches_it_on_after_the_mark [4 1] "somebody presses the button after the mark"
    returns::somebody_switches_it_on_after_the_release [4 1] "somebody presses the button after the release"
    leader::leader_on_the_dying_node [4 1] "the leader dies with the node that is to be fenced"
    leader::leader_is_the_isolated_one [4 1] "the leader is cut off together with its node"
    leader::leader_crashes_with_the_node [4 1] "the leader crashes as the node dies"
    leader::two_operators_at_once [4 1] "two operators at once"
    leader::rolling_update_in_the_middle [4 1] "the operator is updated in the middle of a fence"
    crash::crash_in_new [4 1] "the operator crashes before anything is done"
    crash::crash_in_isolating [4 1] "the operator crashes while off is on its way"
    crash::crash_in_isolated [4 1] "the operator crashes with a proof in hand"
    crash::crash_when_intended [4 1] "the operator crashes before the mark"
    crash::crash_when_marked [4 1] "the operator crashes after the mark"
    crash::crash_when_removed [4 1] "the operator crashes after the removal"
    crash::crash_in_powering_on [4 1] "the operator crashes while on is on its way"
    crash::crash_in_returning [4 1] "the operator crashes while the machine boots"
    crash::crash_in_recovering [4 1] "the operator crashes while the node is let in"
    crash::crash_again_and_again [4 1] "the operator crashes every fifteen seconds"
    workload::two_stateful_sets_on_one_node [4 1] "two databases on one node"
    workload::all_sorts_beside_the_database [4 1] "ReplicaSet, DaemonSet and a bare pod beside the database"
    workload::pods_that_share_a_claim_go_together [4 1] "two pods share a claim"
    workload::bare_pod_holds_its_group [4 1] "a pod that nobody would make again shares a claim"
    workload::pod_with_a_finalizer [4 1] "a finalizer keeps the released pod"
    workload::deletion_refused_for_one_of_two [4 1] "an admission rule keeps one of two databases"
    workload::stateless_node_is_left_alone [4 1] "a node without anything that needs fencing"
    admin::request_on_a_healthy_node [4 1] "an admin has a healthy node fenced"
    admin::power_off_and_resume [4 1] "an admin takes a machine out and back"
    admin::two_admins_ask_for_the_same [4 1] "two admins ask for the same"
    admin::power_off_asked_for_in_the_middle [4 1] "an admin takes a machine out that is being fenced"
    admin::fence_deleted_while_it_fails [4 1] "an admin deletes a fence that fails"
    admin::fence_deleted_after_the_mark [4 1] "an admin deletes a fence after the mark"
    admin::fence_torn_out_with_its_slot [4 1] "an admin tears a fence out with its slot"
    admin::stop_before_the_off [4 1] "an admin says stop before the machine is off"
    admin::dry_run_does_nothing [4 1] "the policy is only a rehearsal"
    admin::paused_until_somebody_lifts_it [4 1] "the policy is paused for a while"
    admin::paused_in_the_middle [4 1] "the policy is paused in the middle of a fence"
    admin::excluded_node [4 1] "a node that the policy excludes dies"
    admin::node_in_maintenance [4 1] "a node in maintenance dies"
    meddling::node_deleted_in_the_middle [4 1] "an admin deletes the Node in the middle"
    meddling::node_deleted_and_made_again [4 1] "the Node is deleted and made again"
    meddling::policy_applied_again_in_the_middle [4 1] "the policy is applied again in the middle"
    meddling::policy_comes_back [4 1] "the policy is deleted and made again by the operator"
    meddling::policy_deleted_for_good [4 1] "the policy is deleted"
    meddling::quarantine_taint_removed [4 1] "an admin removes our taint"
    meddling::pod_deleted_by_an_admin [4 1] "an admin deletes the pod"
    agent::agent_with_native_read_back [4 1] "a fence agent in a Job switches the machine off, and the native driver reads it back"
    agent::outlet_that_the_bmc_reads_back [4 1] "an agent switches an outlet off, and the machine's BMC reads it back"
    agent::agent_alone [4 1] "a fence agent switches off, and is asked itself how the machine stands"
    agent::agent_only_says_so [4 1] "a fence agent says success and does nothing: nothing may move"
    agent::agent_lies_while_the_kubelet_answers [4 1] "a fence agent lies about everything while the kubelet answers"
    agent::agent_lies_behind_a_partition [4 1] "a fence agent lies about everything, and another device knows better"
    agent::agent_fails_after_success [4 1] "a fence agent does it and says that it failed"
    agent::agent_without_a_report [4 1] "a fence agent's pod dies without a word"
    agent::agent_tells_of_trouble_and_exits_zero [4 1] "a fence agent tells of trouble and exits 0"
    agent::agent_leaves_a_wrong_report [4 1] "a fence agent's pod leaves a report that nobody can read"
    agent::agent_meets_a_power_cycle [4 1] "somebody else's power cycle looks like off to a fence agent"
    agent::agent_hangs [4 1] "a fence agent hangs: the next level is tried"
    agent::image_that_nobody_has [4 1] "the image of the fence agents is on no node: the next level is tried"
    agent::executor_dies_in_the_middle [4 1] "the node that runs the fence agent dies in the middle of it"
    agent::nobody_left_to_run_the_agent [4 1] "every node that could run the fence agent falls silent in the middle"
    agent::executor_without_a_way [4 1] "the node that runs the fence agent cannot reach the device"
    agent::job_deleted_by_an_admin [4 1] "an admin deletes the Job of a fence"
    agent::pod_left_by_its_job [4 1] "an admin deletes the Job of a fence and leaves its pod behind"
    agent::own_pod_that_is_read_back [4 1] "a user's own pod switches off, and a device reads it back"
    agent::own_pod_alone_proves_nothing [4 1] "a user's own pod says that it is done, and nobody can see it"
    agent::own_pod_that_the_policy_trusts [4 1] "nobody can see what a user's own pod did, and the policy vouches for it"
    agent::own_pod_without_permission [4 1] "nobody can see what a user's own pod did, and nobody vouches for it"
    agent::own_pod_is_trusted_and_the_node_lives [4 1] "the policy vouches for a pod that only says so, while the kubelet answers"
    agent::own_pod_is_trusted_and_the_bmc_says_on [4 1] "the policy vouches for a pod that only says so, and the BMC knows better"
    agent::own_pod_is_trusted_and_the_node_comes_back [4 1] "a machine is switched on right after a trusted pod switched it off"
    agent::own_pod_is_trusted_and_the_operator_dies [4 1] "the operator dies while a trusted pod is at work"
    agent::both_or_else_power [4 1] "network and disk, or else power"
    builtin::drained_before_it_is_switched_off [4 1] "a healthy node is cordoned and drained before it is switched off"
    builtin::drain_of_a_dead_node_is_left_out [4 1] "nobody waits for a dead node to be drained"
    builtin::cordon_of_somebody_else_stays [4 1] "an admin's cordon outlives the fence"
    builtin::taint_of_ones_own [4 1] "a fence sets a taint of the admin's own choice"
    config::config_that_makes_no_sense [4 1] "a FenceConfig makes no sense"
    config::config_that_deletes_the_node [4 1] "a FenceConfig has the Node deleted when its machine is off"
    config::remedy_of_its_own [4 1] "a NodeRemedy has the control plane's word wait for nothing else"
    config::object_that_cannot_be_understood [4 1] "an object cannot be understood"
    config::request_for_nobody [4 1] "a request names a node that is not there"
    config::history_is_not_kept_for_ever [4 1] "more requests than anybody wants to keep"
    config::request_ahead_of_its_node [4 1] "a request is seen before its node"
    config::request_from_a_stranger [4 1] "a request comes from a namespace that is not listed"
    config::template_with_a_wrong_address [4 1] "a template leads to no device"
    preflight::bmc_goes_silent_on_a_healthy_node [4 1] "a BMC goes silent while nobody needs it: that is said at once"
    preflight::addresses_of_two_nodes_are_swapped [4 1] "two addresses are mixed up: both are found before either node fails"
    preflight::bmc_says_off_of_a_healthy_node [4 1] "a BMC says off of a machine that runs, while nobody needs it"
}
