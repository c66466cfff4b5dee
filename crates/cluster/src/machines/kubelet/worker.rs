//! One pod in the hands of its kubelet, from the first sight to the last word.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use super::{files, report};
use crate::{
    api::{DeleteOptions, Key, Object, Store, metadata},
    machines::{
        process::{Exit, Signal, Start, Stint},
        program::{End, Ended, Program, Which},
    },
    nature::Ctx,
    objects::{annotation, is_finished, is_ready, items, number, text},
    truth::Name,
    volumes::{self, PodVolume},
};

/// How often upstream's volume manager looks.
const LOOP: Duration = Duration::from_millis(100);
/// The first wait of a volume's check that failed; doubled each time, up to [`BACKOFF_LIMIT`] (upstream's
/// `exponentialbackoff`).
const BACKOFF: Duration = Duration::from_millis(500);
const BACKOFF_LIMIT: Duration = Duration::from_secs(122);
/// The first wait before a container that ended is started again.
const CRASH_BACKOFF: Duration = Duration::from_secs(10);
/// The first wait before an image is asked for again; doubled each time, up to [`PULL_LIMIT`].
const PULL_BACKOFF: Duration = Duration::from_secs(10);
const PULL_LIMIT: Duration = Duration::from_mins(5);

/// How long a pod's program runs by itself, in seconds. Without it, for ever.
pub const RUNS_FOR: &str = "cluster.palisade.dev/runs-for";
/// What it then ends with.
pub const EXIT_CODE: &str = "cluster.palisade.dev/exit-code";
/// What it says about its end.
pub const LAST_WORDS: &str = "cluster.palisade.dev/last-words";

/// Where a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its volumes are not there yet.
    Waiting {
        retry: Duration,
        backoff: Duration,
    },
    /// Nobody has its image.
    NoImage {
        retry: Duration,
        backoff: Duration,
    },
    /// Mounts are made, containers are started.
    Starting {
        at: Duration,
    },
    Running,
    /// It was told to end, and will be made to.
    Stopping {
        kill_at: Duration,
        killed: bool,
    },
    /// Its process is gone; its volumes are on their way.
    Ended {
        exit: Exit,
        unmounted_at: Duration,
    },
    /// It ended for good and the API knows it.
    Told,
}

/// A pod.
#[derive(Debug)]
pub(super) struct Worker {
    key: Key,
    pod: Object,
    uid: Name,
    stage: Stage,
    volumes: Vec<PodVolume>,
    in_use: Vec<String>,
    /// What its container finds, by path.
    files: BTreeMap<String, String>,
    /// Since when a kubelet has had it: its deadline counts from there.
    since: Duration,
    /// When it was ended because it had been active for as long as it may be.
    overdue: Option<Duration>,
    restarts: u64,
    /// The API does not yet know that it runs.
    untold: bool,
    /// SIGTERM was sent.
    termed: bool,
    /// The object is gone from the API.
    gone: bool,
}

/// What a worker can see.
pub(super) struct Around<'a> {
    pub(super) node: &'a Name,
    pub(super) connected: bool,
    pub(super) exits: BTreeMap<Name, Exit>,
    pub(super) running: &'a BTreeSet<Name>,
    /// Volumes that the API knows to be in use here.
    pub(super) reported: BTreeSet<String>,
    /// Volumes that the API knows to be attached here.
    pub(super) attached: BTreeSet<String>,
}

impl Worker {
    /// A pod that this kubelet sees for the first time; nothing if there is nothing to do for it.
    pub(super) fn begin(key: Key, pod: Object, runs: bool, ctx: &mut Ctx<'_>) -> Option<Self> {
        let marked = metadata::is_deleting(&pod);
        if is_finished(&pod) && !runs && !marked {
            return None;
        }
        let soon = ctx.now + ctx.dice.millis(300, 1_000);
        let began_before = text(&pod, "/status/phase") == "Running";
        // It may have ended while no kubelet looked, even before anybody was told that it runs: the runtime knows.
        let ended = ended(&pod, ctx);
        let (ran_before, last) = (began_before || ended.is_some(), ended.map_or(Exit::Power, |ended| ended.exit));
        let stage = match (runs, marked) {
            (true, _) => Stage::Running,
            // Never started, whatever it was before: only its deletion is finished.
            (false, true) => Stage::Ended { exit: last, unmounted_at: soon },
            (false, false) if ran_before && text(&pod, "/spec/restartPolicy") != "Always" => {
                Stage::Ended { exit: last, unmounted_at: soon }
            }
            (false, false) => Stage::Waiting { retry: ctx.now, backoff: BACKOFF },
        };
        let volumes = if runs { ctx.api.read(|store| volumes::of_pod(store, &pod)) } else { None };
        let volumes = volumes.unwrap_or_default();
        let mut worker = Self {
            uid: metadata::uid(&pod).into(),
            key,
            restarts: number(&pod, "/status/containerStatuses/0/restartCount").unwrap_or_default()
                + u64::from(began_before && !runs),
            in_use: attachable(&volumes),
            volumes,
            files: BTreeMap::new(),
            since: begun(&pod, ctx),
            overdue: None,
            stage,
            untold: true,
            termed: false,
            gone: false,
            pod,
        };
        if runs && marked {
            worker.stop(ctx.now);
        }
        Some(worker)
    }

    /// The pod as the API has it now.
    pub(super) fn learn(&mut self, pod: Object, now: Duration) {
        self.pod = pod;
        if metadata::is_deleting(&self.pod) {
            self.stop(now);
        }
        // Somebody else said that it is not ready: upstream's status manager corrects that.
        self.untold |= self.stage == Stage::Running && !is_ready(&self.pod);
    }

    /// The pod's object is gone: it has no say any more.
    pub(super) fn object_is_gone(&mut self, now: Duration) {
        self.gone = true;
        self.stop(now);
    }

    /// Volumes that it uses, or is about to.
    pub(super) fn in_use(&self) -> &[String] {
        &self.in_use
    }

    /// When it wants to go on by itself.
    pub(super) fn due(&self, connected: bool) -> Option<Duration> {
        let own = match self.stage {
            Stage::Waiting { retry, .. } => Some(retry).filter(|retry| connected && *retry != Duration::MAX),
            Stage::NoImage { retry, .. } => Some(retry),
            Stage::Starting { at } => Some(at),
            Stage::Stopping { kill_at, killed } => (!killed).then_some(kill_at),
            Stage::Ended { unmounted_at, .. } => (connected || !self.in_use.is_empty()).then_some(unmounted_at),
            Stage::Running | Stage::Told => None,
        };
        own.into_iter().chain(self.deadline()).min()
    }

    /// When it has been active for as long as it may be; nothing if it need not care, or no longer.
    fn deadline(&self) -> Option<Duration> {
        let active = match self.stage {
            Stage::Waiting { .. } | Stage::NoImage { .. } | Stage::Starting { .. } | Stage::Running => true,
            Stage::Stopping { .. } | Stage::Ended { .. } | Stage::Told => false,
        };
        let limit = number(&self.pod, "/spec/activeDeadlineSeconds").filter(|_| active)?;
        Some(self.since + Duration::from_secs(limit))
    }

    /// The API knows now which volumes are in use here.
    pub(super) fn volumes_are_reported(&mut self, now: Duration) {
        if let Stage::Waiting { retry: retry @ Duration::MAX, .. } = &mut self.stage {
            *retry = now + LOOP;
        }
    }

    /// Whether it could go on by itself now.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.due(true).is_some_and(|due| due <= now) || (self.stage == Stage::Running && self.untold)
    }

    /// Whether it waits for its volumes.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }

    fn stop(&mut self, now: Duration) {
        let grace = metadata::grace(&self.pod).and_then(|grace| u64::try_from(grace).ok());
        let own = number(&self.pod, "/spec/terminationGracePeriodSeconds").unwrap_or(30);
        // Whoever forced the object away gets the shortest grace that upstream gives.
        let grace = if self.gone { 1 } else { grace.unwrap_or(own).max(1) };
        let deadline = now + Duration::from_secs(grace);
        self.stage = match self.stage {
            Stage::Waiting { .. } | Stage::NoImage { .. } | Stage::Starting { .. } => {
                Stage::Ended { exit: Exit::Terminated, unmounted_at: now }
            }
            Stage::Running => Stage::Stopping { kill_at: deadline, killed: false },
            Stage::Stopping { kill_at, killed } => Stage::Stopping { kill_at: kill_at.min(deadline), killed },
            Stage::Told => Stage::Ended { exit: Exit::Terminated, unmounted_at: now },
            ended @ Stage::Ended { .. } => ended,
        };
    }

    /// Goes on as far as it can; says whether there is anything left to do.
    pub(super) fn step(&mut self, around: &mut Around<'_>, ctx: &mut Ctx<'_>) -> bool {
        if self.deadline().is_some_and(|deadline| deadline <= ctx.now) {
            self.overdue = Some(ctx.now);
            self.stop(ctx.now);
        }
        match self.stage {
            Stage::Waiting { retry, backoff } if around.connected && retry <= ctx.now => {
                self.check_volumes(backoff, around, ctx);
            }
            Stage::NoImage { retry, backoff } if retry <= ctx.now => self.start(backoff, around, ctx),
            Stage::Starting { at } if at <= ctx.now => self.start(Duration::ZERO, around, ctx),
            Stage::Running | Stage::Stopping { .. } => self.watch_process(around, ctx),
            _ => {}
        }
        if self.stage == Stage::Running && self.untold && around.connected {
            self.untold = !report::pod_runs(&self.key, &self.uid, self.restarts, around.node, ctx);
        }
        if let Stage::Ended { exit, unmounted_at } = self.stage
            && unmounted_at <= ctx.now
        {
            self.in_use.clear();
            return self.finish(exit, around.connected, ctx);
        }
        true
    }

    fn check_volumes(&mut self, backoff: Duration, around: &Around<'_>, ctx: &mut Ctx<'_>) {
        let found = |store: &Store| Some((volumes::of_pod(store, &self.pod)?, files::of_pod(store, &self.pod)?));
        if let Some((volumes, files)) = ctx.api.read(found) {
            self.in_use = attachable(&volumes);
            (self.volumes, self.files) = (volumes, files);
            if !self.in_use.iter().all(|name| around.reported.contains(name)) {
                // Not a failure: the next report wakes it.
                self.stage = Stage::Waiting { retry: Duration::MAX, backoff };
                return;
            }
            if self.in_use.iter().all(|name| around.attached.contains(name)) {
                self.stage = Stage::Starting { at: ctx.now + ctx.dice.millis(300, 1_200) };
                return;
            }
        }
        self.stage = Stage::Waiting { retry: ctx.now + backoff, backoff: (backoff * 2).min(BACKOFF_LIMIT) };
    }

    /// Starts its container, if somebody has its image; if not, asks again after twice the wait.
    fn start(&mut self, waited: Duration, around: &mut Around<'_>, ctx: &mut Ctx<'_>) {
        let mut images = items(&self.pod, "/spec/containers").map(|container| text(container, "/image"));
        if let Some(missing) = images.find(|image| !ctx.runner.has_image(image)) {
            if around.connected {
                report::no_image(&self.key, &self.uid, missing, waited.is_zero(), ctx);
            }
            let backoff = (waited * 2).clamp(PULL_BACKOFF, PULL_LIMIT);
            self.stage = Stage::NoImage { retry: ctx.now + backoff, backoff };
            return;
        }
        let program = ctx.runner.find(&self.pod, around.node, std::mem::take(&mut self.files));
        self.begin_process(program, around, ctx);
        self.stage = Stage::Running;
        self.untold = true;
    }

    fn begin_process(&self, program: Option<Program>, around: &mut Around<'_>, ctx: &mut Ctx<'_>) {
        let start = Start {
            pod: Name::clone(&self.uid),
            of: format!("{}/{}", self.key.namespace, self.key.name).into(),
            volumes: self.volumes.iter().map(|volume| (Name::clone(&volume.handle), volume.read_only)).collect(),
            stint: if program.is_some() { Stint::default() } else { stint(&self.pod) },
            told: program.as_ref().map(|program| program.told.clone()),
        };
        around.exits.remove(&self.uid);
        let run = ctx.truth.act(|world| world.start_process(around.node, start));
        if let (Some(run), Some(program)) = (run, program) {
            let which = Which { node: Name::clone(around.node), pod: Name::clone(&self.uid), run };
            ctx.runner.run(which, program);
        }
    }

    fn watch_process(&mut self, around: &mut Around<'_>, ctx: &mut Ctx<'_>) {
        let exit = around.exits.remove(&self.uid);
        let unmounted_at = ctx.now + ctx.dice.millis(200, 800);
        match (self.stage, exit) {
            (Stage::Stopping { .. }, Some(exit)) => self.stage = Stage::Ended { exit, unmounted_at },
            (Stage::Stopping { kill_at, killed: false }, None) => {
                let signal = if kill_at <= ctx.now { Signal::Kill } else { Signal::Term };
                if signal == Signal::Kill || self.untold_term() {
                    ctx.truth.act(|world| world.signal(around.node, &self.uid, signal));
                    self.stage = Stage::Stopping { kill_at, killed: signal == Signal::Kill };
                }
            }
            (Stage::Running, Some(exit)) => {
                let policy = text(&self.pod, "/spec/restartPolicy");
                if policy == "Always" || (policy == "OnFailure" && exit != Exit::Code(0)) {
                    self.restarts += 1;
                    self.stage = Stage::Starting { at: ctx.now + CRASH_BACKOFF };
                } else {
                    self.stage = Stage::Ended { exit, unmounted_at };
                }
            }
            // The process went while nobody looked, with the power or with a life before.
            (Stage::Running | Stage::Stopping { .. }, None)
                if !around.running.contains(&self.uid) && !self.just_started(ctx, around.node) =>
            {
                let exit = ended(&self.pod, ctx).map_or(Exit::Killed, |ended| ended.exit);
                self.stage = Stage::Ended { exit, unmounted_at };
            }
            _ => {}
        }
    }

    /// Whether SIGTERM is still to be sent; it is sent once.
    fn untold_term(&mut self) -> bool {
        !std::mem::replace(&mut self.termed, true)
    }

    fn just_started(&self, ctx: &Ctx<'_>, node: &Name) -> bool {
        ctx.truth
            .look(|world| world.machines.get(node).is_some_and(|machine| machine.processes.contains_key(&self.uid)))
    }

    /// The last words about a pod; says whether it stays.
    fn finish(&mut self, exit: Exit, connected: bool, ctx: &mut Ctx<'_>) -> bool {
        if self.gone {
            return false;
        }
        if !connected {
            return true;
        }
        let words = ended(&self.pod, ctx).map(|ended| ended.message().to_owned()).unwrap_or_default();
        report::pod_ended(&self.key, &self.uid, exit, &words, self.overdue.is_some(), ctx);
        if metadata::is_deleting(&self.pod) {
            let options = DeleteOptions { grace: Some(0), uid: Some(self.uid.to_string()), ..DeleteOptions::default() };
            // Gone already, or another pod by now: either way this one is over.
            drop(ctx.api.delete(&self.key, &options));
            return false;
        }
        self.stage = Stage::Told;
        true
    }
}

/// What the runtime of its node knows of a pod that has ended there.
fn ended(pod: &Object, ctx: &Ctx<'_>) -> Option<Ended> {
    ctx.truth.look(|world| world.ended(text(pod, "/spec/nodeName"), metadata::uid(pod)).cloned())
}

/// Since when a kubelet has had a pod.
fn begun(pod: &Object, ctx: &Ctx<'_>) -> Duration {
    let begun: Option<Timestamp> = text(pod, "/status/startTime").parse().ok();
    let ago = begun.and_then(|begun| Duration::try_from(ctx.api.now().duration_since(begun)).ok());
    ctx.now.saturating_sub(ago.unwrap_or_default())
}

fn attachable(volumes: &[PodVolume]) -> Vec<String> {
    volumes.iter().filter(|volume| volume.attachable).map(|volume| volume.unique.clone()).collect()
}

fn stint(pod: &Object) -> Stint {
    let runs_for = annotation(pod, RUNS_FOR).parse().ok().map(Duration::from_secs);
    let code = annotation(pod, EXIT_CODE).parse().unwrap_or_default();
    Stint { runs_for, end: End { code, words: annotation(pod, LAST_WORDS).to_owned() } }
}
