//! View / node: one Node as the operator keeps it, and since when it looks well.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use palisade_api::names::taints;
use palisade_core::detect::NodeMemory;
use palisade_core::detect::conditions::SeenCondition;
use palisade_core::detect::lease::SeenLease;
use palisade_core::detect::sight::Sight;
use palisade_core::ident::{BootId, NodeName, ResourceVersion, Uid, VolumeName};
use palisade_core::observe::{NodeLive, NodeRead, TaintSeen};
use palisade_core::prove::LifeSigns;
use palisade_core::snapshot::Ready;
use palisade_core::time::{Span, Tick};
use palisade_core::vet::exclusions::counts;

use super::ShownLease;
use super::lean::{LeanNode, LeanStatus};

/// A lease counts as silent from so many missed renewals on.
const SILENT: u64 = 2;
/// A device's word that is older says nothing of now.
const OFF_FRESH: Span = Span::secs(10);

/// A Node, reduced to what somebody decides by.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeFacts {
    /// Its UID.
    pub(crate) uid: Uid,
    /// Its version.
    pub(crate) resource_version: ResourceVersion,
    /// Its labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Its annotations, as far as some gate knows them.
    pub(crate) annotations: BTreeMap<String, String>,
    /// Its taints, as they stand: key, value, effect, and when they were added.
    pub(crate) taints: Vec<k8s_openapi::api::core::v1::Taint>,
    /// It is unschedulable.
    pub(crate) cordoned: bool,
    /// It has a deletionTimestamp.
    pub(crate) deleting: bool,
    /// Its boot.
    pub(crate) boot: Option<BootId>,
    /// The machine's UUID, in lower case.
    pub(crate) system_uuid: Option<String>,
    /// Where its kubelet listens.
    pub(crate) kubelet: Option<Box<SocketAddr>>,
    /// Ready.
    pub(crate) ready: Ready,
    /// The heartbeat of Ready.
    pub(crate) heartbeat: Option<Box<str>>,
    /// All conditions, until the detectors have taken them in.
    pub(crate) conditions: Vec<SeenCondition>,
    /// `status.volumesInUse`.
    pub(crate) volumes_in_use: BTreeSet<VolumeName>,
    /// `status.volumesAttached`.
    pub(crate) volumes_attached: BTreeSet<VolumeName>,
}

impl NodeFacts {
    /// Reads a Node.
    pub(crate) fn read(node: &LeanNode) -> Self {
        let meta = &node.metadata;
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.as_ref();
        let info = status.and_then(|status| status.node_info.as_ref());
        let owned = |(key, value): (&String, &String)| (key.clone(), value.clone());
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let in_use = status.and_then(|status| status.volumes_in_use.as_deref()).unwrap_or_default();
        let attached = status.and_then(|status| status.volumes_attached.as_deref()).unwrap_or_default();
        Self {
            uid: Uid::new(meta.uid.clone().unwrap_or_default()),
            resource_version: ResourceVersion::new(meta.resource_version.clone().unwrap_or_default()),
            labels: meta.labels.clone().unwrap_or_default(),
            annotations: meta.annotations.iter().flatten().filter(|(key, _)| counts(key)).map(owned).collect(),
            cordoned: spec.unschedulable.unwrap_or(false),
            taints: spec.taints.unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            boot: text(info.and_then(|info| info.boot_id.as_deref())).map(BootId::new),
            system_uuid: text(info.and_then(|info| info.system_uuid.as_deref())).map(|uuid| uuid.to_lowercase()),
            kubelet: status.and_then(kubelet).map(Box::new),
            ready: match ready.map(|ready| ready.status.as_str()) {
                Some("True") => Ready::True,
                Some("False") => Ready::False,
                Some(_) | None => Ready::Unknown,
            },
            heartbeat: ready.and_then(|ready| ready.last_heartbeat_time.as_ref()).map(|at| at.0.to_string().into()),
            conditions: conditions
                .iter()
                .map(|seen| SeenCondition {
                    condition: seen.type_.as_str().into(),
                    status: seen.status.as_str().into(),
                    reason: seen.reason.clone().unwrap_or_default().into(),
                })
                .collect(),
            volumes_in_use: in_use.iter().map(|name| VolumeName::from(name.as_str())).collect(),
            volumes_attached: attached.iter().map(|volume| VolumeName::from(volume.name.as_str())).collect(),
        }
    }

    fn taints_seen(&self) -> BTreeSet<TaintSeen> {
        let mut seen = BTreeSet::new();
        for taint in &self.taints {
            match taint.key.as_str() {
                taints::QUARANTINE => {
                    seen.insert(TaintSeen::Quarantine(Uid::new(taint.value.clone().unwrap_or_default())));
                }
                taints::OUT_OF_SERVICE => {
                    seen.insert(TaintSeen::OutOfService);
                }
                _ => {}
            }
        }
        seen
    }
}

/// Where the kubelet listens: the port of its own word, at the first internal address, by which the cluster's own parts reach it.
fn kubelet(status: &LeanStatus) -> Option<SocketAddr> {
    let port = status.daemon_endpoints.as_ref()?.kubelet_endpoint.as_ref()?.port;
    let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
    let addresses = status.addresses.as_deref().unwrap_or_default();
    let internal = addresses.iter().filter(|address| address.type_ == "InternalIP");
    let mut parsed = internal.filter_map(|address| address.address.parse::<IpAddr>().ok());
    parsed.next().map(|ip| SocketAddr::new(ip, port))
}

/// A node and everything that this process saw of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTrack {
    /// As it stands; none once it is gone.
    pub(crate) facts: Option<NodeFacts>,
    /// The lease as it stands.
    pub(crate) lease: Option<SeenLease>,
    /// How new that is.
    lease_version: u64,
    /// What the detectors remember.
    pub(crate) memory: NodeMemory,
    /// Since when it is Ready with a lease that moves, seen to move.
    ready_since: Option<Tick>,
}

impl NodeTrack {
    /// The Node was seen.
    pub(crate) fn see_node(&mut self, mut facts: NodeFacts, now: Tick) {
        self.memory.recognise(&facts.uid, facts.boot.as_ref());
        if self.memory.lease.is_unseen() {
            // The lease was listed before the Node, or the Node is a new one: a dead node's lease never moves again, so this
            // is the only time that it is seen.
            self.memory.lease.observe(self.lease.clone(), now);
        }
        self.memory.conditions.observe(&std::mem::take(&mut facts.conditions), now);
        self.facts = Some(facts);
        self.see_well(now);
    }

    /// The Node is gone.
    pub(crate) fn lose_node(&mut self) {
        self.facts = None;
        self.ready_since = None;
    }

    /// The lease was seen.
    pub(crate) fn see_lease(&mut self, shown: Option<ShownLease>, now: Tick) {
        self.lease_version = shown.as_ref().map_or(0, |shown| shown.version);
        let lease = shown.map(|shown| shown.seen);
        let moved = self.lease != lease;
        self.memory.lease.observe(lease.clone(), now);
        self.lease = lease;
        if moved {
            self.see_well(now);
        }
    }

    /// How new the lease is, as it is known.
    pub(crate) fn lease_version(&self) -> u64 {
        self.lease_version
    }

    /// Something moved: if the node is Ready now, it is so from here on at the latest.
    fn see_well(&mut self, now: Tick) {
        let ready = self.facts.as_ref().is_some_and(|facts| facts.ready == Ready::True);
        self.ready_since = if ready { self.ready_since.or(Some(now)) } else { None };
    }

    /// Whether the lease is silent; what cannot be told is not silent.
    pub(crate) fn lease_silent(&self, node: &NodeName, sight: Sight, now: Tick) -> bool {
        self.memory.lease.silence(node, sight, now).is_ok_and(|silence| silence.missed >= SILENT)
    }

    /// Since when a renewal is overdue.
    pub(crate) fn late_since(&self, node: &NodeName, sight: Sight, now: Tick) -> Option<Tick> {
        let silence = self.memory.lease.silence(node, sight, now).ok()?;
        (silence.missed > 0).then(|| silence.began + silence.interval)
    }

    /// When it was last heard of: its lease moved, or its kubelet answered.
    pub(crate) fn last_heard(&self) -> Option<Tick> {
        self.memory.last_heard()
    }

    /// Whether its power device said last, and lately, that it is off.
    pub(crate) fn says_off(&self, now: Tick) -> bool {
        self.memory.witnesses.says_off(OFF_FRESH, now)
    }

    /// Forgets a time of health that a silence has ended.
    pub(crate) fn note_silence(&mut self) {
        self.ready_since = None;
    }

    /// What `core` sees of the node.
    pub(crate) fn live(&self, node: &NodeName, read: Option<NodeRead>, sight: Sight, now: Tick) -> Option<NodeLive> {
        let facts = self.facts.as_ref()?;
        Some(NodeLive {
            uid: facts.uid.clone(),
            resource_version: facts.resource_version.clone(),
            read,
            ready: facts.ready,
            ready_for: self.ready_since.map(|since| now.since(since)),
            life: LifeSigns {
                renewed: self.lease.as_ref().and_then(|lease| lease.renewed.clone()),
                heartbeat: facts.heartbeat.clone(),
                boot: facts.boot.clone(),
            },
            lease_silent: self.lease_silent(node, sight, now),
            lease_late: self.late_since(node, sight, now).is_some(),
            taints: facts.taints_seen(),
            cordoned: facts.cordoned,
            volumes_in_use: facts.volumes_in_use.clone(),
            volumes_attached: facts.volumes_attached.clone(),
        })
    }
}
