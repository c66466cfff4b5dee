//! The `FencePolicy`, checked and in the units of `core`.
//!
//! Made once from the object (`resolve`); from here on no value can be missing or out of range.

use palisade_api::names::{self, labels};
use palisade_api::selector::LabelSelector;

use crate::ident::{DriverName, ProviderName, Uid};
use crate::request::history::Keep;
use crate::time::Span;

/// Whether, and how fast, anything may be fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The UID of the `FencePolicy`: a ledger that was built for another one does not count. Empty: there is none yet.
    pub uid: Uid,
    /// Enforce, only say what would be done, or admit nothing new.
    pub mode: Mode,
    /// Namespaces whose requests are honoured.
    pub request_namespaces: Vec<String>,
    /// Nodes that are never fenced.
    pub exclusions: Exclusions,
    /// How long a node may be unwell before it is fenced, where the request does not say.
    pub grace: Span,
    /// Nothing is fenced in this time after the process started.
    pub startup_quiet: Span,
    /// How old a word may be, of the API server, the standby replica or a witness, for the observer to trust it.
    pub observer_fresh: Span,
    /// Nothing is fenced in this time after an observer outage ended, and every grace period starts again.
    pub outage_quiet: Span,
    /// The brakes against fencing storms.
    pub storm: Storm,
    /// How many, how often.
    pub budget: Budget,
    /// Keep the control plane's quorum.
    pub protect_quorum: bool,
    /// What storage may veto.
    pub storage: StorageGates,
    /// Kernel dumps.
    pub kdump: Kdump,
    /// Which nodes need fencing at all.
    pub workload: WorkloadRule,
    /// Nodes that fail again and again.
    pub flap: Flap,
    /// Whether lease silence needs a witness before it counts.
    pub witness: WitnessRule,
    /// Whether a person has to approve each fence.
    pub approval: Approval,
    /// How pods are released.
    pub release: ReleasePolicy,
    /// How long requests that have ended are kept, and how many of a node.
    pub history: Keep,
    /// How long a gate that cannot name a better time waits before it is looked at again.
    pub recheck: Span,
}

/// What the operator may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Fence.
    #[default]
    Enforce,
    /// Write the verdict to the request, and nothing else.
    DryRun,
    /// Admit nothing new; fences that run go on.
    Paused,
}

/// Nodes that are left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// Any of these excludes a node that it selects.
    pub selectors: Vec<LabelSelector>,
    /// Honour the marks of other remediators, maintenance tools and autoscalers (`vet/exclusions.rs` lists them).
    pub honour_peers: bool,
}

/// Storm brakes: one for the cluster, one per topology key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storm {
    /// How much of the whole cluster may be down.
    pub cluster: Share,
    /// How much of each failure domain may be down, by topology key.
    pub domains: Vec<DomainBrake>,
}

/// The brake of one topology key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainBrake {
    /// The node label whose value names the domain: zone, rack, switch.
    pub topology_key: String,
    /// How much of a domain may be down.
    pub limit: Share,
    /// A whole domain is down while others live: hold, or fence it.
    pub whole_domain: WholeDomain,
}

/// What to do when a whole failure domain is silent while others live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WholeDomain {
    /// Hold: a switch is likelier to fail than a rack.
    #[default]
    Hold,
    /// Fence within the budget: the domain really is gone.
    Fence,
}

/// A part of a whole: a percentage or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// So many in a hundred, rounded down.
    Percent(u8),
    /// Exactly so many.
    Count(u32),
}

impl Share {
    /// How many of `size` that is. Never fewer than one: in a domain of two, 40 % would block the very first failure.
    pub fn of(self, size: u32) -> u32 {
        let share = match self {
            // Widened, so that 100 % of a very large domain cannot overflow.
            Self::Percent(percent) => u32::try_from(u64::from(size) * u64::from(percent) / 100).unwrap_or(u32::MAX),
            Self::Count(count) => count,
        };
        share.max(1)
    }
}

/// The budget of fences in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How many fences may hold a slot at once.
    pub max_concurrent: u32,
    /// How long after one grant the next may follow.
    pub spacing: Span,
    /// How many grants in how long a time.
    pub rate: Option<Rate>,
}

/// So many in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// In how long.
    pub per: Span,
}

/// What storage may veto.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageGates {
    /// Providers whose placement groups, redundancy and answers have to be good, by name; an absent or stale answer closes the gate.
    pub providers: Vec<ProviderName>,
    /// A report older than this is stale.
    pub fresh: Span,
    /// Honour `MachineDisruptionBudgets` (002).
    pub disruption_budgets: bool,
    /// Skip a node that cannot reach its storage (003): fencing would help nobody.
    pub skip_on_outage: bool,
    /// Skip a node that still uses its storage (003: a live storage lease).
    pub skip_in_use: bool,
}

/// Kernel dumps (003).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kdump {
    /// Look for dump notifications.
    pub enabled: bool,
    /// How long to wait for the first one, from the failure on (`kdump.wait`).
    pub wait_for_start: Span,
    /// How long after the last one a dump counts as running.
    pub running_for: Span,
    /// A running dump is a proof that the workload has stopped (its packets are not authenticated: opt-in).
    pub proves: bool,
}

/// Which nodes need fencing at all (001: workload suitability).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkloadRule {
    /// Only nodes with `StatefulSet` members or single-writer volumes.
    #[default]
    StatefulOnly,
    /// Every node.
    AnyNode,
}

/// Nodes that fail again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    /// So many failures, this one included (zero: never) ...
    pub count: u32,
    /// ... in this time hold the node for a person.
    pub window: Span,
}

/// Whether lease silence needs a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessRule {
    /// A claim from lease silence alone waits until a witness agrees or Ready turns Unknown.
    pub required: bool,
    /// A witness counts only if it saw the node alive this long before the silence began, or later.
    pub trusted_for: Span,
}

/// Whether a person has to approve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// No.
    #[default]
    Never,
    /// Each fence.
    Always,
}

/// How pods are released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasePolicy {
    /// Labels, any of which opts a pod into the pod lane.
    pub opt_in: Vec<(String, String)>,
    /// Whether the pod lane needs such a label at all.
    pub opt_in_required: bool,
    /// How many pods may be released in how long a time (003).
    pub pace: Option<Rate>,
    /// Hold a pod whose `PodDisruptionBudget` allows no disruption (003).
    pub respect_pdb: bool,
    /// Set the out-of-service taint under a power proof, for drivers that act on it.
    pub out_of_service: bool,
    /// Drivers without fence that refuse to attach elsewhere until they cut the node off (004 `SafeDetach`).
    pub driver_guard: Vec<DriverName>,
    /// How often pods that could not be released are looked at again.
    pub look_again: Span,
}

impl Default for Policy {
    /// The defaults of the schema; a test in `resolve` holds the two together.
    fn default() -> Self {
        Self {
            uid: Uid::default(),
            mode: Mode::Enforce,
            request_namespaces: vec![names::SYSTEM_NAMESPACE.to_owned()],
            exclusions: Exclusions { selectors: Vec::new(), honour_peers: true },
            grace: Span::ZERO,
            startup_quiet: Span::secs(60),
            observer_fresh: Span::secs(15),
            outage_quiet: Span::secs(60),
            storm: Storm { cluster: Share::Percent(40), domains: Vec::new() },
            budget: Budget { max_concurrent: 1, spacing: Span::ZERO, rate: None },
            protect_quorum: true,
            storage: StorageGates { fresh: Span::secs(90), disruption_budgets: true, ..StorageGates::default() },
            kdump: Kdump { enabled: false, wait_for_start: Span::secs(30), running_for: Span::secs(90), proves: false },
            workload: WorkloadRule::StatefulOnly,
            flap: Flap { count: 3, window: Span::mins(60) },
            witness: WitnessRule { required: true, trusted_for: Span::secs(60) },
            approval: Approval::Never,
            release: ReleasePolicy::default(),
            history: Keep::default(),
            recheck: Span::secs(30),
        }
    }
}

impl Default for ReleasePolicy {
    fn default() -> Self {
        let yes = |key: &str| (key.to_owned(), labels::FENCED_VALUE.to_owned());
        Self {
            opt_in: vec![yes(labels::FENCED), yes(labels::STORAGEOS_FENCED)],
            opt_in_required: true,
            pace: None,
            respect_pdb: false,
            out_of_service: false,
            driver_guard: Vec::new(),
            look_again: Span::secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_and_never_below_one() {
        let shares =
            [(40, 10, 4), (40, 9, 3), (40, 2, 1), (40, 0, 1), (0, 100, 1), (1, 199, 1), (1, 200, 2), (100, 7, 7)];
        for (percent, size, expected) in shares {
            assert_eq!(Share::Percent(percent).of(size), expected, "{percent}% of {size}");
        }
        assert_eq!(Share::Count(0).of(10), 1);
        assert_eq!(Share::Count(7).of(3), 7);
    }

    #[test]
    fn a_share_of_the_largest_domain_does_not_overflow() {
        assert_eq!(Share::Percent(100).of(u32::MAX), u32::MAX);
        assert_eq!(Share::Percent(u8::MAX).of(u32::MAX), u32::MAX);
    }
}
