//! Golden cases of vetting: turns facts into a claim, a snapshot and a policy, and prints the verdict.
//!
//! `gate NAME` prints the answer of that gate alone, `walk` those of all gates, neither the verdict.
//! Instants are written as they are spoken, `20s-ago`; `now` is ten minutes after the start unless a case says so.

use std::collections::BTreeMap;

use palisade_api::selector::{LabelSelector, Operator, Requirement};
use palisade_core::ident::{NodeName, Uid};
use palisade_core::ledger::{Entry, Ledger};
use palisade_core::policy::{Approval, DomainBrake, Mode, Policy, Rate, Share, WholeDomain, WorkloadRule};
use palisade_core::reason::vet::{HoldReason, RejectReason};
use palisade_core::snapshot::{
    DisruptionBudgetView, FenceView, KdumpView, Member, NodeStorageView, NodeView, PlacementGroups, QuorumView, Ready,
    Snapshot, StandbyView, StorageNodeState, StorageView, WitnessKind, WitnessView, WitnessWord, WorkloadView,
};
use palisade_core::time::{Span, Tick};
use palisade_core::vet::{Claim, Gate, GateName, Source, Verdict, vet, walk};

use crate::golden::{Fact, Room};

/// Each gate's file, and the reasons that only it can give.
const GATE_FILES: &[(&str, &[&str])] = &[
    ("vet/origin", &["NamespaceNotAllowed"]),
    ("vet/mode", &["Paused"]),
    (
        "vet/exclusions",
        &[
            "TargetNotSeen",
            "NodeBeingDeleted",
            "ExcludedByLabel",
            "InMaintenance",
            "LeavingByAutoscaler",
            "PausedByPeer",
            "NodeUnknown",
            "NodeReplaced",
        ],
    ),
    ("vet/duplicates", &["FenceRunning", "HeldOff"]),
    ("vet/grace", &["InGrace"]),
    ("vet/quiet", &["StartingUp"]),
    ("vet/observer", &["ApiStale", "SelfCheckFailed", "AfterOutage", "StandbySeesAlive"]),
    ("vet/witness", &["LeaseMoves", "LeaseOnlyLate", "WitnessSeesAlive", "WitnessesDisagree", "NoWitness"]),
    ("vet/storm", &["ObserverSuspect", "OthersReturning", "OthersUnheard", "StormBrake", "WholeDomainDown"]),
    ("vet/quorum", &["QuorumUnknown", "QuorumStale", "QuorumAtRisk", "ControlPlaneBusy"]),
    (
        "vet/storage",
        &[
            "StorageSilent",
            "StorageStale",
            "StorageNotClean",
            "RedundancyLost",
            "RedundancyUnknown",
            "DisruptionBudgetUsed",
            "DisruptionBudgetStale",
        ],
    ),
    ("vet/storage-outage", &["StorageUnreachable"]),
    ("vet/storage-in-use", &["StorageInUse", "StorageUseUnknown"]),
    ("vet/kdump", &["KdumpExpected", "KdumpRunning"]),
    ("vet/workload", &["NoStatefulWorkload", "WorkloadUnknown"]),
    ("vet/flap", &["Flapping"]),
    ("vet/approval", &["AwaitingApproval"]),
    ("vet/budget", &["LedgerMissing", "LedgerForeign", "BudgetFull", "TooSoon", "RateReached"]),
    ("vet/dry-run", &["DryRun"]),
];

/// The rooms of vetting.
pub fn rooms() -> Vec<Room> {
    all_reasons_have_a_file();
    let mut rooms: Vec<Room> = GATE_FILES.iter().map(|(files, reasons)| gate_room(files, reasons)).collect();
    let must_show = ["Admit", "Hold", "Reject"].map(str::to_owned).to_vec();
    rooms.push(Room { files: "vet/order", run, must_show });
    rooms
}

fn gate_room(files: &'static str, reasons: &[&str]) -> Room {
    let shut = if files == "vet/origin" { "Refused" } else { "Closed" };
    let must_show = reasons.iter().chain(&["Open", shut]).map(|word| (*word).to_owned()).collect();
    Room { files, run, must_show }
}

/// A reason or a gate that is added without a file of cases breaks the run.
fn all_reasons_have_a_file() {
    let mut listed: Vec<&str> = GATE_FILES.iter().flat_map(|(_, reasons)| reasons.iter().copied()).collect();
    let mut known: Vec<&str> = HoldReason::NAMES.iter().chain(RejectReason::NAMES).copied().collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known, "each reason of vetting belongs to the file of one gate");
    let files: Vec<String> = GATE_FILES.iter().map(|(file, _)| file.trim_start_matches("vet/").to_owned()).collect();
    let gates: Vec<String> = GateName::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(files, gates, "each gate has its file");
}

fn run(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let world = World::read(std::mem::take(facts))?;
    let claim = world.claim.as_ref().ok_or("a `claim` is missing")?;
    let mut lines = match world.ask {
        Ask::Verdict => vec![verdict(&vet(claim, &world.view, &world.policy, world.now))],
        Ask::Gate(_) | Ask::Walk => Vec::new(),
    };
    for (name, gate) in walk(claim, &world.view, &world.policy, world.now) {
        match world.ask {
            Ask::Gate(asked) if asked == name => lines.push(answer(&gate)),
            Ask::Walk => lines.push(format!("{name}: {}", answer(&gate))),
            Ask::Gate(_) | Ask::Verdict => {}
        }
    }
    Ok(lines)
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Admit => "Admit".to_owned(),
        Verdict::Hold { gate, why, look_again } => format!("Hold {gate} {} look-again={look_again}", why.brief()),
        Verdict::Reject { gate, why } => format!("Reject {gate} {}", why.brief()),
    }
}

fn answer(gate: &Gate) -> String {
    match gate {
        Gate::Open => "Open".to_owned(),
        Gate::Closed { why, look_again } => format!("Closed {} look-again={look_again}", why.brief()),
        Gate::Refused(why) => format!("Refused {}", why.brief()),
    }
}

#[derive(Clone, Copy)]
enum Ask {
    Verdict,
    Gate(GateName),
    Walk,
}

struct World {
    ask: Ask,
    now: Tick,
    claim: Option<Claim>,
    view: Snapshot,
    policy: Policy,
}

impl World {
    /// A cluster in which nothing stands in the way: the API answers, the ledger is empty, the control plane is
    /// hosted elsewhere, and each node runs one `StatefulSet` pod.
    fn read(facts: Vec<Fact>) -> Result<Self, String> {
        let mut facts = facts;
        let now = take_now(&mut facts)?;
        let policy = Policy { uid: Uid::from("p1"), ..Policy::default() };
        let ledger = Some(Ledger { policy_uid: Uid::from("p1"), ..Ledger::default() });
        let mut view = Snapshot { ledger, quorum: Some(QuorumView::default()), ..Snapshot::default() };
        view.observer.api_last_answered = Some(now);
        let mut world = Self { ask: Ask::Verdict, now, claim: None, view, policy };
        for mut fact in facts {
            world.learn(&mut fact)?;
            fact.done()?;
        }
        Ok(world)
    }

    fn learn(&mut self, fact: &mut Fact) -> Result<(), String> {
        match fact.kind.as_str() {
            "gate" => self.ask = Ask::Gate(gate_name(fact)?),
            "walk" => self.ask = Ask::Walk,
            "policy" => self.policy(fact)?,
            "brake" => self.brake(fact)?,
            "claim" => self.claim = Some(Self::claim(fact)?),
            "node" => self.node(fact)?,
            "annotation" => {
                let notes = fact.rest();
                self.at(fact)?.annotations.extend(notes);
            }
            "workload" => self.workload(fact)?,
            "witness" => self.witness(fact)?,
            "uses" => self.uses(fact)?,
            "kdump" => self.kdump(fact)?,
            "failed" => self.failed(fact)?,
            "observer" => self.observer(fact)?,
            "standby" => self.standby(fact)?,
            "fence" => self.fence(fact)?,
            "ledger" => self.ledger(fact),
            "slot" => self.slot(fact)?,
            "granted" => self.granted(fact)?,
            "quorum" => self.quorum(fact)?,
            "storage" => self.storage(fact)?,
            "mdb" => self.mdb(fact)?,
            other => return Err(fact.wrong(&format!("nobody understands a fact `{other}`"))),
        }
        Ok(())
    }

    fn policy(&mut self, fact: &mut Fact) -> Result<(), String> {
        let policy = &mut self.policy;
        if let Some(mode) = fact.text("mode") {
            policy.mode = match mode.as_str() {
                "enforce" => Mode::Enforce,
                "dry-run" => Mode::DryRun,
                "paused" => Mode::Paused,
                other => return Err(fact.wrong(&format!("no such mode: {other}"))),
            };
        }
        if let Some(uid) = fact.text("uid") {
            policy.uid = Uid::from(uid.as_str());
        }
        if let Some(namespaces) = fact.text("namespaces") {
            policy.request_namespaces = split(&namespaces);
        }
        for label in fact.list("exclude") {
            let (key, value) = label.split_once('=').unwrap_or((&label, ""));
            let mut selector = LabelSelector::default();
            if value.is_empty() {
                let key = key.to_owned();
                selector.match_expressions.push(Requirement { key, operator: Operator::Exists, values: Vec::new() });
            } else {
                selector.match_labels.insert(key.to_owned(), value.to_owned());
            }
            policy.exclusions.selectors.push(selector);
        }
        policy.exclusions.honour_peers &= !fact.flag("ignore-peers");
        policy.grace = fact.value_or("grace", policy.grace)?;
        policy.startup_quiet = fact.value_or("quiet", policy.startup_quiet)?;
        policy.observer_fresh = fact.value_or("fresh", policy.observer_fresh)?;
        policy.outage_quiet = fact.value_or("outage-quiet", policy.outage_quiet)?;
        policy.recheck = fact.value_or("recheck", policy.recheck)?;
        if let Some(text) = fact.text("storm") {
            policy.storm.cluster = share(fact, &text)?;
        }
        policy.budget.max_concurrent = fact.value_or("max", policy.budget.max_concurrent)?;
        policy.budget.spacing = fact.value_or("spacing", policy.budget.spacing)?;
        policy.budget.rate = rate(fact)?.or(policy.budget.rate);
        policy.protect_quorum &= !fact.flag("quorum-unguarded");
        policy.storage.providers.extend(fact.list("storage").iter().map(|name| name.as_str().into()));
        policy.storage.fresh = fact.value_or("storage-fresh", policy.storage.fresh)?;
        policy.storage.disruption_budgets &= !fact.flag("ignore-mdb");
        policy.storage.skip_on_outage |= fact.flag("skip-on-outage");
        policy.storage.skip_in_use |= fact.flag("skip-in-use");
        policy.kdump.enabled |= fact.flag("kdump");
        policy.kdump.proves |= fact.flag("kdump-proves");
        if fact.flag("any-node") {
            policy.workload = WorkloadRule::AnyNode;
        }
        policy.flap.count = fact.value_or("flaps", policy.flap.count)?;
        policy.flap.window = fact.value_or("flap-window", policy.flap.window)?;
        policy.witness.required &= !fact.flag("no-witness-needed");
        policy.witness.trusted_for = fact.value_or("witness-trusted", policy.witness.trusted_for)?;
        if fact.flag("approval") {
            policy.approval = Approval::Always;
        }
        Ok(())
    }

    fn brake(&mut self, fact: &mut Fact) -> Result<(), String> {
        let topology_key = fact.word("the topology key")?;
        let limit = fact.text("limit").unwrap_or("40%".to_owned());
        let limit = share(fact, &limit)?;
        let whole_domain = if fact.flag("fence-whole") { WholeDomain::Fence } else { WholeDomain::Hold };
        self.policy.storm.domains.push(DomainBrake { topology_key, limit, whole_domain });
        Ok(())
    }

    fn claim(fact: &mut Fact) -> Result<Claim, String> {
        let source = match fact.text("source").as_deref() {
            None | Some("condition") => Source::Condition,
            Some("lease") => Source::Lease,
            Some("event") => Source::Event,
            Some("storage") => Source::Storage,
            Some("admin") => Source::Admin,
            Some("external") => Source::External,
            Some(other) => return Err(fact.wrong(&format!("no such source: {other}"))),
        };
        Ok(Claim {
            namespace: fact.text("namespace").unwrap_or("palisade-system".to_owned()),
            target: name(fact)?,
            uid: fact.text("uid").map(|uid| Uid::from(uid.as_str())),
            source,
            observed_for: fact.value_or("for", Span::mins(5))?,
            grace: fact.value("grace")?,
            approved: fact.flag("approved"),
            fence: fact.text("fence").map(|uid| Uid::from(uid.as_str())),
        })
    }

    /// `node n1 rack=a down` or `node a1..a9 rack=a`; what is not a known word is a label.
    fn node(&mut self, fact: &mut Fact) -> Result<(), String> {
        let names = fact.word("the node's name")?;
        let ready = match (fact.flag("unknown"), fact.flag("not-ready"), fact.flag("down")) {
            (false, false, false) => Ready::True,
            (false, true, false) => Ready::False,
            (true, false, false) | (false, false, true) => Ready::Unknown,
            (true, _, true) | (_, true, true) | (true, true, false) => return Err(fact.wrong("more than one state")),
        };
        let uid = fact.text("uid");
        let view = NodeView {
            ready,
            lease_silent: fact.flag("silent") || (ready == Ready::Unknown && !fact.flag("renewing")),
            late_since: self.late(fact)?,
            last_renewal: self.ago(fact, "renewed")?,
            back_since: self.ago(fact, "back")?,
            deleting: fact.flag("deleting"),
            taints: fact.list("taints"),
            workload: Some(WorkloadView { statefulset_pods: 1, single_writer_pods: 0 }),
            labels: fact.rest().into_iter().collect(),
            ..NodeView::default()
        };
        for node in range(&names) {
            let uid = Uid::new(uid.clone().unwrap_or(format!("uid-{node}")));
            let known = self.view.nodes.insert(NodeName::new(node), NodeView { uid, ..view.clone() });
            if known.is_some() {
                return Err(fact.wrong("this node was told of before"));
            }
        }
        Ok(())
    }

    /// `late`: a renewal is overdue from now on; `late=3s-ago`: since then.
    fn late(&self, fact: &mut Fact) -> Result<Option<Tick>, String> {
        let since = self.ago(fact, "late")?;
        Ok(since.or_else(|| fact.flag("late").then_some(self.now)))
    }

    fn workload(&mut self, fact: &mut Fact) -> Result<(), String> {
        let pods = WorkloadView {
            statefulset_pods: fact.value_or("statefulset", 0)?,
            single_writer_pods: fact.value_or("single-writer", 0)?,
        };
        let unlisted = fact.flag("unlisted");
        self.at(fact)?.workload = (!unlisted).then_some(pods);
        Ok(())
    }

    fn witness(&mut self, fact: &mut Fact) -> Result<(), String> {
        let says = match (fact.flag("alive"), fact.flag("silent"), fact.flag("cannot-look")) {
            (true, false, false) => WitnessWord::Alive,
            (false, true, false) => WitnessWord::Silent,
            (false, false, true) => WitnessWord::Unknown,
            (..) => return Err(fact.wrong("say one of alive, silent, cannot-look")),
        };
        let asked = self.ago(fact, "asked")?.unwrap_or(self.now);
        let last_alive = self.ago(fact, "saw-alive")?;
        let target = name(fact)?;
        let kind = match fact.word("the kind of witness")?.as_str() {
            "kubelet-port" => WitnessKind::KubeletPort,
            "bmc-power" => WitnessKind::BmcPower,
            "storage-heartbeat" => WitnessKind::StorageHeartbeat,
            other => return Err(fact.wrong(&format!("no such witness: {other}"))),
        };
        let node = self.view.nodes.get_mut(&target).ok_or_else(|| fact.wrong("no such node"))?;
        node.witnesses.push(WitnessView { kind, says, asked, last_alive });
        Ok(())
    }

    fn uses(&mut self, fact: &mut Fact) -> Result<(), String> {
        let target = name(fact)?;
        let provider = fact.word("the storage")?.as_str().into();
        let view = NodeStorageView {
            provider,
            reachable: yes_or_no(fact, "reachable")?,
            in_use: yes_or_no(fact, "in-use")?,
            seen: self.ago(fact, "seen")?.unwrap_or(self.now),
        };
        let node = self.view.nodes.get_mut(&target).ok_or_else(|| fact.wrong("no such node"))?;
        node.storage.push(view);
        Ok(())
    }

    fn kdump(&mut self, fact: &mut Fact) -> Result<(), String> {
        let last = self.ago(fact, "last")?.unwrap_or(self.now);
        let began = self.ago(fact, "began")?.unwrap_or(last);
        self.at(fact)?.kdump = Some(KdumpView { began, last });
        Ok(())
    }

    fn failed(&mut self, fact: &mut Fact) -> Result<(), String> {
        let times = fact.list("at").iter().map(|text| instant(self.now, text)).collect::<Result<Vec<_>, _>>();
        self.at(fact)?.failures = times?;
        Ok(())
    }

    fn observer(&mut self, fact: &mut Fact) -> Result<(), String> {
        let answered = self.ago(fact, "api")?;
        let outage_ended = self.ago(fact, "outage-ended")?;
        let observer = &mut self.view.observer;
        observer.api_last_answered = answered.or(observer.api_last_answered);
        if fact.flag("api-never") {
            observer.api_last_answered = None;
        }
        observer.outage_ended = outage_ended;
        observer.self_check = match (fact.flag("self-check-passes"), fact.flag("self-check-fails")) {
            (false, false) => None,
            (passes, _) => Some(passes),
        };
        Ok(())
    }

    fn standby(&mut self, fact: &mut Fact) -> Result<(), String> {
        let published = self.ago(fact, "published")?.unwrap_or(self.now);
        let sees_alive = fact.list("sees-alive").into_iter().map(NodeName::new).collect();
        self.view.observer.standby = Some(StandbyView { published, sees_alive });
        Ok(())
    }

    fn fence(&mut self, fact: &mut Fact) -> Result<(), String> {
        let node = name(fact)?;
        let uid = Uid::new(fact.text("uid").unwrap_or(format!("fence-{node}")));
        let (slot, held_off) = (fact.flag("slot"), fact.flag("held-off"));
        self.view.fences.insert(node, FenceView { uid, slot, held_off });
        Ok(())
    }

    fn ledger(&mut self, fact: &mut Fact) {
        if fact.flag("none") {
            self.view.ledger = None;
        }
        if let (Some(uid), Some(ledger)) = (fact.text("for"), &mut self.view.ledger) {
            ledger.policy_uid = Uid::from(uid.as_str());
        }
    }

    fn slot(&mut self, fact: &mut Fact) -> Result<(), String> {
        let fence = Uid::new(fact.word("the fence")?);
        let node = NodeName::new(fact.text("node").ok_or_else(|| fact.wrong("node= is missing"))?);
        let control_plane = fact.flag("control-plane");
        let entry = Entry { node, control_plane, grant: 1 };
        let ledger = self.view.ledger.as_mut().ok_or_else(|| fact.wrong("there is no ledger"))?;
        ledger.entries.insert(fence, entry);
        Ok(())
    }

    fn granted(&mut self, fact: &mut Fact) -> Result<(), String> {
        let ages = fact.list("at").into_iter().map(|text| instant(self.now, &text).map(|at| self.now.since(at)));
        let ages = ages.collect::<Result<Vec<_>, _>>()?;
        self.view.ledger.as_mut().ok_or_else(|| fact.wrong("there is no ledger"))?.grants = ages;
        Ok(())
    }

    fn quorum(&mut self, fact: &mut Fact) -> Result<(), String> {
        let mut members = BTreeMap::new();
        for (key, state) in [("alive", Member::Alive), ("silent", Member::Silent)] {
            members.extend(fact.list(key).into_iter().map(|node| (NodeName::new(node), state)));
        }
        let age = fact.value_or("age", Span::ZERO)?;
        self.view.quorum = (!fact.flag("not-known")).then_some(QuorumView { members, age });
        Ok(())
    }

    fn storage(&mut self, fact: &mut Fact) -> Result<(), String> {
        let provider = fact.word("the provider")?.as_str().into();
        let groups = fact.text("clean").map(|text| groups(fact, &text)).transpose()?;
        let mut redundancy_lost_without = BTreeMap::new();
        for (key, lost) in [("lost-without", true), ("kept-without", false)] {
            redundancy_lost_without.extend(fact.list(key).into_iter().map(|node| (NodeName::new(node), lost)));
        }
        let offline = fact.list("offline").into_iter().map(|node| (NodeName::new(node), StorageNodeState::Offline));
        let view = StorageView {
            reported: self.ago(fact, "reported")?.unwrap_or(self.now),
            groups,
            redundancy_lost_without,
            nodes: offline.collect(),
            daemons_run_on: fact.list("daemons").into_iter().map(NodeName::new).collect(),
        };
        self.view.storage.insert(provider, view);
        Ok(())
    }

    fn mdb(&mut self, fact: &mut Fact) -> Result<(), String> {
        let refreshed =
            if fact.flag("never-refreshed") { None } else { Some(self.ago(fact, "refreshed")?.unwrap_or(self.now)) };
        self.view.disruption_budgets.push(DisruptionBudgetView {
            name: fact.word("the budget's name")?,
            covers: fact.list("covers").into_iter().map(NodeName::new).collect(),
            max_unavailable: fact.value_or("max", 1)?,
            refreshed,
        });
        Ok(())
    }

    /// The node that the line names next.
    fn at(&mut self, fact: &mut Fact) -> Result<&mut NodeView, String> {
        let node = name(fact)?;
        self.view.nodes.get_mut(&node).ok_or_else(|| fact.wrong("no such node"))
    }

    fn ago(&self, fact: &mut Fact, key: &str) -> Result<Option<Tick>, String> {
        let text = fact.text(key);
        text.map(|text| instant(self.now, &text).map_err(|why| fact.wrong(&why))).transpose()
    }
}

fn take_now(facts: &mut Vec<Fact>) -> Result<Tick, String> {
    let mut now = Span::mins(10);
    // The last one holds: a case may say another than `every case`.
    while let Some(at) = facts.iter().position(|fact| fact.kind == "now") {
        let mut fact = facts.remove(at);
        now = fact.word("the time")?.parse().map_err(|why| fact.wrong(&format!("{why}")))?;
        fact.done()?;
    }
    Ok(Tick::START + now)
}

fn gate_name(fact: &mut Fact) -> Result<GateName, String> {
    let asked = fact.word("the gate")?;
    let known = GateName::ALL.iter().find(|gate| gate.to_string() == asked).copied();
    known.ok_or_else(|| fact.wrong(&format!("no such gate: {asked}")))
}

fn name(fact: &mut Fact) -> Result<NodeName, String> {
    fact.word("the node").map(NodeName::new)
}

/// `20s-ago`, counted back from now.
fn instant(now: Tick, text: &str) -> Result<Tick, String> {
    let span: Span = match text.strip_suffix("-ago") {
        Some(span) => span.parse().map_err(|why| format!("{why}"))?,
        None => return Err(format!("`{text}` is no instant; write for example 20s-ago")),
    };
    Ok(Tick::START + now.since(Tick::START).left_after(span))
}

fn share(fact: &Fact, text: &str) -> Result<Share, String> {
    let parsed = match text.strip_suffix('%') {
        Some(percent) => percent.parse().map(Share::Percent),
        None => text.parse().map(Share::Count),
    };
    parsed.map_err(|why| fact.wrong(&format!("{text}: {why}")))
}

/// `rate=2/1h`.
pub fn rate(fact: &mut Fact) -> Result<Option<Rate>, String> {
    let Some(text) = fact.text("rate") else { return Ok(None) };
    let wrong = |fact: &Fact| fact.wrong(&format!("`{text}` is no rate; write for example 2/1h"));
    let (count, per) = text.split_once('/').ok_or_else(|| wrong(fact))?;
    let count = count.parse().map_err(|_| wrong(fact))?;
    let per = per.parse().map_err(|_| wrong(fact))?;
    Ok(Some(Rate { count, per }))
}

fn groups(fact: &Fact, text: &str) -> Result<PlacementGroups, String> {
    let wrong = || fact.wrong(&format!("`{text}` is no count of placement groups; write for example 99/100"));
    let (clean, all) = text.split_once('/').ok_or_else(wrong)?;
    Ok(PlacementGroups { clean: clean.parse().map_err(|_| wrong())?, all: all.parse().map_err(|_| wrong())? })
}

fn yes_or_no(fact: &mut Fact, key: &str) -> Result<Option<bool>, String> {
    match fact.text(key).as_deref() {
        None => Ok(None),
        Some("yes") => Ok(Some(true)),
        Some("no") => Ok(Some(false)),
        Some(other) => Err(fact.wrong(&format!("{key}={other}: say yes or no"))),
    }
}

fn split(text: &str) -> Vec<String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// `a1..a4` is four names.
fn range(names: &str) -> Vec<String> {
    let Some((first, last)) = names.split_once("..") else { return vec![names.to_owned()] };
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = |name: &str| name.trim_start_matches(stem).parse::<u32>().unwrap_or(0);
    (number(first)..=number(last)).map(|n| format!("{stem}{n}")).collect()
}
