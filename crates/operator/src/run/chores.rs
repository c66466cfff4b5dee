//! Run / chores: what is put in order now and then.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Api, PostParams};
use palisade_api::policy::FencePolicySpec;
use palisade_api::{FencePolicy, names};
use palisade_core::detect::sight::Sight;
use palisade_core::ident::NodeName;
use palisade_core::policy::Policy;
use palisade_core::time::{Span, Tick};
use palisade_core::vet::entry_for;

use super::Operator;
use crate::accept;
use crate::bookkeeping;
use crate::effects::ledger_of;
use crate::news::News;
use crate::said::brief;
use crate::snapshot::{Scene, snapshot};

/// How often the ledger is put in order, and how soon one is built.
const KEEP: Span = Span::secs(10);
const KEEP_SOON: Span = Span::secs(1);
/// How soon a FencePolicy that could not be made is tried again.
const MAKE_AGAIN: Duration = Duration::from_secs(30);

impl Operator {
    /// The ledger is built at once where there is none, and put in order now and then.
    pub(super) fn keep_ledger(&mut self, policy: &Policy, sight: Sight, now: Tick) {
        let Some(object) = &self.view.policy else { return };
        let ledger = ledger_of(object);
        let missing = ledger.is_none();
        let watched = now.since(self.kept);
        if self.keeping || watched < if missing { KEEP_SOON } else { KEEP } {
            return;
        }
        self.kept = now;
        // Where there is nothing to sweep and nothing to age, nobody has to be asked; whoever takes a slot shows up in time.
        if ledger.is_some_and(|ledger| ledger.entries.is_empty() && ledger.grants.is_empty()) {
            return;
        }
        self.keeping = true;
        let (context, hold, news) = (self.context.clone(), self.hold.clone(), self.news.clone());
        let budget = policy.budget;
        let members = if missing { self.members(policy, sight, now) } else { BTreeMap::new() };
        self.beside.start(async move {
            if let Err(why) = bookkeeping::keep(context, hold, budget, watched, members).await {
                tracing::debug!(%why, "the ledger is put in order later");
            }
            let _ = news.send(News::Kept);
        });
    }

    /// Which nodes are members of the control plane, and which are not.
    pub(super) fn members(&self, policy: &Policy, sight: Sight, now: Tick) -> BTreeMap<NodeName, bool> {
        let scene = Scene { view: &self.view, watch: &self.watch, workloads: &self.workloads, sight, now };
        let picture = snapshot(scene);
        let member = |node: &NodeName| (node.clone(), entry_for(node, 0, &picture, policy).control_plane);
        self.view.nodes().keys().map(member).collect()
    }

    /// Has configs, templates and remedies say what is to be said of them.
    pub(super) fn say(&mut self, words: Vec<accept::Word>) {
        if words.is_empty() {
            return;
        }
        self.accept.writes();
        let (context, hold, news) = (self.context.clone(), self.hold.clone(), self.news.clone());
        self.beside.start(async move {
            let _ = news.send(accept::write(context, hold, words).await);
        });
    }

    /// A cluster without a FencePolicy gets the default one: its status is the ledger.
    pub(super) fn make_policy(&mut self) {
        if std::mem::replace(&mut self.policy_asked, true) {
            return;
        }
        let (client, news) = (self.context.client.clone(), self.news.clone());
        self.beside.start(async move {
            let policies: Api<FencePolicy> = Api::all(client);
            let policy = FencePolicy::new(names::POLICY_NAME, FencePolicySpec::default());
            match policies.create(&PostParams::default(), &policy).await {
                Ok(_) => {
                    tracing::info!(name = names::POLICY_NAME, "there was no FencePolicy; the default one was made");
                    let _ = news.send(News::Answered);
                }
                Err(why) => {
                    tracing::warn!(
                        why = brief(&why),
                        "the default FencePolicy was not made; nothing is admitted without one"
                    );
                    tokio::time::sleep(MAKE_AGAIN).await;
                    let _ = news.send(News::NoPolicyMade);
                }
            }
        });
    }
}
