//! Run / witnesses: whoever can say more about a node is asked, beside the loop.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::prove::{Class, Seen as Power};
use palisade_core::settings::{Method, Settings};
use palisade_core::snapshot::{WitnessKind, WitnessWord};
use palisade_core::time::Tick;

use super::Operator;
use crate::executor::Executor;
use crate::news::News;
use crate::workload;

impl Operator {
    /// Asks a witness, beside; one that has not answered yet is not asked again.
    pub(super) fn ask(&mut self, node: NodeName, kind: WitnessKind, urgent: bool) {
        if self.asking.awaits(&node, kind) {
            return;
        }
        let word = match kind {
            WitnessKind::KubeletPort => self.context.probe.kubelet(&node, self.view.kubelet_of(&node)),
            WitnessKind::BmcPower => match self.power_word(&node) {
                Some(word) => word,
                None => return,
            },
            WitnessKind::StorageHeartbeat => return,
        };
        let (news, seats) = (self.news.clone(), self.asking.begin(&node, kind, urgent));
        self.beside.start(async move {
            // Nobody closes it; without a seat one would only be asked earlier.
            let _seat = seats.acquire().await;
            let word = word.await;
            let _ = news.send(News::Witness { node, kind, word });
        });
    }

    /// What the device says that would switch the machine off, as a witness; nothing if there is none.
    pub(super) fn power_word(&mut self, node: &NodeName) -> Option<BoxFuture<'static, WitnessWord>> {
        let plan = self.plans.of(node, &self.view).ok()?;
        let method = power_method(&plan.settings)?;
        let executor = Executor {
            context: self.context.clone(),
            hold: self.hold.clone(),
            node: node.clone(),
            node_uid: None,
            fence: Uid::default(),
            system_uuid: None,
            kubelet: None,
            silent: false,
            placement: Arc::default(),
            calls: Arc::clone(&plan.calls),
        };
        let word = async move {
            match executor.power(&method).await {
                Power::Off => WitnessWord::Silent,
                Power::On => WitnessWord::Alive,
                Power::Unknown => WitnessWord::Unknown,
            }
        };
        Some(Box::pin(word))
    }

    /// What runs on a node that is asked about, or that may soon be, is known when it is.
    pub(super) fn refresh_workload(&mut self, node: NodeName, now: Tick) {
        if !self.workloads.begin(&node, now) {
            return;
        }
        let (client, news) = (self.context.client.clone(), self.news.clone());
        self.beside.start(async move {
            let seen = workload::list(client, &node).await;
            let _ = news.send(News::Workload { node, seen });
        });
    }
}

/// The method that switches the machine off, if there is one.
fn power_method(settings: &Settings) -> Option<Method> {
    let plans = [&settings.isolation, &settings.power_off];
    let mut methods = plans.into_iter().flat_map(|plan| &plan.levels).flat_map(|level| &level.methods);
    methods.find(|method| method.proves == Some(Class::Power)).cloned()
}
