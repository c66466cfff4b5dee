//! Facts about what is seen: `node`, `pod`, `volume`, `attachment`, `call`, `read`, `admin` and the rest.

use std::collections::BTreeMap;

use palisade_core::fence::Slot;
use palisade_core::ident::{DriverName, PodRef, ProviderName, Uid, VolumeName};
use palisade_core::observe::{
    Access, Admin, AttachmentSeen, CallAnswer, CallId, CallOutcome, Confirmation, Deletion, LedgerSeen, Mount, Owner,
    PodSeen, ReadAnswer, ReadId, TaintSeen, Vetted, VolumeSeen,
};
use palisade_core::prove::{PlugRead, Sample, Seen};
use palisade_core::snapshot::{Ready, WitnessWord};
use palisade_core::time::{Span, Tick};

use super::fence_facts::attachment_ref;
use super::{World, one_of, parse};
use crate::golden::Fact;

const READY: &[(&str, Ready)] = &[("True", Ready::True), ("False", Ready::False), ("Unknown", Ready::Unknown)];

impl World {
    pub(super) fn take_seen_fact(&mut self, fact: &mut Fact) -> Result<bool, String> {
        match fact.kind.as_str() {
            "node" => self.take_node(fact)?,
            "healthy" => self.take_healthy(),
            "pod" => self.take_pod(fact)?,
            "volume" => self.take_volume(fact)?,
            "attachment" => self.take_attachment(fact)?,
            "unlisted" => {
                self.pods_listed &= !fact.flag("pods");
                self.attachments_listed &= !fact.flag("attachments");
            }
            "unusable" => self.seen.unusable = Some(fact.word("why")?.into()),
            "vetted" => {
                let word = fact.word("open, closed or refused")?;
                let table = [("open", Vetted::Open), ("closed", Vetted::Closed), ("refused", Vetted::Refused)];
                self.seen.vetted = one_of(fact, &word, &table)?;
            }
            "ledger" => {
                let word = fact.word("present, absent or unknown")?;
                let wanted = self.fence.grant + u32::from(self.fence.slot == Slot::None);
                let table = [
                    ("present", LedgerSeen::Present { grant: fact.value_or("grant", wanted)? }),
                    ("absent", LedgerSeen::Absent),
                    ("unknown", LedgerSeen::Unknown),
                ];
                self.seen.ledger = one_of(fact, &word, &table)?;
            }
            "evidence" => {
                let word = fact.word("stands or cleared")?;
                self.seen.evidence_cleared = one_of(fact, &word, &[("stands", false), ("cleared", true)])?;
            }
            "power-step" => {
                let word = fact.word("wanted or unwanted")?;
                self.seen.power_wanted = one_of(fact, &word, &[("wanted", true), ("unwanted", false)])?;
            }
            "admin" => self.take_admin(fact),
            "call" => self.take_call(fact)?,
            "read" => self.take_read(fact)?,
            "job-over" => {
                let call = call_id(fact)?;
                self.seen.jobs_over.insert(call);
            }
            "unpublished" => {
                let volume = fact.word("the volume")?;
                let pod = fact.text("for").unwrap_or_default();
                self.seen.unpublished.insert((Uid::new(pod), VolumeName::new(volume)));
            }
            "released-lately" => self.seen.released_lately = parse(fact, "how many pods")?,
            "kdump" => {
                let word = fact.word("proves or over")?;
                self.seen.kdump_proves = one_of(fact, &word, &[("proves", true), ("over", false)])?;
            }
            _ => return self.take_device_fact(fact),
        }
        Ok(true)
    }

    /// `node ready=True lease=renewed boot=b2 rv=8 cached taints=quarantine in-use=v1 attached=v1`: says what changes.
    fn take_node(&mut self, fact: &mut Fact) -> Result<(), String> {
        self.node_gone = fact.flag("gone");
        let node = &mut self.node;
        if let Some(uid) = fact.text("uid") {
            node.uid = Uid::new(uid);
        }
        if let Some(version) = fact.text("rv") {
            node.resource_version = version.as_str().into();
        }
        if let Some(boot) = fact.text("boot") {
            node.life.boot = (boot != "none").then(|| boot.as_str().into());
        }
        if let Some(ready) = fact.text("ready") {
            node.ready = one_of(fact, &ready, READY)?;
        }
        if let Some(lease) = fact.text("lease") {
            let words = [("silent", (true, true)), ("late", (false, true)), ("moving", (false, false))];
            (node.lease_silent, node.lease_late) = one_of(fact, &lease, &words)?;
        }
        for (key, sign) in [("renewed", &mut node.life.renewed), ("heartbeat", &mut node.life.heartbeat)] {
            if let Some(stamp) = fact.text(key) {
                *sign = (stamp != "none").then(|| stamp.into());
            }
        }
        if let Some(span) = fact.text("ready-for") {
            let span: Span = span.parse().map_err(|why| fact.wrong(&format!("ready-for={span}: {why}")))?;
            node.ready_for = Some(span);
        }
        if fact.flag("live") {
            node.read = Some(super::JUST_NOW);
        }
        if fact.flag("cached") {
            node.read = None;
        }
        node.cordoned = (node.cordoned || fact.flag("cordoned")) && !fact.flag("schedulable");
        if let Some(taints) = fact.text("taints") {
            node.taints = taints
                .split(',')
                .filter(|name| *name != "none")
                .map(|name| taint(name, fact))
                .collect::<Result<_, _>>()?;
        }
        for (key, volumes) in [("in-use", &mut node.volumes_in_use), ("attached", &mut node.volumes_attached)] {
            if let Some(names) = fact.text(key) {
                *volumes = names.split(',').filter(|name| *name != "none").map(VolumeName::from).collect();
            }
        }
        Ok(())
    }

    /// Ready for long enough, its lease moving, and what it was fenced for has cleared. It is the same boot.
    fn take_healthy(&mut self) {
        self.node.ready = Ready::True;
        self.node.ready_for = Some(Span::secs(30));
        self.node.lease_silent = false;
        self.node.life.renewed = Some("r9".into());
        self.node.life.heartbeat = Some("h9".into());
        self.seen.evidence_cleared = true;
    }

    /// `pod db-0 owner=StatefulSet claims=pv1,pv2:ro,unbound mounts=hostpath labels=palisade.dev/fenced:true marked`.
    fn take_pod(&mut self, fact: &mut Fact) -> Result<(), String> {
        let name = fact.word("the pod")?;
        let at = self.pods.iter().position(|pod| &*pod.pod.name == name.as_str());
        if fact.flag("gone") {
            at.map(|at| self.pods.remove(at));
            return Ok(());
        }
        let mut pod = at.map_or_else(|| new_pod(&name), |at| self.pods.remove(at));
        if let Some(uid) = fact.text("uid") {
            pod.pod.uid = Uid::new(uid);
        }
        if let Some(namespace) = fact.text("ns") {
            pod.pod.namespace = namespace.into();
        }
        if let Some(version) = fact.text("rv") {
            pod.resource_version = version.as_str().into();
        }
        if let Some(owner) = fact.text("owner") {
            pod.owner = one_of(
                fact,
                &owner,
                &[
                    ("StatefulSet", Owner::StatefulSet),
                    ("ReplicaSet", Owner::Replaces),
                    ("Job", Owner::Replaces),
                    ("DaemonSet", Owner::DaemonSet),
                    ("Static", Owner::Static),
                    ("none", Owner::Nobody),
                ],
            )?;
        }
        for label in fact.list("labels") {
            let (key, value) = label.split_once(':').unwrap_or((&label, ""));
            pod.labels.insert(key.to_owned(), value.to_owned());
        }
        pod.grace = fact.value_or("grace", pod.grace)?;
        for (word, deletion) in [("marked", Deletion::Marked), ("forced", Deletion::Forced)] {
            if fact.flag(word) {
                pod.deletion = deletion;
            }
        }
        pod.finalizers |= fact.flag("finalizer");
        pod.completed |= fact.flag("completed");
        pod.after_taint |= fact.flag("after-taint");
        pod.pdb_blocks |= fact.flag("pdb-blocks");
        pod.mounts.extend(fact.list("claims").iter().map(|claim| claim_of(claim)));
        for mount in fact.list("mounts") {
            let table =
                [("hostpath", Mount::HostPath), ("inline-network", Mount::InlineNetwork), ("private", Mount::Private)];
            let names: Vec<_> = table.iter().map(|(name, _)| *name).collect();
            let found = table.iter().find(|(name, _)| *name == mount).map(|(_, mount)| mount.clone());
            pod.mounts.push(found.ok_or_else(|| fact.wrong(&format!("`{mount}` is none of {}", names.join(", "))))?);
        }
        let at = at.unwrap_or(self.pods.len());
        self.pods.insert(at, pod);
        Ok(())
    }

    /// `volume pv1 name=v1 provider=stos driver=csi.storageos.com driver-fences access=Single local unhealthy`.
    fn take_volume(&mut self, fact: &mut Fact) -> Result<(), String> {
        let pv = fact.word("the PersistentVolume")?;
        let default_name = pv.strip_prefix('p').unwrap_or(&pv).to_owned();
        let access = fact.text("access").unwrap_or_else(|| "Single".to_owned());
        let volume = VolumeSeen {
            name: VolumeName::new(fact.text("name").unwrap_or(default_name)),
            access: one_of(
                fact,
                &access,
                &[
                    ("Single", Access::Single),
                    ("ReadOnlyMany", Access::ReadOnlyMany),
                    ("ReadWriteMany", Access::ReadWriteMany),
                ],
            )?,
            local: fact.flag("local"),
            driver: fact.text("driver").map(DriverName::new),
            driver_fences: fact.flag("driver-fences"),
            provider: fact.text("provider").map(ProviderName::new),
            healthy: match (fact.flag("unhealthy"), fact.flag("health-unknown")) {
                (true, _) => Some(false),
                (false, true) => None,
                (false, false) => Some(true),
            },
        };
        self.seen.volumes.insert(pv.into(), volume);
        Ok(())
    }

    /// `attachment va1 volume=v1 deleting error="not found"`; `attachment va1 gone`.
    fn take_attachment(&mut self, fact: &mut Fact) -> Result<(), String> {
        let attachment = attachment_ref(&fact.word("the attachment")?);
        self.attachments.retain(|known| known.attachment.name != attachment.name);
        if fact.flag("gone") {
            return Ok(());
        }
        let volume = VolumeName::new(fact.text("volume").ok_or_else(|| fact.wrong("volume= is missing"))?);
        let detach_error = fact.text("error").map(Into::into);
        let deleting = fact.flag("deleting");
        self.attachments.push(AttachmentSeen { attachment, volume, deleting, detach_error });
        Ok(())
    }

    /// `admin stop`, `admin resume`, `admin confirm=jane uid=u1 boot=b1`, `admin silent`.
    fn take_admin(&mut self, fact: &mut Fact) {
        if fact.flag("silent") {
            self.seen.admin = Admin::default();
        }
        self.seen.admin.stop |= fact.flag("stop");
        self.seen.admin.resume |= fact.flag("resume");
        if let Some(by) = fact.text("confirm") {
            let uid = Uid::new(fact.text("uid").unwrap_or_else(|| "u1".to_owned()));
            let boot = fact.text("boot").unwrap_or_else(|| "b1".to_owned()).as_str().into();
            self.seen.admin.confirm = Some(Confirmation { by: by.into(), uid, boot });
        }
    }

    /// `call accepted`: the answer to the call that the fence stands at; `attempt=`, `call=` and `fence=` for another.
    fn take_call(&mut self, fact: &mut Fact) -> Result<(), String> {
        let word = fact.word("what the call came to")?;
        let outcome = one_of(
            fact,
            &word,
            &[
                ("pending", CallOutcome::Pending),
                ("accepted", CallOutcome::Accepted),
                ("refused", CallOutcome::Refused),
                ("unknown", CallOutcome::Unknown),
            ],
        )?;
        let now_at = self.fence.phase.run().map_or(0, |run| run.call);
        let call =
            CallId { attempt: fact.value_or("attempt", self.fence.attempt)?, call: fact.value_or("call", now_at)? };
        let fence = fact.text("fence").map_or_else(|| self.fence.uid.clone(), Uid::new);
        self.seen.calls.retain(|answer| answer.call != call || answer.fence != fence);
        self.seen.calls.push(CallAnswer { fence, call, outcome });
        Ok(())
    }

    /// `read bmc=off psu:2=on`: the answer to the series that was asked for last. `off` alone is steady.
    fn take_read(&mut self, fact: &mut Fact) -> Result<(), String> {
        let (asked, over) = self.reading.unwrap_or((ReadId(0), Span::secs(2)));
        let id = ReadId(fact.value_or("series", asked.0)?);
        let mut plugs = Vec::new();
        for (plug, said) in fact.rest() {
            let (method, plug) = plug.split_once(':').unwrap_or((&plug, "1"));
            let samples = samples(&said, self.now, over).map_err(|why| fact.wrong(&why))?;
            plugs.push(PlugRead { method: method.into(), plug: plug.into(), samples });
        }
        self.seen.reads.retain(|answer| answer.id != id);
        self.seen.reads.push(ReadAnswer { id, plugs });
        Ok(())
    }
}

/// `off` is two reads, as far apart as was asked for; `on,off@2s,off@4s-5s` are single reads, one a second unless timed. With a
/// `!` the kubelet answers meanwhile, with a `?` nobody knows.
pub fn samples(said: &str, now: Tick, over: Span) -> Result<Vec<Sample>, String> {
    let at = |seen, kubelet, began: Span, ended: Span| Sample { began: now + began, ended: now + ended, seen, kubelet };
    let twice = |kubelet| vec![at(Seen::Off, kubelet, Span::ZERO, Span::ZERO), at(Seen::Off, kubelet, over, over)];
    match said {
        "off" => return Ok(twice(WitnessWord::Silent)),
        "off!" => return Ok(twice(WitnessWord::Alive)),
        _ => {}
    }
    let mut found = Vec::new();
    for (index, word) in said.split(',').filter(|word| !word.is_empty()).enumerate() {
        let (state, time) = word.split_once('@').unwrap_or((word, ""));
        let (state, kubelet) = match (state.strip_suffix('!'), state.strip_suffix('?')) {
            (Some(state), _) => (state, WitnessWord::Alive),
            (None, Some(state)) => (state, WitnessWord::Unknown),
            (None, None) => (state, WitnessWord::Silent),
        };
        let state = match state {
            "off" => Seen::Off,
            "on" => Seen::On,
            "unknown" => Seen::Unknown,
            _ => return Err(format!("`{state}` is none of off, on, unknown")),
        };
        let (began, ended) = if time.is_empty() {
            let second = Span::secs(index as u64);
            (second, second)
        } else {
            let (from, to) = time.split_once('-').unwrap_or((time, time));
            let span = |text: &str| text.parse::<Span>().map_err(|why| why.to_string());
            (span(from)?, span(to)?)
        };
        found.push(at(state, kubelet, began, ended));
    }
    Ok(found)
}

fn taint(name: &str, fact: &Fact) -> Result<TaintSeen, String> {
    match name.split_once('/') {
        Some(("quarantine", fence)) => Ok(TaintSeen::Quarantine(Uid::from(fence))),
        None if name == "quarantine" => Ok(TaintSeen::Quarantine(Uid::from("f1"))),
        None if name == "out-of-service" => Ok(TaintSeen::OutOfService),
        _ => Err(fact.wrong(&format!("`{name}` is neither quarantine nor out-of-service"))),
    }
}

/// `pv1`, `pv1:ro` or `unbound`.
fn claim_of(text: &str) -> Mount {
    let (name, read_only) = text.strip_suffix(":ro").map_or((text, false), |name| (name, true));
    Mount::Claim { volume: (name != "unbound").then(|| name.into()), read_only }
}

/// A pod of a StatefulSet in `default` whose UID is its name, with a grace of 30 s and no volumes.
fn new_pod(name: &str) -> PodSeen {
    PodSeen {
        pod: PodRef { namespace: "default".into(), name: name.into(), uid: Uid::from(name) },
        resource_version: "1".into(),
        owner: Owner::StatefulSet,
        labels: BTreeMap::new(),
        grace: 30,
        deletion: Deletion::No,
        finalizers: false,
        completed: false,
        after_taint: false,
        mounts: Vec::new(),
        pdb_blocks: false,
    }
}

/// A call, as attempt and count: `1.2`.
pub(super) fn call_id(fact: &mut Fact) -> Result<CallId, String> {
    let word = fact.word("the call, as attempt.count")?;
    let read = word.split_once('.').and_then(|(attempt, call)| Some((attempt.parse().ok()?, call.parse().ok()?)));
    let (attempt, call) = read.ok_or_else(|| fact.wrong("a call is written as attempt.count, such as 1.2"))?;
    Ok(CallId { attempt, call })
}
