//! Run / preflight: devices are asked beside the loop while nobody needs them, and what they say is told.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use palisade_api::template::Identity;
use palisade_core::detect::sight::Sight;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::isolate::{Placement, placement};
use palisade_core::preflight::{Answer, Around, Change, Key, Outcome, device, judge};
use palisade_core::resolve::call::Device as Target;
use palisade_core::snapshot::Ready;
use palisade_core::time::{Span, Tick};

use super::Operator;
use super::fences::domain_keys;
use crate::events::Tone;
use crate::executor::Executor;
use crate::preflight::{self, Asked};
use crate::snapshot::{Scene, snapshot};

impl Operator {
    /// Asks the devices that are due. Returns when to look again.
    pub(super) fn check_devices(&mut self, looked: &BTreeSet<NodeName>, sight: Sight, now: Tick) -> Tick {
        for node in self.preflight.follow(&self.view, &self.plans, looked, now) {
            self.show_devices(&node);
        }
        self.ask_ourselves(now);
        self.ask_by_job(sight, now);
        self.preflight.put_into_words(now);
        self.context.metrics.checks_behind(self.preflight.rounds.behind(now));
        self.preflight.wake(now).unwrap_or(now + Span::mins(1))
    }

    fn ask_ourselves(&mut self, now: Tick) {
        let fences = &self.view.fences;
        let series = self.preflight.rounds.begin(|node| fences.contains_key(node), now);
        let mut gone = Vec::new();
        let lines = preflight::lines(series, |key| {
            let found = self.reach(key);
            if found.is_none() {
                gone.push(key.clone());
            }
            found
        });
        for key in gone {
            self.no_device(&key, now);
        }
        if lines.iter().any(|line| !line.is_empty()) {
            self.beside.start(preflight::ask(lines, self.news.clone()));
        }
    }

    /// One device at a time is asked by a Job, which gives way to a fence of its node.
    fn ask_by_job(&mut self, sight: Sight, now: Tick) {
        let fences = &self.view.fences;
        self.preflight.stop_job(|node| fences.contains_key(node));
        let Some(key) = self.preflight.rounds.begin_job(|node| fences.contains_key(node), now) else { return };
        let template = self.preflight.rounds.template_of(&key);
        let template = template.and_then(|name| self.view.templates.get(&*name)?.uid()).map(Uid::new);
        let (Some((target, executor)), Some(template)) = (self.reach(&key), template) else {
            return self.no_device(&key, now);
        };
        let placement = Arc::new(self.placement_of_check(&key.node, sight, now));
        let executor = Executor { placement, ..executor };
        let stopped = self.preflight.asks_by_job(&key);
        let asked = Asked { key, target, executor };
        self.beside.start(preflight::ask_by_job(asked, template, stopped, self.news.clone()));
    }

    /// Where a check's Job may run: where that of a fence might. A picture of the cluster for each is not too much: there is one in
    /// [`PAUSE`](palisade_core::preflight::PAUSE) at most.
    fn placement_of_check(&self, node: &NodeName, sight: Sight, now: Tick) -> Placement {
        let scene = Scene { view: &self.view, watch: &self.watch, workloads: &self.workloads, sight, now };
        placement(node, &snapshot(scene), &domain_keys(&self.policy))
    }

    fn no_device(&mut self, key: &Key, now: Tick) {
        let why = Outcome::NotAsked("it is no device of the node any more".to_owned());
        self.preflight.rounds.answered(key, why, now);
    }

    /// How a device is reached, by the config as it is now.
    fn reach(&self, key: &Key) -> Option<(Target, Executor)> {
        let node = &key.node;
        let calls = self.plans.calls_of(node, &self.view)?;
        let facts = self.view.node(node)?.facts.as_ref()?;
        let executor = Executor {
            context: self.context.clone(),
            hold: self.hold.clone(),
            node: node.clone(),
            node_uid: None,
            fence: Uid::default(),
            system_uuid: facts.system_uuid.clone(),
            kubelet: self.view.kubelet_of(node),
            silent: false,
            placement: Arc::default(),
            calls: Arc::clone(&calls),
        };
        Some((device(&calls, key)?.clone(), executor))
    }

    /// A device was asked.
    pub(super) fn checked(&mut self, key: &Key, answer: Answer, now: Tick) {
        self.preflight.asked(key);
        let Some(template) = self.preflight.rounds.template_of(key) else {
            // Nobody wants to know any more.
            self.preflight.rounds.answered(key, Outcome::NotAsked("it is gone".to_owned()), now);
            return;
        };
        let outcome = if self.view.fences.contains_key(&key.node) {
            Outcome::NotAsked("its node is being fenced".to_owned())
        } else {
            judge(answer, self.around(key))
        };
        self.context.metrics.device_checked(outcome.name());
        let change = self.preflight.rounds.answered(key, outcome.clone(), now);
        self.preflight.learnt();
        self.show_devices(&key.node);
        if let Some(change) = change {
            self.tell_change(key, &template, &change, &outcome, now);
        }
    }

    /// What is known of a node besides its device.
    fn around(&self, key: &Key) -> Around {
        let facts = self.view.node(&key.node).and_then(|track| track.facts.as_ref());
        let template = self.preflight.rounds.template_of(key).and_then(|name| self.view.templates.get(&*name));
        Around {
            // Nobody is let off for want of a template.
            rule: template.map_or(Identity::Required, |template| template.spec.identity),
            ready: facts.is_some_and(|facts| facts.ready == Ready::True),
        }
    }

    /// Tells people that a device fails, or is good again if they know that it failed.
    fn tell_change(&mut self, key: &Key, template: &str, change: &Change, outcome: &Outcome, now: Tick) {
        let node = &key.node;
        let text = match change {
            Change::Fails => {
                tracing::warn!(%node, template, reason = outcome.name(), why = %outcome, "a device fails its check");
                format!("{template}: the device {outcome}. As it is, {node} cannot be fenced by it")
            }
            Change::GoodAgain => {
                tracing::info!(%node, template, "a device is good again");
                format!("{template}: the device {outcome} again")
            }
        };
        let known = self.preflight.told.contains(key);
        match change {
            Change::Fails if known || self.preflight.may_tell(now) => {
                self.preflight.told.insert(key.clone());
                self.tell(self.about_node(node), Tone::Warning, "DeviceCheckFailed", &text);
            }
            Change::GoodAgain if self.preflight.told.remove(key) => {
                self.tell(self.about_node(node), Tone::Normal, "DeviceCheckGood", &text);
            }
            // Too many at once: the template's condition and the metrics tell.
            Change::Fails | Change::GoodAgain => {}
        }
    }

    fn about_node(&self, node: &NodeName) -> ObjectReference {
        let facts = self.view.node(node).and_then(|track| track.facts.as_ref());
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(node.to_string()),
            uid: facts.map(|facts| facts.uid.to_string()),
            ..ObjectReference::default()
        }
    }

    /// Shows in the metrics what is known of a node's devices.
    fn show_devices(&self, node: &NodeName) {
        let clock = &self.context.clock;
        let all = self.preflight.rounds.standing(node).into_iter();
        let all = all.map(|(template, standing)| (template, standing.last, standing.good.map(|at| clock.instant(at))));
        self.context.metrics.devices(node, all.collect());
    }
}
