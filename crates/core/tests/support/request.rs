//! Golden cases of requests: what is seen around them, and what each step does for them.
//!
//! `step at=T` takes one step for each request, in the order of their lines; `age-out` asks what history lets go.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use palisade_core::detect::sight::Sight;
use palisade_core::detect::{Evidence, Finding};
use palisade_core::ident::{NodeName, ResourceVersion, Uid};
use palisade_core::reason::detect::{ClaimReason, WatchReason};
use palisade_core::reason::request::{HistoryReason, RequestReason};
use palisade_core::request::filing::{Filed, Filing};
use palisade_core::request::history::{Keep, Retention, aged_out};
use palisade_core::request::{
    End, FenceFacts, FenceResult, FenceSeen, How, Life, NodeSeen, Operation, Origin, Phase, Request, RequestEffect,
    Seen, VetWord, Watched,
};
use palisade_core::time::{Span, Tick};

use super::golden::{Fact, Room};

/// The rooms of this file.
pub fn rooms() -> Vec<Room> {
    let effects =
        ["CreateFence", "AttachTo", "ReadFence", "WriteStatus", "Delete", "NoClaim", "Open", "Answered", "File"];
    let results = ["result=Returned", "result=HeldOff", "result=NodeDeleted", "result=Stopped"];
    let names = [RequestReason::NAMES, HistoryReason::NAMES, &effects, &results].concat();
    let phases = Phase::ALL.map(|phase| format!("{phase:?}"));
    let must_show = names.into_iter().map(str::to_owned).chain(phases).collect();
    vec![Room { files: "request/*", run, must_show }]
}

fn run(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let mut stage = Stage::default();
    for mut fact in facts.drain(..) {
        stage.happen(&mut fact)?;
        fact.done()?;
    }
    let several = stage.steps > 1;
    let with_time = |(at, line)| if several { format!("{at} {line}") } else { line };
    Ok(stage.lines.into_iter().map(with_time).collect())
}

#[derive(Default)]
struct Stage {
    now: Tick,
    explain: bool,
    outage: Option<(Tick, Tick)>,
    requests: Vec<Request>,
    nodes: BTreeMap<String, NodeSeen>,
    fences: BTreeMap<String, FenceSeen>,
    evidence: BTreeMap<String, Evidence>,
    vet: BTreeMap<String, VetWord>,
    retention: Retention,
    filed: Filed,
    steps: usize,
    lines: Vec<(Tick, String)>,
}

impl Stage {
    fn happen(&mut self, fact: &mut Fact) -> Result<(), String> {
        if let Some(at) = fact.value::<Span>("at")? {
            self.now = Tick::START + at;
        }
        match fact.kind.as_str() {
            "explain" => self.explain = true,
            "outage" => {
                let from = Tick::START + fact.value_or("from", Span::ZERO)?;
                self.outage = Some((from, Tick::START + fact.value_or("to", Span::ZERO)?));
            }
            "request" => {
                let request = request(fact)?;
                self.requests.push(request);
            }
            "node" => {
                let name = fact.word("its name")?;
                let present = NodeSeen::Present(uid(fact, "uid", "u1"));
                let seen = if fact.flag("gone") { NodeSeen::Gone } else { present };
                let seen = if fact.flag("unread") { NodeSeen::NotRead } else { seen };
                self.nodes.insert(name, seen);
            }
            "fence" => {
                let name = fact.word("its node")?;
                let seen = fence(fact)?;
                self.fences.insert(name, seen);
            }
            "evidence" => {
                let of = fact.word("the request")?;
                let evidence = evidence(fact)?;
                self.evidence.insert(of, evidence);
            }
            "vet" => {
                let of = fact.word("the request")?;
                let word = vet(fact)?;
                self.vet.insert(of, word);
            }
            "keep" => self.keep(fact)?,
            "restart" => self.restart(),
            "step" => self.step(),
            "age-out" => self.age_out(),
            "filed" => self.filed.filed(Uid::new(fact.word("the request")?), self.now),
            "forget" => self.requests.clear(),
            "detect" => self.detect(fact)?,
            _ => return Err(fact.wrong("nobody understands this kind of fact")),
        }
        Ok(())
    }

    fn keep(&mut self, fact: &mut Fact) -> Result<(), String> {
        let (age, count) = (fact.value_or("age", Span::mins(60))?, fact.value_or("count", 9)?);
        let failed = Keep { age: fact.value_or("failed-age", Span::ZERO)?, count: fact.value_or("failed-count", 0)? };
        self.retention = Retention::new(Keep { age, count }, failed);
        Ok(())
    }

    /// The process starts again: of each age only what was written down is left.
    fn restart(&mut self) {
        for request in &mut self.requests {
            request.waited = Watched::resumed(request.waited.written);
            request.ended_for = Watched::resumed(request.ended_for.written);
        }
    }

    fn sight(&self) -> Sight {
        match self.outage {
            Some((from, to)) if from < self.now && self.now < to => Sight::Blind { since: from },
            Some((_, to)) if to <= self.now => Sight::Clear { since: to },
            Some(_) | None => Sight::Clear { since: Tick::START },
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        let (sight, now) = (self.sight(), self.now);
        for request in std::mem::take(&mut self.requests) {
            let uid = request.uid.clone();
            let (seen, unbound) = (self.seen(&request), request.node_uid.is_none());
            let step = request.step(&seen, sight, now);
            if step.effects.is_empty() {
                self.lines.push((now, format!("{uid} nothing to do")));
            }
            for effect in &step.effects {
                let lines = show(effect, self.explain);
                self.lines.extend(lines.into_iter().map(|line| (now, format!("{uid} {line}"))));
            }
            if let Some(bound) = step.request.node_uid.as_ref().filter(|_| unbound) {
                self.lines.push((now, format!("{uid} is bound to {bound}")));
            }
            self.requests.push(step.request);
        }
    }

    /// Unless a line says otherwise: the node is there, nobody fences it, the evidence stands, every gate is open.
    fn seen(&self, request: &Request) -> Seen {
        let node = request.node.as_str();
        let none = FenceSeen::Read { how: How::Cached, found: None };
        let present = NodeSeen::Present(Uid::from("u1"));
        let uid = request.uid.as_str();
        Seen {
            node: self.nodes.get(node).cloned().unwrap_or(present),
            evidence: self.evidence.get(uid).cloned().unwrap_or_else(claim),
            fence: self.fences.get(node).cloned().unwrap_or(none),
            vet: self.verdict(uid),
        }
    }

    /// The rule `dead` finds something of node n1 (u1).
    fn detect(&mut self, fact: &mut Fact) -> Result<(), String> {
        self.steps += 1;
        let Evidence::Found(finding) = evidence(fact)? else {
            return Err(fact.wrong("a detector finds, it does not ask"));
        };
        let filing = self.filed.decide(&finding, "dead", &Uid::from("u1"), &self.requests, self.now);
        let line = match filing {
            Filing::NoClaim => "NoClaim".to_owned(),
            Filing::Open(uid) => format!("Open {uid}"),
            Filing::Answered(uid) => format!("Answered {uid}"),
            Filing::File(why) => format!("File {}", why.brief()),
        };
        self.lines.push((self.now, line));
        Ok(())
    }

    /// The verdict is given anew at each step, and so is the time of its next look.
    fn verdict(&self, uid: &str) -> VetWord {
        let from_now = |recheck: Tick| self.now + recheck.since(Tick::START);
        match self.vet.get(uid).cloned().unwrap_or(VetWord::Admit) {
            VetWord::Admit => VetWord::Admit,
            VetWord::NoTarget => VetWord::NoTarget,
            VetWord::Hold { gate, why, numbers, recheck } => {
                VetWord::Hold { gate, why, numbers, recheck: from_now(recheck) }
            }
            VetWord::Reject { gate, why, numbers } => VetWord::Reject { gate, why, numbers },
            VetWord::DryRun { verdict, recheck } => VetWord::DryRun { verdict, recheck: from_now(recheck) },
        }
    }

    fn age_out(&mut self) {
        self.steps += 1;
        let there = |seen: &FenceSeen| match seen {
            FenceSeen::Read { found: Some(fence), .. } => Some(fence.uid.clone()),
            FenceSeen::Read { found: None, .. } | FenceSeen::NotRead => None,
        };
        let fences: BTreeSet<Uid> = self.fences.values().filter_map(there).collect();
        let unread = self.fences.values().any(|seen| *seen == FenceSeen::NotRead);
        let fences = if unread { None } else { Some(&fences) };
        let aged = aged_out(&self.requests, fences, &self.retention);
        if aged.is_empty() {
            self.lines.push((self.now, "every request is kept".to_owned()));
        }
        for one in aged {
            let line = format!("{} {}", show(&one.effect, false).join(" "), one.why.brief());
            self.lines.push((self.now, line));
            if self.explain {
                self.lines.push((self.now, format!("\"{}\"", one.why)));
            }
        }
    }
}

fn show(effect: &RequestEffect, explain: bool) -> Vec<String> {
    match effect {
        RequestEffect::CreateFence { node, node_uid, request } => {
            vec![format!("CreateFence node={node} node-uid={node_uid} request={request}")]
        }
        RequestEffect::AttachTo(fence) => vec![format!("AttachTo {fence}")],
        RequestEffect::ReadFence(fence) => vec![format!("ReadFence {fence}")],
        RequestEffect::Delete { uid, resource_version } => {
            vec![format!("Delete uid={uid} resource-version={resource_version}")]
        }
        RequestEffect::WriteStatus(status) => {
            let mut line = format!("WriteStatus {:?} {}", status.phase, status.why.brief());
            if let Some(span) = status.look_again {
                let _ = write!(line, " look-again={span}");
            }
            for (what, span) in [("waited", status.waited), ("age", status.ended_for)] {
                if span > Span::ZERO {
                    let _ = write!(line, " {what}={span}");
                }
            }
            let mut lines = vec![line];
            if explain {
                lines.push(format!("\"{}\"", status.why));
            }
            lines
        }
    }
}

fn uid(fact: &mut Fact, key: &str, default: &str) -> Uid {
    Uid::new(fact.text(key).unwrap_or_else(|| default.to_owned()))
}

fn request(fact: &mut Fact) -> Result<Request, String> {
    let fence = fact.text("fence").map(Uid::new);
    let name = fact.word("its UID")?;
    let rule = fact.text("rule").unwrap_or("dead".to_owned()).into();
    let origin = if fact.flag("asked") { Origin::Asker } else { Origin::Detector { rule } };
    let lost = || fence.clone().unwrap_or_else(|| Uid::from("f1"));
    let mut life = Life::Pending;
    for (word, other) in [
        ("attached", Life::Attached { fence: lost() }),
        ("closed", Life::Ended(End::Closed { fence: fence.clone() })),
        ("rejected", Life::Ended(End::Rejected)),
        ("completed", Life::Ended(End::Completed { fence: lost() })),
        ("failed", Life::Ended(End::Failed { fence: lost() })),
    ] {
        if fact.flag(word) {
            life = other;
        }
    }
    let ended = matches!(life, Life::Ended(_)).then_some(RequestReason::Recovered);
    let gone = fact.flag("fence-lost").then(|| RequestReason::FenceLost { fence: lost() });
    let attached = fence.clone().map(|fence| RequestReason::Attached { fence });
    let age = fact.value_or("age", Span::ZERO)?;
    let waited = fact.value_or("waited", Span::ZERO)?;
    let wants = operation(fact, "wants")?;
    let node_uid = if fact.flag("unbound") { None } else { Some(uid(fact, "node-uid", "u1")) };
    Ok(Request {
        uid: Uid::new(name),
        resource_version: ResourceVersion::new(fact.text("version").unwrap_or("7".to_owned())),
        node: NodeName::new(fact.text("node").unwrap_or("n1".to_owned())),
        node_uid,
        origin,
        wants,
        why: gone.or(ended).or(attached),
        life,
        waited: Watched::resumed(waited),
        ended_for: Watched::resumed(age),
    })
}

fn fence(fact: &mut Fact) -> Result<FenceSeen, String> {
    if fact.flag("unread") {
        return Ok(FenceSeen::NotRead);
    }
    let how = if fact.flag("read-live") { How::Live } else { How::Cached };
    if fact.flag("absent") {
        return Ok(FenceSeen::Read { how, found: None });
    }
    let result = match fact.text("result").as_deref() {
        None => None,
        Some("Untouched") => Some(FenceResult::Untouched),
        Some("Returned") => Some(FenceResult::Returned),
        Some("HeldOff") => Some(FenceResult::HeldOff),
        Some("NodeDeleted") => Some(FenceResult::NodeDeleted),
        Some("Stopped") => Some(FenceResult::Stopped),
        Some("Failed") => {
            let cause = fact.text("cause").unwrap_or_default().into();
            Some(FenceResult::Failed { cause })
        }
        Some(other) => return Err(fact.wrong(&format!("no result is called `{other}`"))),
    };
    let does = operation(fact, "does")?;
    let found = Some(FenceFacts {
        uid: uid(fact, "uid", "f1"),
        node_uid: uid(fact, "of", "u1"),
        requests: fact.list("names").into_iter().map(Uid::new).collect(),
        does,
        result,
    });
    Ok(FenceSeen::Read { how, found })
}

fn operation(fact: &mut Fact, key: &str) -> Result<Operation, String> {
    match fact.text(key).as_deref() {
        None | Some("Fence") => Ok(Operation::Fence),
        Some("PowerStep") => Ok(Operation::PowerStep),
        Some("PowerOff") => Ok(Operation::PowerOff),
        Some(other) => Err(fact.wrong(&format!("no operation is called `{other}`"))),
    }
}

fn claim() -> Evidence {
    let why = ClaimReason::StorageOffline { provider: "storageos".into(), offline: Span::ZERO };
    Evidence::Found(Finding::Claim { why })
}

fn evidence(fact: &mut Fact) -> Result<Evidence, String> {
    Ok(match fact.word("what it is")?.as_str() {
        "stands" => claim(),
        "cleared" => Evidence::Found(Finding::Quiet),
        "blind" => Evidence::Found(Finding::Watching {
            why: WatchReason::ObserverBlind { blind: Span::secs(20) },
            until: Tick::START + fact.value_or("until", Span::secs(30))?,
        }),
        "claimed-and-still-offline" => Evidence::Found(Finding::Watching {
            why: WatchReason::StorageAlreadyClaimed { provider: "storageos".into(), offline: Span::mins(1) },
            until: Tick::START + Span::mins(60),
        }),
        "asked" => Evidence::Asked { done: false },
        "withdrawn" => Evidence::Withdrawn,
        other => return Err(fact.wrong(&format!("no evidence is called `{other}`"))),
    })
}

fn vet(fact: &mut Fact) -> Result<VetWord, String> {
    let word = fact.word("the verdict")?;
    let mut text = |key: &str| fact.text(key).unwrap_or_default().into_boxed_str();
    let (gate, why, numbers) = (text("gate"), text("why"), text("numbers"));
    let verdict = text("verdict");
    let recheck = Tick::START + fact.value_or("recheck", Span::secs(30))?;
    Ok(match word.as_str() {
        "admit" => VetWord::Admit,
        "hold" => VetWord::Hold { gate, why, numbers, recheck },
        "no-target" => VetWord::NoTarget,
        "reject" => VetWord::Reject { gate, why, numbers },
        "dry-run" => VetWord::DryRun { verdict, recheck },
        other => return Err(fact.wrong(&format!("no verdict is called `{other}`"))),
    })
}
