//! Detect: runs the detectors of `core` over the view, asks witnesses, and says which claims become requests.
//!
//! Every replica detects, so that a new leader has watched as long as the old one; only the leader files.

use std::collections::BTreeMap;

use palisade_api::NodeRemedy;
use palisade_core::detect::Finding;
use palisade_core::detect::lease::Others;
use palisade_core::detect::sight::Sight;
use palisade_core::detect::witness::{Place, Witness};
use palisade_core::ident::{NodeName, Uid};
use palisade_core::request::Request;
use palisade_core::request::filing::{Filed, Filing};
use palisade_core::resolve::{Look, Rule, default_rules, rules, selects};
use palisade_core::snapshot::{WitnessKind, WitnessWord};
use palisade_core::time::{Span, Tick};

use crate::view::{NodeTrack, View};

/// How often a suspicious node's witnesses are asked.
const ASK_AGAIN: Span = Span::secs(3);
/// How often a healthy node's kubelet is looked at: a witness's silence counts only if it saw the node alive before.
const PROBE_AGAIN: Span = Span::secs(20);

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
    findings: BTreeMap<(NodeName, Box<str>), Finding>,
    filed: BTreeMap<(NodeName, Box<str>), Filed>,
    asked: BTreeMap<(NodeName, WitnessKind), Tick>,
}

/// What a pass over all nodes comes to.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// When to look again at the latest.
    pub(crate) look_again: Option<Tick>,
    /// Witnesses to be asked.
    pub(crate) ask: Vec<(NodeName, WitnessKind)>,
}

impl Detect {
    /// Looks at every node.
    pub(crate) fn look(&mut self, view: &mut View, sight: Sight, now: Tick) -> Pass {
        let mut pass = Pass::default();
        let remedies: Vec<(&str, &NodeRemedy)> = view.remedies.iter().map(|(name, one)| (name.as_str(), one)).collect();
        let early = early(view, sight, now);
        self.findings.clear();
        for (node, track) in &mut view.nodes {
            let Some(facts) = &track.facts else { continue };
            let rules = rules_for(&facts.labels, &remedies);
            let silence = track.memory.lease.silence(node, sight, now);
            let missed = silence.as_ref().map_or(0, |silence| silence.missed);
            for rule in rules {
                let finding = found(&rule, node, track, sight, now);
                let again = finding.look_again(now);
                if !matches!(finding, Finding::Quiet) {
                    pass.look_again = Some(pass.look_again.map_or(again, |known| known.min(again)));
                }
                self.findings.insert((node.clone(), rule.name.clone()), finding);
            }
            if let Ok(silence) = silence {
                // The next renewal that will be missing, if it is.
                let next = silence.began + silence.interval.times(silence.missed + 1);
                pass.look_again = Some(pass.look_again.map_or(next, |known| known.min(next)));
            }
            let silent = track.lease_silent(node, sight, now);
            track.note_silence(silent);
            let unheard = early.filter(|since| missed == 0 && track.last_heard().is_none_or(|last| last < *since));
            self.ask(&mut pass, node, missed > 0, unheard.is_some(), now);
        }
        pass
    }

    fn ask(&mut self, pass: &mut Pass, node: &NodeName, late: bool, unheard: bool, now: Tick) {
        let mut ask = |kind, every: Span| {
            let due = self.asked.get(&(node.clone(), kind)).is_none_or(|last| now >= *last + every);
            if due {
                self.asked.insert((node.clone(), kind), now);
                pass.ask.push((node.clone(), kind));
            }
        };
        if late {
            ask(WitnessKind::BmcPower, ASK_AGAIN);
        }
        ask(WitnessKind::KubeletPort, if late || unheard { ASK_AGAIN } else { PROBE_AGAIN });
        if late || unheard {
            let again = now + ASK_AGAIN;
            pass.look_again = Some(pass.look_again.map_or(again, |known| known.min(again)));
        }
    }

    /// A witness spoke.
    pub(crate) fn heard(view: &mut View, node: &NodeName, kind: WitnessKind, word: WitnessWord, now: Tick) {
        if let Some(track) = view.nodes.get_mut(node) {
            track.memory.witnesses.observe(Witness { kind, place: Place::Here }, word, now);
        }
    }

    /// What a rule finds of a node now; a rule that is gone finds nothing any more.
    pub(crate) fn finding(&self, node: &NodeName, rule: &str) -> Finding {
        self.findings.get(&(node.clone(), rule.into())).cloned().unwrap_or(Finding::Quiet)
    }

    /// Which claims become requests now. One open request of ours for a node is enough.
    pub(crate) fn claims(&mut self, view: &View, requests: &[Request], now: Tick) -> Vec<ToFile> {
        let mut file = Vec::new();
        let remedies: Vec<(&str, &NodeRemedy)> = view.remedies.iter().map(|(name, one)| (name.as_str(), one)).collect();
        for (node, track) in &view.nodes {
            let Some(facts) = &track.facts else { continue };
            let mut claimed = false;
            for rule in rules_for(&facts.labels, &remedies).into_iter().filter(|rule| rule.operation.is_some()) {
                let Some(finding) = self.findings.get(&(node.clone(), rule.name.clone())) else { continue };
                let filed = self.filed.entry((node.clone(), rule.name.clone())).or_default();
                match filed.decide(finding, &rule.name, &facts.uid, requests, now) {
                    Filing::File(why) if !claimed && !open(view, node) => {
                        claimed = true;
                        file.push(ToFile { node: node.clone(), reason: why.name(), message: why.to_string(), rule });
                    }
                    Filing::File(_) | Filing::Open(_) | Filing::Answered(_) => claimed = true,
                    Filing::NoClaim => {}
                }
            }
        }
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
fn early(view: &View, sight: Sight, now: Tick) -> Option<Tick> {
    let late = view.nodes.iter().filter_map(|(node, track)| {
        let since = track.late_since(node, sight, now)?;
        (!track.lease_silent(node, sight, now) && track.says_off(now)).then_some(since)
    });
    late.max()
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

/// The rules for a node: those of the remedies with the highest priority that select it; without any remedy, the built-in ones.
fn rules_for(labels: &BTreeMap<String, String>, remedies: &[(&str, &NodeRemedy)]) -> Vec<Rule> {
    if remedies.is_empty() {
        return default_rules();
    }
    let selected = |remedy: &NodeRemedy| remedy.spec.node_selector.as_ref().is_none_or(|one| selects(one, labels));
    let chosen: Vec<_> = remedies.iter().filter(|(_, remedy)| selected(remedy)).collect();
    let highest = chosen.iter().map(|(_, remedy)| remedy.spec.priority).max();
    let best = chosen.into_iter().filter(|(_, remedy)| Some(remedy.spec.priority) == highest);
    best.flat_map(|(name, remedy)| rules(name, &remedy.spec)).collect()
}
