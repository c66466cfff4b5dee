//! Run: the loop. News come in, the view changes, and whatever may have changed is asked what to do.

mod chores;
mod fences;
mod preflight;
mod requests;
mod witnesses;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::pin_mut;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use palisade_api::policy::FencePolicySpec;
use palisade_api::request::{ActionOutcome, Outcome as Did};
use palisade_core::detect::sight::{Sight, Watch};
use palisade_core::fence::Phase;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::observe::{CallAnswer, CallOutcome};
use palisade_core::policy::Policy;
use palisade_core::resolve;
use palisade_core::snapshot::{Snapshot, WitnessKind};
use palisade_core::time::{Span, Tick};
use palisade_core::vet::observer::blind;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use tracing::Instrument;

use crate::accept::Accept;
use crate::asking::Asking;
use crate::beside::Beside;
use crate::context::Context;
use crate::deadline;
use crate::decided;
use crate::detect::Detect;
use crate::events::{self, Tone};
use crate::fences::{Fences, Live, Look, asked_by};
use crate::forbidden::Forbidden;
use crate::insecure::Insecure;
use crate::leader::{self, Hold, Term};
use crate::news::News;
use crate::plans::Plans;
use crate::preflight::Preflight;
use crate::requests::Requests;
use crate::snapshot::{Scene, observer, refreshed, snapshot};
use crate::view::{Seen, View};
use crate::watch;
use crate::workload::Workloads;

/// However quiet it is, everything is looked at this often.
const AT_LEAST: Span = Span::secs(10);
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
    let by = decided::by(&context.identity);
    work(context, stop).instrument(by).await;
}

async fn work(context: Context, stop: impl Future<Output = ()>) {
    let (sender, news) = unbounded_channel();
    let forbidden = Forbidden::told_to(sender.clone());
    let context = Context { client: deadline::impatient(context.client.clone(), forbidden), ..context };
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
    policy: Arc<Policy>,
    leads: bool,
    detect: Detect,
    requests: Requests,
    fences: Fences,
    looks: Look,
    workloads: Workloads,
    plans: Plans,
    accept: Accept,
    insecure: Insecure,
    preflight: Preflight,
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
            policy: Arc::default(),
            leads: false,
            detect: Detect::default(),
            requests: Requests::default(),
            fences: Fences::new(),
            looks: Look::default(),
            workloads: Workloads::default(),
            plans: Plans::default(),
            accept: Accept::default(),
            insecure: Insecure::default(),
            preflight: Preflight::default(),
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
        let now = self.now();
        if news.api_answered() {
            self.watch.answered(self.policy.observer_fresh, now);
        }
        match news {
            News::Seen(seen) => {
                let (policy, fences) = (matches!(seen, Seen::Policy(_)), matches!(seen, Seen::Fence(_)));
                if matches!(seen, Seen::Config(_) | Seen::Template(_)) {
                    self.plans.forget();
                    self.insecure.look_again();
                }
                self.view.take(seen, now);
                self.context.metrics.listed(self.view.complete());
                if policy {
                    self.policy = Arc::new(self.resolved_policy());
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
            News::Called { node, answer, told, job_over } => {
                tracing::info!(%node, told, "device");
                if let Some(live) = self.fences.get_mut(&node).filter(|live| live.fence().uid == answer.fence) {
                    let action = action(&answer, &told, self.context.clock.wall());
                    live.called(answer, action, job_over);
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
            News::Checked { key, answer } => self.checked(&key, answer, now),
            News::Requests(outcome) => self.request_done(outcome, now),
            News::Workload { node, seen } => self.workloads.answered(node, seen, now),
            News::Kept => self.keeping = false,
            News::Accepted { all } => self.accept.written(all, now),
            News::NoPolicyMade => self.policy_asked = false,
            News::Allowed { what, now } => self.tell_allowed(&what, now),
            News::Answered => {}
        }
    }

    fn term(&mut self, term: Term) {
        self.leads = term == Term::Leads;
        tracing::info!(identity = self.context.identity, leads = self.leads, "leadership");
        self.context.metrics.leads(self.leads);
        // What this process remembers of fences counts from when it began to lead: an old leader's calls may be under way.
        self.fences.clear();
        // Whoever leads next asks anew, and shows what it finds.
        self.preflight = Preflight::default();
        self.context.metrics.forget_devices();
        if self.leads {
            self.insecure.look_again();
            self.follow_fences(self.now());
        }
    }

    /// The policy is what people look at to see how the operator is.
    fn tell_allowed(&mut self, what: &str, now: bool) {
        let Some(about) = self.view.policy.as_ref().map(events::about) else { return };
        let (tone, reason) = if now { (Tone::Normal, "Allowed") } else { (Tone::Warning, "Forbidden") };
        self.tell(about, tone, reason, what);
    }

    /// Tells people about an object.
    fn tell(&mut self, about: ObjectReference, tone: Tone, reason: &str, message: &str) {
        self.beside.start(events::tell(&self.context, &self.news, about, tone, reason, message));
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
        let now = self.now();
        let mut wake = now + AT_LEAST;
        if !self.view.complete() {
            return wake;
        }
        let policy = Arc::clone(&self.policy);
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
            wake = wake.min(self.check_devices(&pass.looked, sight, now));
            let observes = blind(&observer(&self.watch), &policy, now).is_none();
            let devices = self.preflight.words();
            if self.accept.is_due(&self.view, observes, devices.version, now) {
                let words = self.accept.words(&self.view, observes, devices, self.context.clock.wall());
                self.say(words);
            }
            for (about, why) in self.insecure.words(&self.view) {
                self.tell(about, Tone::Warning, "CertificateNotVerified", &why);
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
                    self.preflight.tidy(&self.view);
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
}

/// What a method did, for the record and for whoever asked.
fn action(answer: &CallAnswer, told: &str, time: jiff::Timestamp) -> Option<ActionOutcome> {
    let outcome = match answer.outcome {
        CallOutcome::Accepted => Did::Succeeded,
        CallOutcome::Refused => Did::Failed,
        CallOutcome::Unknown => Did::Unknown,
        CallOutcome::Pending => return None,
    };
    let (method, said) = told.split_once(": ").unwrap_or((told, ""));
    let output = said.chars().take(1024).collect();
    let attempt = answer.call.attempt;
    Some(ActionOutcome { method: method.to_owned(), level: None, attempt, outcome, output, time: Some(time) })
}
