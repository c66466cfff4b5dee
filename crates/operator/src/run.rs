//! Run: the loop. News come in, the view changes, and whatever may have changed is asked what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::pin_mut;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use palisade_api::policy::FencePolicySpec;
use palisade_api::{FencePolicy, names};
use palisade_core::detect::Standing;
use palisade_core::detect::sight::{Sight, Watch};
use palisade_core::effect::Effect;
use palisade_core::fence::Phase;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::observe::Vetted;
use palisade_core::policy::Policy;
use palisade_core::prove::Seen as Power;
use palisade_core::request::history::{Retention, aged_out};
use palisade_core::request::{Request, RequestEffect};
use palisade_core::resolve;
use palisade_core::settings::{Method, Settings};
use palisade_core::snapshot::{Snapshot, WitnessKind, WitnessWord};
use palisade_core::time::{Span, Tick};
use palisade_core::vet::{Verdict, entry_for, vet};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::accept::{self, Accept};
use crate::asking::Asking;
use crate::beside::Beside;
use crate::bookkeeping;
use crate::context::Context;
use crate::decided;
use crate::detect::Detect;
use crate::effects::{Hand, Outcome, ledger_of};
use crate::events::{self, Tone};
use crate::executor::Executor;
use crate::fences::{Around, Fences, Live, Look, asked_by};
use crate::leader::{self, Hold, Term};
use crate::news::News;
use crate::plans::{Plan, Plans};
use crate::requests::{self, Requests};
use crate::snapshot::{Scene, refreshed, snapshot};
use crate::view::{Seen, View};
use crate::watch;
use crate::workload::{self, Workloads};

/// However quiet it is, everything is looked at this often.
const AT_LEAST: Span = Span::secs(10);
/// How often the ledger is put in order, and how soon one is built.
const KEEP: Span = Span::secs(10);
const KEEP_SOON: Span = Span::secs(1);
/// After a turn that is not short, the next one begins so many times its length later: while somebody is vetted among thousands of
/// nodes, a turn for every renewal would leave no time to hear the next one.
const REST: u32 = 4;
const SHORT: Duration = Duration::from_millis(1);
/// How often history is looked through.
const AGE: Span = Span::secs(60);
/// How long what was begun may take when the operator is asked to stop: shorter than the leader's lease holds.
const FINISH: Duration = Duration::from_secs(5);

/// Runs the operator until `stop` resolves; then lets what it has begun come to an end, and gives up the lease.
///
/// The whole operator is this one future: to drop it is to crash it.
pub async fn run(context: Context, stop: impl Future<Output = ()>) {
    let (sender, news) = unbounded_channel();
    let hold = Hold::default();
    let mut operator = Operator::new(context.clone(), hold.clone(), sender.clone());
    tokio::select! {
        biased;
        () = stop => {}
        // Work is only done in the time that these two leave: who does not look, or loses the lease, may do nothing at all.
        () = leader::run(context.clone(), hold.clone(), sender.clone()) => {}
        () = watch::all(&context.client, &sender) => {}
        () = operator.serve(news) => {}
    }
    operator.beside.finish(FINISH).await;
    leader::resign(&context, &hold).await;
}

struct Operator {
    context: Context,
    hold: Hold,
    news: UnboundedSender<News>,
    beside: Beside,
    view: View,
    watch: Watch,
    /// The policy in the units of `core`, made anew whenever the object changes.
    policy: Policy,
    leads: bool,
    detect: Detect,
    requests: Requests,
    fences: Fences,
    looks: Look,
    workloads: Workloads,
    plans: Plans,
    accept: Accept,
    /// The picture that vetting looked at in the turn before, while somebody waits for a verdict.
    picture: Option<Snapshot>,
    asking: Asking,
    policy_asked: bool,
    /// When history was last looked through.
    aged: Tick,
    /// Nodes whose FenceConfig makes no sense, and why, as people were told.
    unusable: BTreeMap<NodeName, String>,
    /// When the ledger was last put in order, and whether that is under way.
    kept: Tick,
    keeping: bool,
}

impl Operator {
    fn new(context: Context, hold: Hold, news: UnboundedSender<News>) -> Self {
        Self {
            context,
            hold,
            news,
            beside: Beside::default(),
            view: View::default(),
            watch: Watch::default(),
            policy: Policy::default(),
            leads: false,
            detect: Detect::default(),
            requests: Requests::default(),
            fences: Fences::new(),
            looks: Look::default(),
            workloads: Workloads::default(),
            plans: Plans::default(),
            accept: Accept::default(),
            picture: None,
            asking: Asking::default(),
            policy_asked: false,
            aged: Tick::START,
            unusable: BTreeMap::new(),
            kept: Tick::START,
            keeping: false,
        }
    }

    async fn serve(&mut self, mut news: UnboundedReceiver<News>) {
        let mut wake = self.now() + AT_LEAST;
        loop {
            let timer = tokio::time::sleep_until(self.context.clock.instant(wake));
            tokio::select! {
                biased;
                one = news.recv() => match one {
                    Some(one) => self.take(one),
                    None => return,
                },
                () = self.beside.go_on() => {}
                () = timer => {}
            }
            // Whatever else has come in meanwhile is one picture.
            while let Ok(more) = news.try_recv() {
                self.take(more);
            }
            let began = Instant::now();
            wake = self.turn();
            let took = began.elapsed();
            if took > SHORT {
                self.rest(took * REST).await;
            }
        }
    }

    /// Lets what is under way go on, and takes no turn.
    async fn rest(&mut self, time: Duration) {
        let over = tokio::time::sleep(time);
        pin_mut!(over);
        loop {
            tokio::select! {
                biased;
                () = &mut over => return,
                () = self.beside.go_on() => {}
            }
        }
    }

    fn now(&self) -> Tick {
        self.context.clock.tick()
    }

    fn take(&mut self, news: News) {
        let _told = decided::by(&self.context.identity);
        let now = self.now();
        if news.api_answered() {
            self.watch.answered(self.policy.observer_fresh, now);
        }
        match news {
            News::Seen(seen) => {
                let (policy, fences) = (matches!(seen, Seen::Policy(_)), matches!(seen, Seen::Fence(_)));
                if matches!(seen, Seen::Config(_) | Seen::Template(_)) {
                    self.plans.forget();
                }
                self.view.take(seen, now);
                if policy {
                    self.policy = self.resolved_policy();
                    // Whoever waits behind a gate may go on: the mode has changed, or a slot is free.
                    let waits = |live: &&mut Live| matches!(live.fence().phase, Phase::New);
                    self.fences.values_mut().filter(waits).for_each(Live::nudge);
                }
                if fences {
                    self.follow_fences(now);
                }
            }
            News::NotUnderstood(bad) => {
                let about = ObjectReference {
                    kind: Some(bad.kind.clone()),
                    namespace: bad.namespace.clone(),
                    name: Some(bad.name.clone()),
                    uid: Some(bad.uid.clone()),
                    ..Default::default()
                };
                let why = format!("this {} cannot be understood and is left out; put it right: {}", bad.kind, bad.why);
                tracing::error!(kind = bad.kind, name = bad.name, why);
                self.tell(about, Tone::Warning, "NotUnderstood", &why);
                self.context.metrics.not_understood(&bad.kind);
                self.accept.not_understood(bad, now);
            }
            News::Leads(term) => self.term(term),
            News::Done { node, look, outcomes } => self.done(&node, look, outcomes, now),
            News::Called { node, answer, told } => {
                tracing::info!(%node, told, "device");
                if let Some(live) = self.fences.get_mut(&node).filter(|live| live.fence().uid == answer.fence) {
                    live.called(answer);
                }
            }
            News::Read { node, look, answer } => {
                decided::read(&node, &answer);
                if let Some(live) = asked_by(&mut self.fences, &node, look) {
                    live.read(answer);
                }
            }
            News::Witness { node, kind, word } => {
                self.asking.answered(&node, kind);
                Detect::heard(&mut self.view, &node, kind, word, now);
            }
            News::Requests(mut outcome) => {
                self.requests.done(&mut outcome, now);
                if let Some(why) = &outcome.failed {
                    tracing::info!(why, "a request is looked at again");
                }
                if let Some(uid) = &outcome.gone {
                    self.view.lose_request(uid);
                }
                if let Some((node, rule, made)) = outcome.filed {
                    self.detect.filed(&node, &rule, Uid::new(made.uid().unwrap_or_default()), now);
                    self.view.see_request(*made);
                }
                if let Some(written) = outcome.written {
                    self.view.see_request(*written);
                }
                if let Some(fence) = outcome.fence {
                    self.view.see_fence(*fence);
                    self.follow_fences(now);
                }
            }
            News::Workload { node, seen } => self.workloads.answered(node, seen, now),
            News::Kept => self.keeping = false,
            News::Accepted { all } => self.accept.written(all, now),
            News::Answered => {}
        }
    }

    fn term(&mut self, term: Term) {
        self.leads = term == Term::Leads;
        tracing::info!(identity = self.context.identity, leads = self.leads, "leadership");
        self.context.metrics.leads(self.leads);
        // What this process remembers of fences counts from when it began to lead: an old leader's calls may be under way.
        self.fences.clear();
        if self.leads {
            self.follow_fences(self.now());
        }
    }

    /// Keeps a live fence for each NodeFence.
    fn follow_fences(&mut self, now: Tick) {
        if !self.leads {
            return;
        }
        let (view, fences) = (&self.view, &mut self.fences);
        fences.retain(|node, live| {
            view.fences.get(node).is_some_and(|object| object.uid().as_deref() == Some(live.fence().uid.as_str()))
        });
        let mut unreadable = Vec::new();
        for (node, object) in &view.fences {
            let followed = match fences.get_mut(node) {
                Some(live) => live.see(object, now),
                None => Live::new(object.clone(), self.looks.next(), now).map(|live| {
                    fences.insert(node.clone(), live);
                }),
            };
            if let Err(why) = followed {
                tracing::error!(%node, %why, "the fence is held");
                fences.remove(node);
                unreadable.push((events::about(object), why.to_string()));
            }
        }
        for (about, why) in unreadable {
            self.tell(about, Tone::Warning, "NotUnderstood", &why);
        }
        self.context.metrics.fences(self.fences.values().map(|live| live.fence().phase.name()));
    }

    fn done(&mut self, node: &NodeName, look: Look, outcomes: Vec<Outcome>, now: Tick) {
        for outcome in &outcomes {
            match outcome {
                Outcome::Node(_, Some(facts)) | Outcome::NodeWritten(facts) => {
                    self.view.read_node(node.clone(), (**facts).clone(), now);
                }
                Outcome::Node(_, None) => {
                    self.view.lose_node(node);
                }
                Outcome::Recorded(object) => {
                    self.view.see_fence((**object).clone());
                    self.tell_record(object);
                }
                _ => {}
            }
        }
        let Some(live) = asked_by(&mut self.fences, node, look) else { return };
        match live.done(outcomes, now) {
            Ok(false) => {}
            Ok(true) => {
                self.fences.remove(node);
                self.view.lose_fence(node);
            }
            Err(why) => {
                tracing::error!(%node, %why, "the fence is held");
                self.fences.remove(node);
            }
        }
    }

    /// Tells people about an object.
    fn tell(&mut self, about: ObjectReference, tone: Tone, reason: &str, message: &str) {
        self.beside.start(events::tell(&self.context, &self.news, about, tone, reason, message));
    }

    /// Tells people what was recorded.
    fn tell_record(&mut self, fence: &palisade_api::NodeFence) {
        let Some(line) = fence.status.as_ref().and_then(|status| status.timeline.last()) else { return };
        let failed = fence.status.as_ref().is_some_and(|status| status.status == palisade_api::fence::Status::Error);
        let tone = if failed { Tone::Warning } else { Tone::Normal };
        self.tell(events::about(fence), tone, &line.reason, &line.message);
    }

    fn resolved_policy(&self) -> Policy {
        let object = self.view.policy.as_ref();
        let spec = object.map_or_else(FencePolicySpec::default, |policy| policy.spec.clone());
        let uid = Uid::new(object.and_then(ResourceExt::uid).unwrap_or_default());
        resolve::policy(uid, &spec).unwrap_or_else(|why| {
            tracing::error!(%why, "the FencePolicy makes no sense; nothing is admitted");
            Policy { mode: palisade_core::policy::Mode::Paused, ..Policy::default() }
        })
    }

    /// Asks everything that may have changed what to do. Returns when to look again.
    fn turn(&mut self) -> Tick {
        let _told = decided::by(&self.context.identity);
        let now = self.now();
        let mut wake = now + AT_LEAST;
        if !self.view.complete() {
            return wake;
        }
        let policy = self.policy.clone();
        let sight = self.watch.sight(policy.observer_fresh, now);
        let mut pass = self.detect.look(&mut self.view, sight, now);
        for (node, kind, urgent) in std::mem::take(&mut pass.ask) {
            if self.leads && kind == WitnessKind::BmcPower {
                self.refresh_workload(node.clone(), now);
            }
            self.ask(node, kind, urgent);
        }
        wake = pass.look_again.map_or(wake, |at| wake.min(at));
        // It is as good as new only if no turn was left out.
        let before = self.picture.take();
        if self.leads && self.hold.stands() {
            if self.view.policy.is_none() {
                self.make_policy();
            }
            self.keep_ledger(&policy, sight, now);
            let observes = matches!(sight, Sight::Clear { since } if now.since(since) >= policy.outage_quiet);
            if self.accept.is_due(&self.view, observes, now) {
                self.say(self.accept.words(&self.view, observes, self.context.clock.wall()));
            }
            self.requests.follow(&self.view);
            let old = now.since(self.aged) >= AGE;
            if old || self.detect.claims_anything() {
                let all = self.requests.all();
                self.file(&all, now);
                if old {
                    self.aged = now;
                    self.age(&all);
                    self.plans.tidy(&self.view);
                }
            }
            // In a quiet cluster nobody asks, and a picture of thousands of nodes need not be taken.
            if !self.fences.is_empty() || self.requests.any_open() || old {
                let picture = self.picture(before, &pass.looked, sight, now);
                let nobody = Snapshot::default();
                let seen = picture.as_ref().unwrap_or(&nobody);
                wake = wake.min(self.turn_requests(seen, &policy, sight, now));
                wake = wake.min(self.turn_fences(seen, &policy, sight, now));
                self.picture = picture;
            }
        }
        // Time moves at least a little, or the loop would spin.
        wake.max(now + Span::millis(1))
    }

    /// The cluster as vetting sees it; none if nobody is vetted.
    fn picture(
        &self,
        before: Option<Snapshot>,
        looked: &BTreeSet<NodeName>,
        sight: Sight,
        now: Tick,
    ) -> Option<Snapshot> {
        if self.fences.is_empty() && self.requests.waiting().next().is_none() {
            return None;
        }
        let scene = Scene { view: &self.view, watch: &self.watch, workloads: &self.workloads, sight, now };
        let picture = before.map_or_else(|| snapshot(scene), |known| refreshed(known, looked, scene));
        Some(picture)
    }

    fn file(&mut self, all: &[Request], now: Tick) {
        for claim in self.detect.claims(&self.view, all, now) {
            let facts = self.view.node(&claim.node).and_then(|track| track.facts.as_ref());
            let Some(uid) = facts.map(|facts| facts.uid.clone()) else { continue };
            if let Some(track) = self.view.track(&claim.node) {
                track.memory.fails(now);
            }
            // Noted at once, so that the next turn does not file it again; the real one takes its place.
            self.detect.filed(&claim.node, &claim.rule.name, Uid::default(), now);
            let (context, hold, news) = (self.context.clone(), self.hold.clone(), self.news.clone());
            self.beside.start(async move {
                let outcome = requests::file(context, hold, claim, uid).await;
                let _ = news.send(News::Requests(outcome));
            });
        }
    }

    /// Deletes requests that are no longer kept.
    fn age(&mut self, all: &[Request]) {
        let fences: BTreeSet<Uid> =
            self.view.fences.values().map(|fence| Uid::new(fence.uid().unwrap_or_default())).collect();
        for aged in aged_out(all, Some(&fences), &Retention::default()) {
            let RequestEffect::Delete { uid, .. } = &aged.effect else { continue };
            let Some(object) = self.view.requests.get(uid) else { continue };
            tracing::info!(request = %object.name_any(), why = %aged.why, "history");
            let decided =
                requests::Decided { object: Box::new(object.clone()), effects: vec![aged.effect], fence: None };
            let (context, hold, news) = (self.context.clone(), self.hold.clone(), self.news.clone());
            self.beside.start(async move {
                let outcome = requests::perform(context, hold, decided).await;
                let _ = news.send(News::Requests(outcome));
            });
        }
    }

    fn turn_requests(&mut self, snapshot: &Snapshot, policy: &Policy, sight: Sight, now: Tick) -> Tick {
        let mut waiting: Vec<NodeName> = self.requests.waiting().map(|request| request.node.clone()).collect();
        let new = |live: &&Live| matches!(live.fence().phase, Phase::New);
        waiting.extend(self.fences.values().filter(new).map(|live| live.fence().node.clone()));
        for node in waiting {
            self.refresh_workload(node, now);
        }
        let (decided, look_again) = self.requests.step(&self.view, snapshot, policy, &self.detect, sight, now);
        for one in decided {
            let (context, hold, news) = (self.context.clone(), self.hold.clone(), self.news.clone());
            self.beside.start(async move {
                let outcome = requests::perform(context, hold, one).await;
                let _ = news.send(News::Requests(outcome));
            });
        }
        look_again.unwrap_or(now + AT_LEAST)
    }

    fn turn_fences(&mut self, snapshot: &Snapshot, policy: &Policy, sight: Sight, now: Tick) -> Tick {
        let mut wake = now + AT_LEAST;
        let nodes: Vec<NodeName> = self.fences.keys().cloned().collect();
        for node in nodes {
            let plan = self.usable(&node);
            // Nobody else asks for a verdict, which is a look at every node.
            let begins = self.fences.get(&node).is_some_and(|live| matches!(live.fence().phase, Phase::New));
            let (vetted, closed) =
                if begins { self.vetted(&node, snapshot, policy, now) } else { (Vetted::Closed, None) };
            let cleared = self.evidence_cleared(&node);
            let Some(live) = self.fences.get_mut(&node) else { continue };
            if live.due(now) {
                let around = Around {
                    track: self.view.node(&node),
                    plan: plan.as_deref(),
                    unusable: self.unusable.get(&node).map(String::as_str),
                    release: &policy.release,
                    vetted,
                    closed: closed.as_deref(),
                    evidence_cleared: cleared,
                    sight,
                    now,
                };
                let decision = live.decide(&around);
                if let Some((reason, said)) = live.long_waited(now) {
                    let about = events::about(&*live.object);
                    self.tell(about, Tone::Normal, reason, &said);
                }
                self.act(&node, decision.effects, plan, snapshot, policy);
            }
            if let Some(at) = self.fences.get(&node).and_then(Live::wake) {
                wake = wake.min(at);
            }
        }
        wake
    }

    /// Carries out what a fence decided: quick things in order, devices beside.
    fn act(
        &mut self,
        node: &NodeName,
        effects: Vec<Effect>,
        plan: Option<Arc<Plan>>,
        snapshot: &Snapshot,
        policy: &Policy,
    ) {
        let Some(live) = self.fences.get_mut(node) else { return };
        let facts = self.view.node(node).and_then(|track| track.facts.as_ref());
        let (uid, look) = (live.fence().uid.clone(), live.look());
        let executor = Executor {
            context: self.context.clone(),
            hold: self.hold.clone(),
            node: node.clone(),
            fence: uid.clone(),
            system_uuid: facts.and_then(|facts| facts.system_uuid.clone()),
            calls: plan.map(|plan| Arc::clone(&plan.calls)).unwrap_or_default(),
        };
        let mut quick = Vec::new();
        for effect in effects {
            let (executor, news, node) = (executor.clone(), self.news.clone(), node.clone());
            match effect {
                Effect::CallDevice(call) => {
                    self.beside.start(async move {
                        let (answer, told) = executor.call(&call).await;
                        let _ = news.send(News::Called { node, answer, told });
                    });
                }
                Effect::ReadBack(request) => {
                    self.beside.start(async move {
                        let answer = executor.read(&request).await;
                        let _ = news.send(News::Read { node, look, answer });
                    });
                }
                other => quick.push(other),
            }
        }
        if quick.is_empty() {
            return;
        }
        live.busy = true;
        let hand = Hand {
            context: self.context.clone(),
            hold: self.hold.clone(),
            node: node.clone(),
            fence: live.object.clone(),
            uid: uid.clone(),
            listing: live.listing.clone(),
            facts: facts.cloned().map(Box::new),
            budget: policy.budget,
            entry: entry_for(node, 0, snapshot, policy),
        };
        let (news, node) = (self.news.clone(), node.clone());
        self.beside.start(async move {
            let outcomes = hand.perform(quick).await;
            let _ = news.send(News::Done { node, look, outcomes });
        });
    }

    /// How a node with a live fence is fenced; if its config makes no sense, people are told once why.
    fn usable(&mut self, node: &NodeName) -> Option<Arc<Plan>> {
        match self.plans.of(node, &self.view) {
            Ok(plan) => {
                self.unusable.remove(node);
                Some(plan)
            }
            Err(why) => {
                if self.unusable.get(node) != Some(&why) {
                    tracing::error!(%node, why, "no usable FenceConfig; the fence is held");
                    if let Some(about) = self.view.fences.get(node).map(events::about) {
                        self.tell(about, Tone::Warning, "ConfigUnusable", &why);
                    }
                    self.unusable.insert(node.clone(), why);
                }
                None
            }
        }
    }

    /// What vetting says of a fence that has not begun; and which gate is closed, and why.
    fn vetted(&self, node: &NodeName, snapshot: &Snapshot, policy: &Policy, now: Tick) -> (Vetted, Option<String>) {
        let Some(fence) = self.view.fences.get(node) else { return (Vetted::Closed, None) };
        let uid = Uid::new(fence.uid().unwrap_or_default());
        let named =
            fence.spec.requests.iter().filter_map(|named| self.view.requests.get(&Uid::from(named.uid.as_str())));
        let mut closed = (Vetted::Closed, None);
        for object in named {
            let Some(request) = self.requests.get(&Uid::new(object.uid().unwrap_or_default())) else { continue };
            match vet(&requests::claim(object, request, Some(uid.clone()), &self.detect), snapshot, policy, now) {
                Verdict::Admit => return (Vetted::Open, None),
                Verdict::Hold { gate, why, .. } => closed.1 = Some(format!("{gate}: {why}")),
                Verdict::Reject { .. } => closed.0 = Vetted::Refused,
            }
        }
        closed
    }

    /// The evidence of every request of a fence has cleared.
    fn evidence_cleared(&self, node: &NodeName) -> bool {
        let Some(fence) = self.view.fences.get(node) else { return false };
        fence.spec.requests.iter().all(|named| {
            let object = self.view.requests.get(&Uid::from(named.uid.as_str()));
            object.is_none_or(|object| {
                requests::evidence(object, node, &self.view, &self.detect).standing() == Standing::Cleared
            })
        })
    }

    /// Asks a witness, beside; one that has not answered yet is not asked again.
    fn ask(&mut self, node: NodeName, kind: WitnessKind, urgent: bool) {
        if self.asking.awaits(&node, kind) {
            return;
        }
        let word = match kind {
            WitnessKind::KubeletPort => self.context.probe.kubelet(&node),
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
    fn power_word(&mut self, node: &NodeName) -> Option<BoxFuture<'static, WitnessWord>> {
        let plan = self.plans.of(node, &self.view).ok()?;
        let method = power_method(&plan.settings)?;
        let executor = Executor {
            context: self.context.clone(),
            hold: self.hold.clone(),
            node: node.clone(),
            fence: Uid::default(),
            system_uuid: None,
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
    fn refresh_workload(&mut self, node: NodeName, now: Tick) {
        if !self.workloads.begin(&node, now) {
            return;
        }
        let (client, news) = (self.context.client.clone(), self.news.clone());
        self.beside.start(async move {
            let seen = workload::list(client, &node).await;
            let _ = news.send(News::Workload { node, seen });
        });
    }

    /// Which nodes are members of the control plane, and which are not.
    fn members(&self, policy: &Policy, sight: Sight, now: Tick) -> BTreeMap<NodeName, bool> {
        let scene = Scene { view: &self.view, watch: &self.watch, workloads: &self.workloads, sight, now };
        let picture = snapshot(scene);
        let member = |node: &NodeName| (node.clone(), entry_for(node, 0, &picture, policy).control_plane);
        self.view.nodes().keys().map(member).collect()
    }

    /// The ledger is built at once where there is none, and put in order now and then.
    fn keep_ledger(&mut self, policy: &Policy, sight: Sight, now: Tick) {
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

    /// Has configs, templates and remedies say what is to be said of them.
    fn say(&mut self, words: Vec<accept::Word>) {
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
    fn make_policy(&mut self) {
        if std::mem::replace(&mut self.policy_asked, true) {
            return;
        }
        let (client, news) = (self.context.client.clone(), self.news.clone());
        self.beside.start(async move {
            let policies: Api<FencePolicy> = Api::all(client);
            let policy = FencePolicy::new(names::POLICY_NAME, FencePolicySpec::default());
            if let Err(why) = policies.create(&PostParams::default(), &policy).await {
                tracing::warn!(%why, "the default FencePolicy was not made");
            }
            let _ = news.send(News::Answered);
        });
    }
}

/// The method that switches the machine off, if there is one.
fn power_method(settings: &Settings) -> Option<Method> {
    let plans = [&settings.isolation, &settings.power_off];
    let mut methods = plans.into_iter().flat_map(|plan| &plan.levels).flat_map(|level| &level.methods);
    methods.find(|method| method.proves == Some(palisade_core::prove::Class::Power)).cloned()
}
