//! Detect: runs the detectors of `core` over the view, asks witnesses, and says which claims become requests.
//!
//! Every replica detects, so that a new leader has watched as long as the old one; only the leader files.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::detect::Finding;
use palisade_core::detect::lease::Others;
use palisade_core::detect::sight::Sight;
use palisade_core::detect::witness::{Place, Witness};
use palisade_core::ident::{NodeName, Uid};
use palisade_core::request::Request;
use palisade_core::request::filing::{Filed, Filing};
use palisade_core::resolve::{Look, Rule, Rulebook};
use palisade_core::snapshot::{WitnessKind, WitnessWord};
use palisade_core::time::{Span, Tick};
use palisade_core::vet::Source;

use crate::agenda::Agenda;
use crate::decided;
use crate::view::{NodeTrack, View};

/// How often a node is looked at, at most, of which time alone may change what is found. In between it is looked at when something is
/// seen of it or it is due; were it looked at in every turn, a thousand late nodes would keep us too busy to see that they are not late.
const RESTLESS: Span = Span::millis(200);
/// How often a suspicious node's witnesses are asked.
const ASK_AGAIN: Span = Span::secs(3);
/// How often a healthy node's kubelet is looked at: a witness's silence counts only if it saw the node alive before.
const PROBE_AGAIN: Span = Span::secs(20);
/// By so much at most some are looked at later than others: thousands that were first seen together must not stay in step.
const PROBE_SPREAD: u64 = 5_000;

/// A claim that is to become a request.
#[derive(Clone, Debug)]
pub(crate) struct ToFile {
    pub(crate) node: NodeName,
    pub(crate) rule: Rule,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What the detectors found, and whom they asked.
#[derive(Debug, Default)]
pub(crate) struct Detect {
    /// What speaks against a node, by rule; who is not here is quiet.
    findings: BTreeMap<NodeName, BTreeMap<Box<str>, Finding>>,
    filed: BTreeMap<(NodeName, Box<str>), Filed>,
    asked: BTreeMap<(NodeName, WitnessKind), Tick>,
    /// When a node is looked at again, and the operator wakes for it.
    turns: Agenda,
    /// When a node is looked at again of which time alone may change what is found. Nobody wakes for that.
    restless: Agenda,
    /// When a node's kubelet is looked at again. Nobody wakes for that.
    probes: Agenda,
    /// How well we saw at the last look.
    sight: Option<Sight>,
    /// Since when whoever was not heard may have died with another, at the last look.
    early: Option<Tick>,
    rules: Rulebook,
}

/// What a pass over the nodes comes to.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// When to look again at the latest.
    pub(crate) look_again: Option<Tick>,
    /// Witnesses to be asked.
    /// The word of some is urgent.
    pub(crate) ask: Vec<(NodeName, WitnessKind, bool)>,
    /// Who was looked at.
    pub(crate) looked: BTreeSet<NodeName>,
}

impl Detect {
    /// Looks at every node of which something was seen or that is due: of the others nothing else can be found than before.
    pub(crate) fn look(&mut self, view: &mut View, sight: Sight, now: Tick) -> Pass {
        let mut pass = Pass { looked: self.whom(view, sight, now), ..Pass::default() };
        let mut silent = Vec::new();
        for node in pass.looked.clone() {
            let Some((track, facts)) = view.node(&node).and_then(|track| Some((track, track.facts.as_ref()?))) else {
                self.forget(&node);
                continue;
            };
            let silence = track.memory.lease.silence(&node, sight, now);
            let missed = silence.as_ref().map_or(0, |silence| silence.missed);
            let mut restless = missed > 0;
            // The next renewal that will be missing, if it is.
            let mut turn = silence.ok().map(|silence| silence.began + silence.interval.times(silence.missed + 1));
            let mut findings = BTreeMap::new();
            for rule in self.rules.rules_for(&facts.labels) {
                let finding = found(rule, &node, track, sight, now);
                decided::finding(&node, &rule.name, &finding);
                if matches!(finding, Finding::Quiet) {
                    continue;
                }
                restless |= finding.ripens();
                turn = Some(sooner(turn, finding.look_again(now)));
                findings.insert(rule.name.clone(), finding);
            }
            if track.lease_silent(&node, sight, now) {
                silent.push(node.clone());
            }
            let unheard = self.early.filter(|since| missed == 0 && track.last_heard().is_none_or(|last| last < *since));
            self.ask(&mut pass, &node, missed > 0, unheard.is_some(), now);
            if restless || unheard.is_some() {
                self.restless.set(&node, now + RESTLESS);
            } else {
                self.restless.strike(&node);
            }
            self.note(&node, findings, turn);
        }
        for node in &silent {
            view.note_silence(node);
        }
        pass.look_again = self.turns.first().map(|first| sooner(pass.look_again, first)).or(pass.look_again);
        pass
    }

    /// Who has to be looked at.
    fn whom(&mut self, view: &mut View, sight: Sight, now: Tick) -> BTreeSet<NodeName> {
        let mut whom = view.take_touched();
        whom.extend(self.turns.due(now).cloned());
        whom.extend(self.restless.due(now).cloned());
        whom.extend(self.probes.due(now).cloned());
        // Who is late is among these.
        let early = early(&whom, view, sight, now);
        let other_rules = view.take_remedies_touched();
        if other_rules {
            self.rules = Rulebook::of(view.remedies.iter().map(|(name, remedy)| (name.as_str(), &remedy.spec)));
        }
        let as_before = (self.sight, self.early) == (Some(sight), early) && !other_rules;
        (self.sight, self.early) = (Some(sight), early);
        // A gap in our own sight, another rule, a death that others may have shared: these concern everybody.
        if !as_before {
            whom.extend(view.nodes().keys().cloned());
        }
        whom
    }

    /// Notes down what a look at a node came to.
    fn note(&mut self, node: &NodeName, findings: BTreeMap<Box<str>, Finding>, turn: Option<Tick>) {
        match turn {
            Some(at) => self.turns.set(node, at),
            None => self.turns.strike(node),
        }
        if let Some(last) = self.asked.get(&(node.clone(), WitnessKind::KubeletPort)) {
            self.probes.set(node, *last + probe_again(node));
        }
        if findings.is_empty() {
            self.findings.remove(node);
        } else {
            self.findings.insert(node.clone(), findings);
        }
    }

    /// The Node is gone.
    fn forget(&mut self, node: &NodeName) {
        self.note(node, BTreeMap::new(), None);
        self.probes.strike(node);
        self.restless.strike(node);
        for kind in [WitnessKind::KubeletPort, WitnessKind::BmcPower, WitnessKind::StorageHeartbeat] {
            self.asked.remove(&(node.clone(), kind));
        }
    }

    fn ask(&mut self, pass: &mut Pass, node: &NodeName, late: bool, unheard: bool, now: Tick) {
        let mut ask = |kind, every: Span| {
            let due = self.asked.get(&(node.clone(), kind)).is_none_or(|last| now >= *last + every);
            if due {
                self.asked.insert((node.clone(), kind), now);
                pass.ask.push((node.clone(), kind, late || unheard));
            }
        };
        if late {
            ask(WitnessKind::BmcPower, ASK_AGAIN);
        }
        ask(WitnessKind::KubeletPort, if late || unheard { ASK_AGAIN } else { probe_again(node) });
        if late || unheard {
            let again = now + ASK_AGAIN;
            pass.look_again = Some(pass.look_again.map_or(again, |known| known.min(again)));
        }
    }

    /// A witness spoke.
    pub(crate) fn heard(view: &mut View, node: &NodeName, kind: WitnessKind, word: WitnessWord, now: Tick) {
        decided::witness(node, kind, word);
        if let Some(track) = view.track(node) {
            track.memory.witnesses.observe(Witness { kind, place: Place::Here }, word, now);
        }
    }

    /// What a rule finds of a node now; a rule that is gone finds nothing any more.
    pub(crate) fn finding(&self, node: &NodeName, rule: &str) -> Finding {
        self.findings.get(node).and_then(|of| of.get(rule)).cloned().unwrap_or(Finding::Quiet)
    }

    /// What kind of evidence a rule brings.
    pub(crate) fn source(&self, rule: &str) -> Source {
        self.rules.source(rule)
    }

    /// Whether something is found, or was filed, that claims may come of.
    pub(crate) fn claims_anything(&self) -> bool {
        !self.findings.is_empty() || !self.filed.is_empty()
    }

    /// Which claims become requests now. One open request of ours for a node is enough.
    pub(crate) fn claims(&mut self, view: &View, requests: &[Request], now: Tick) -> Vec<ToFile> {
        let mut file = Vec::new();
        // Of whom nothing is found, and nothing was filed, nothing is to be filed.
        let concerned: BTreeSet<_> =
            self.findings.keys().chain(self.filed.keys().map(|(node, _)| node)).cloned().collect();
        for node in &concerned {
            let Some(facts) = view.node(node).and_then(|track| track.facts.as_ref()) else { continue };
            let mut claimed = false;
            for rule in self.rules.rules_for(&facts.labels).into_iter().filter(|rule| rule.operation.is_some()) {
                let finding = self.finding(node, &rule.name);
                let filed = self.filed.entry((node.clone(), rule.name.clone())).or_default();
                match filed.decide(&finding, &rule.name, &facts.uid, requests, now) {
                    Filing::File(why) if !claimed && !open(view, node) => {
                        claimed = true;
                        let (reason, message) = (why.name(), why.to_string());
                        file.push(ToFile { node: node.clone(), reason, message, rule: rule.clone() });
                    }
                    Filing::File(_) | Filing::Open(_) | Filing::Answered(_) => claimed = true,
                    Filing::NoClaim => {}
                }
            }
        }
        self.filed.retain(|_, filed| *filed != Filed::default());
        file
    }

    /// A request was made for a claim.
    pub(crate) fn filed(&mut self, node: &NodeName, rule: &str, request: Uid, now: Tick) {
        let filed = self.filed.entry((node.clone(), rule.into())).or_default();
        filed.filed(request, now);
    }
}

/// Since when the newest node is late that its own device calls off, and that is not silent yet: whoever has not been heard
/// since then may have died with it, and is asked at once.
fn early(whom: &BTreeSet<NodeName>, view: &View, sight: Sight, now: Tick) -> Option<Tick> {
    let late = whom.iter().filter_map(|node| {
        let track = view.node(node)?;
        let since = track.late_since(node, sight, now)?;
        (!track.lease_silent(node, sight, now) && track.says_off(now)).then_some(since)
    });
    late.max()
}

/// How long after the last look a healthy node's kubelet is looked at again.
fn probe_again(node: &NodeName) -> Span {
    let sum = node.as_str().bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Span::millis(PROBE_AGAIN.as_millis() + sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) % PROBE_SPREAD)
}

fn sooner(known: Option<Tick>, other: Tick) -> Tick {
    known.map_or(other, |known| known.min(other))
}

/// Whether a request of ours for this node is under way, by whatever rule.
fn open(view: &View, node: &NodeName) -> bool {
    use palisade_api::request::Phase;
    view.requests.values().any(|request| {
        let phase = request.status.as_ref().map_or(Phase::Pending, |status| status.phase);
        request.spec.node_name.as_deref() == Some(node.as_str())
            && request.spec.trigger.is_some()
            && !matches!(phase, Phase::Completed | Phase::Rejected)
    })
}

fn found(rule: &Rule, node: &NodeName, track: &NodeTrack, sight: Sight, now: Tick) -> Finding {
    match &rule.look {
        Look::Condition(threshold) => track.memory.conditions.judge(threshold, sight, now),
        Look::Lease(threshold) => {
            let ready = track.facts.as_ref().map_or_else(Default::default, |facts| facts.ready);
            let others = Others { witnesses: &track.memory.witnesses, ready };
            track.memory.lease.judge(node, threshold, others, sight, now)
        }
        Look::Nothing => Finding::Quiet,
    }
}

#[cfg(test)]
mod tests {
    use palisade_core::detect::conditions::SeenCondition;
    use palisade_core::detect::lease::SeenLease;
    use palisade_core::snapshot::Ready;

    use super::*;
    use crate::view::{Change, NodeFacts, Seen, ShownLease};

    const CLEAR: Sight = Sight::Clear { since: Tick::START };

    fn at(seconds: u64) -> Tick {
        Tick::at_millis(seconds * 1_000)
    }

    fn node(name: &str, ready: &str) -> (NodeName, NodeFacts) {
        let conditions =
            vec![SeenCondition { condition: "Ready".into(), status: ready.into(), reason: "Reported".into() }];
        let ready = if ready == "True" { Ready::True } else { Ready::Unknown };
        (NodeName::from(name), NodeFacts { uid: Uid::from(name), ready, conditions, ..NodeFacts::default() })
    }

    fn renew(view: &mut View, name: &str, now: Tick) {
        let seen = SeenLease { holder: Some(name.into()), seconds: Some(40), renewed: Some(now.to_string().into()) };
        view.take(Seen::Lease(Change::Set((NodeName::from(name), ShownLease { seen, version: 1 }))), now);
    }

    /// Three nodes that were looked at once and renewed at 5 s.
    fn three() -> (Detect, View) {
        let (mut detect, mut view) = (Detect::default(), View::default());
        let nodes = ["n1", "n2", "n3"].map(|name| node(name, "True"));
        view.take(Seen::Node(Change::All(nodes.into())), at(0));
        for name in ["n1", "n2", "n3"] {
            renew(&mut view, name, at(0));
        }
        detect.look(&mut view, CLEAR, at(0));
        for name in ["n1", "n2", "n3"] {
            renew(&mut view, name, at(5));
        }
        detect.look(&mut view, CLEAR, at(5));
        (detect, view)
    }

    fn looked(pass: &Pass) -> Vec<&str> {
        pass.looked.iter().map(NodeName::as_str).collect()
    }

    #[test]
    fn a_quiet_node_of_which_nothing_was_seen_is_left_alone() {
        let (mut detect, mut view) = three();
        renew(&mut view, "n2", at(6));
        assert_eq!(looked(&detect.look(&mut view, CLEAR, at(6))), ["n2"]);
        assert_eq!(looked(&detect.look(&mut view, CLEAR, at(7))), Vec::<&str>::new());
    }

    #[test]
    fn a_node_that_is_due_is_looked_at_though_nothing_was_seen_of_it() {
        let (mut detect, mut view) = three();
        renew(&mut view, "n2", at(14));
        let pass = detect.look(&mut view, CLEAR, at(14));
        // 10.4 s after the renewal of the two others.
        assert_eq!(pass.look_again, Some(Tick::at_millis(15_400)));
        let pass = detect.look(&mut view, CLEAR, Tick::at_millis(15_400));
        assert_eq!(looked(&pass), ["n1", "n3"]);
        assert_eq!(detect.finding(&NodeName::from("n1"), "built-in/lease-silent").name(), "LeaseLate");
    }

    #[test]
    fn a_node_that_something_speaks_against_is_looked_at_again_soon() {
        let (mut detect, mut view) = three();
        renew(&mut view, "n2", at(14));
        detect.look(&mut view, CLEAR, at(16));
        renew(&mut view, "n1", at(16));
        detect.look(&mut view, CLEAR, at(16));
        assert_eq!(looked(&detect.look(&mut view, CLEAR, at(17))), ["n3"]);
        view.take(Seen::Node(Change::Set(node("n1", "Unknown"))), at(18));
        detect.look(&mut view, CLEAR, at(18));
        assert_eq!(looked(&detect.look(&mut view, CLEAR, at(19))), ["n1", "n3"]);
    }

    #[test]
    fn a_kubelet_that_is_due_is_asked_in_the_next_turn_and_nobody_wakes_for_it() {
        let (mut detect, mut view) = three();
        renew(&mut view, "n1", at(15));
        renew(&mut view, "n2", at(15));
        renew(&mut view, "n3", at(15));
        let pass = detect.look(&mut view, CLEAR, at(15));
        assert_eq!((pass.ask.len(), pass.look_again), (0, Some(Tick::at_millis(25_400))));
        let pass = detect.look(&mut view, CLEAR, at(25));
        assert_eq!(pass.ask.iter().map(|(node, ..)| node.as_str()).collect::<Vec<_>>(), ["n1", "n2", "n3"]);
    }

    #[test]
    fn a_gap_in_our_own_sight_concerns_everybody() {
        let (mut detect, mut view) = three();
        let blind = Sight::Blind { since: at(5) };
        assert_eq!(looked(&detect.look(&mut view, blind, at(30))).len(), 3);
        assert_eq!(detect.finding(&NodeName::from("n1"), "built-in/lease-silent").name(), "ObserverBlind");
        assert_eq!(looked(&detect.look(&mut view, blind, at(31))), Vec::<&str>::new());
        assert_eq!(looked(&detect.look(&mut view, Sight::Clear { since: at(32) }, at(32))).len(), 3);
    }

    #[test]
    fn a_node_that_is_gone_is_due_no_more() {
        let (mut detect, mut view) = three();
        view.take(Seen::Node(Change::Gone(node("n1", "True"))), at(6));
        detect.look(&mut view, CLEAR, at(6));
        renew(&mut view, "n2", at(10));
        renew(&mut view, "n3", at(10));
        detect.look(&mut view, CLEAR, at(10));
        assert_eq!(looked(&detect.look(&mut view, CLEAR, at(18))), Vec::<&str>::new());
    }
}
