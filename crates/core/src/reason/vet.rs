//! Why a request is held at a gate, or refused for good.
//!
//! A hold is for everything that may change by itself or by a person's hand; it is looked at again. A refusal is for
//! what no waiting can mend. Each sentence tells what was seen, what it means, and what can be done about it.

// The sentences are for people; that they are documentation as well does not make them Markdown.
#![allow(clippy::doc_markdown)]

use crate::ident::{NodeName, ProviderName, Uid};
use crate::snapshot::WitnessKind;
use crate::time::Span;

reasons! {
    /// Why a request waits at a gate.
    pub enum HoldReason {
        // mode, dry-run
        Paused => "the policy is paused: nothing new is fenced, running fences finish; set its mode to Enforce to go on",
        DryRun => "the policy's mode is DryRun: nothing is done, and where no other gate is closed the node would be fenced now; set the mode to Enforce to fence",

        // exclusions
        TargetNotSeen { watched: Span } => "no such Node is in view {watched} after the request was first seen; the request may have overtaken our watch, so it is looked for again before the request is refused",
        NodeBeingDeleted => "the Node object is being deleted: whoever deletes it looks after its pods; if the deletion hangs, see which finalizer is left",
        ExcludedByLabel { label: String } => "the policy excludes nodes with the label {label}; remove the label if this node may be fenced",
        InMaintenance { mark: String } => "{mark} says that people or a maintenance tool are at work on the node; it is left alone until that mark is gone",
        LeavingByAutoscaler { taint: String } => "the taint {taint} says that an autoscaler is removing the node; it is left to the autoscaler until the taint is gone",
        PausedByPeer { mark: String } => "{mark} tells remediators to leave the node alone; remove it, or set exclusions.honourPeers to false, if Palisade shall act",

        // duplicates
        FenceRunning { fence: Uid } => "the node already has a live NodeFence ({fence}); this request is answered together with it",
        HeldOff { fence: Uid } => "the node is held off on purpose by NodeFence {fence}; say resume there before it is fenced again",

        // grace, quiet
        InGrace { observed: Span, grace: Span } => "the node has been unwell for {observed} of the {grace} that it is given to recover by itself",
        StartingUp { running: Span, quiet: Span } => "this process has watched the cluster for {running}; in its first {quiet} it fences nothing",

        // observer
        ApiStale { age: Span, limit: Span } => "the API server has not answered us for {age}, and what we know may be {limit} old at most: we may be the ones who are cut off; check the operator's own connection",
        SelfCheckFailed => "our own connectivity check fails, so it is likely that the operator's node is isolated and not the target; check the operator's network",
        AfterOutage { ended: Span, quiet: Span } => "we were cut off ourselves until {ended} ago; for {quiet} after that nothing is fenced, and all timers start again from there",
        StandbySeesAlive { published: Span } => "the standby replica sees the node's lease move (told {published} ago): the silence may be on our side only",

        // witness
        LeaseMoves => "the node's lease moves again: there is no silence left to act upon",
        LeaseOnlyLate => "one renewal of the node's lease is missing, and its power device does not say off: that may be a hiccup; waiting for the second one, or for the device's word",
        WitnessSeesAlive { witness: WitnessKind } => "the lease is silent, but {witness} sees the node alive and the control plane still calls it Ready; waiting for one of them to change",
        WitnessesDisagree { alive: WitnessKind, silent: WitnessKind } => "{alive} sees the node alive while {silent} says that it is gone; one of them may watch another machine: check how they are configured",
        NoWitness { asked: usize } => "the lease alone is silent: of {asked} witnesses none that had seen the node alive shortly before confirms its death; waiting for one, or for Ready=Unknown",

        // storm
        ObserverSuspect { size: u32 } => "all {size} nodes of the cluster are down at once: it is likelier that we are blind than that all of them died; check the operator's and the API server's network",
        StormBrake { domain: String, down: u32, size: u32, allowed: u32 } => "{down} of {size} nodes are down in {domain}, {allowed} are allowed: so many at once look like a network or power fault that fencing would make worse; repair it, or raise the limit",
        OthersReturning { domain: String, returning: u32, down: u32, size: u32, allowed: u32 } => "{returning} nodes of {domain} have come back a moment ago, beside {down} of {size} that are down ({allowed} are allowed): what kept them away is ending, and the others get the time to come back too",
        OthersUnheard { domain: String, unheard: u32, down: u32, size: u32, allowed: u32 } => "only one renewal is missing, and {unheard} other nodes of {domain} have not been heard since, beside {down} of {size} that are down ({allowed} are allowed): they may have died together, and are asked now; without an answer the second missing renewal decides",
        WholeDomainDown { domain: String, size: u32 } => "all {size} nodes of {domain} are down while others live: a switch is likelier to have failed than every machine; repair it, or set wholeDomain to Fence if the domain really is gone",

        // quorum
        QuorumUnknown => "the node carries a control-plane role, but the members of the control plane's quorum are not known, so it cannot be said whether the rest could go on without it",
        QuorumStale { age: Span, limit: Span } => "the leases of the control plane were read {age} ago, {limit} at most are allowed; waiting for a live read",
        QuorumAtRisk { members: u32, silent: u32, left: u32, needed: u32 } => "of {members} control-plane members {silent} others are silent; without this one {left} would be left and {needed} are needed: fencing it could end the quorum; bring another member back first",
        ControlPlaneBusy { by: NodeName } => "control-plane members are fenced one at a time, and {by} is being fenced; waiting until it has given its slot back",

        // storage
        StorageSilent { provider: ProviderName } => "the storage provider {provider} has never answered, so it cannot be said whether the data would survive; check its configuration",
        StorageStale { provider: ProviderName, age: Span, limit: Span } => "the last answer of storage provider {provider} is {age} old, {limit} at most are allowed; check whether it can be reached",
        StorageNotClean { provider: ProviderName, clean: u32, all: u32 } => "{clean} of {all} placement groups of {provider} are clean while its daemons run on this node: taking it away now could make data unavailable; waiting until all are clean, or until the daemons there are down",
        RedundancyLost { provider: ProviderName } => "{provider} says that without this node volumes would have no healthy copy left; waiting until it has repaired them",
        RedundancyUnknown { provider: ProviderName } => "{provider} runs on this node but cannot say whether its volumes would survive without it",
        DisruptionBudgetUsed { budget: String, unavailable: u32, allowed: u32 } => "the MachineDisruptionBudget {budget} lets {allowed} of its nodes be unavailable, and {unavailable} others are: waiting until there is room for this one",
        DisruptionBudgetStale { budget: String, age: Span, limit: Span } => "the MachineDisruptionBudget {budget} has not been brought up to date for {age}, {limit} at most are allowed; check the controller that maintains it",

        // storage-outage, storage-in-use
        StorageUnreachable { provider: ProviderName } => "the node cannot reach its storage {provider}: its workload could not run elsewhere for the same reason, so fencing would help nobody; repair the storage first",
        StorageInUse { provider: ProviderName } => "the node still uses its storage {provider}: it lives, only we do not hear it; waiting until the use ends",
        StorageUseUnknown { provider: ProviderName, age: Span } => "whether the node still uses its storage {provider} has not been known for {age}, and the policy says to wait while it does; check the provider",

        // kdump
        KdumpExpected { watched: Span, wait: Span } => "the node may have crashed and be about to save a kernel dump; {watched} of {wait} have passed without a sign of it",
        KdumpRunning { running: Span } => "the node has been saving a kernel dump for {running}; switching it off would destroy it; waiting until it is done",

        // workload
        NoStatefulWorkload => "no StatefulSet member and no single-writer volume is on the node: Kubernetes moves the rest by itself; set workload to AnyNode to fence it all the same",
        WorkloadUnknown => "the pods of the node could not be listed yet, so it is not known whether fencing would help",

        // flap, approval
        Flapping { failures: u32, window: Span } => "the node failed {failures} times within {window}: fencing it again and again does not mend it; repair it, or approve this request",
        AwaitingApproval => "the policy wants a person to approve each fence, and nobody has approved this one; say approve to let it go on",

        // budget
        LedgerMissing => "the ledger of fences in flight could not be read or does not exist yet; it is rebuilt from a live list before anything is fenced",
        LedgerForeign { built_for: Uid } => "the ledger of fences in flight was built for another FencePolicy ({built_for}); it is rebuilt from a live list before anything is fenced",
        BudgetFull { in_flight: u32, allowed: u32 } => "{in_flight} fences are in flight, {allowed} are allowed; waiting for one to end",
        TooSoon { since: Span, spacing: Span } => "the last fence began {since} ago, {spacing} must lie between two",
        RateReached { granted: u32, allowed: u32, per: Span } => "{granted} fences began within {per}, {allowed} are allowed; waiting until one of them is older than that",
    }
}

reasons! {
    /// Why a request is refused for good.
    pub enum RejectReason {
        NamespaceNotAllowed { namespace: String } => "requests from namespace {namespace} are not honoured; the policy lists those that are",
        NodeUnknown { node: NodeName } => "there is no Node {node}; check the name",
        NodeReplaced { node: NodeName, asked: Uid, found: Uid } => "the request names Node {node} with UID {asked}, but the Node of that name now has UID {found}: the one that was meant is gone, and its successor has done nothing",
    }
}
