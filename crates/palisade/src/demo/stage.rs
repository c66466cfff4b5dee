//! Demo / stage: one run. Set up, strike, watch, close.

mod closing;
mod facts;
mod setting;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;
use palisade_cluster::truth::{Event, What};
use palisade_scenarios::embedded::Embedded;

use super::Options;
use super::keep::Kept;
use super::pacer::Pacer;
use super::scenario::{Cue, Ending, Scenario};
use super::split::{Mark, Split, Writers};
use super::story::{Beat, Cast, Room, Written, of_event, of_writes};
use super::tell::{Teller, seconds};
use super::verdict::{Outcome, judge, judge_alone};

const OPERATOR: &str = "palisade-0";
const POD: &str = "db-0";

/// What a person sees before anything happens.
const CALM: Duration = Duration::from_secs(2);
/// Whoever has not moved a pod by then never will.
const MOVE_LIMIT: Duration = Duration::from_mins(3);
/// Reset, boot, thirty seconds of good behaviour, and some more.
const RETURN_LIMIT: Duration = Duration::from_mins(10);
/// A BMC is given a minute for each of three tries before a step is called failed.
const HOLD_LIMIT: Duration = Duration::from_secs(400);
/// How long a hold is watched, lest it be only a delay.
const HOLD_WATCH: Duration = Duration::from_secs(45);
/// Grace of 50 s, eviction after 300 s, and some more.
const ALONE_WATCH: Duration = Duration::from_mins(7);

/// One run.
pub(super) struct Stage {
    scenario: Scenario,
    alone: bool,
    speed: u32,
    world: Embedded,
    epoch: Timestamp,
    cast: Cast,
    failed: Duration,
    split: Split,
    writers: Writers,
    held: Option<Beat>,
    released: bool,
    cue: Option<Cue>,
    revision: u64,
    events: usize,
    pacer: Pacer,
    forward: bool,
    teller: Teller<io::Stdout>,
    asked_to_end: Arc<AtomicBool>,
}

/// Somebody pressed Ctrl-C.
struct Interrupted;

type Watched = anyhow::Result<Result<bool, Interrupted>>;

impl Stage {
    /// Plays a scenario to its end.
    pub(super) async fn play(options: &Options) -> anyhow::Result<ExitCode> {
        let mut stage = Self::set(options).await?;
        let kept = if options.keep {
            Some(Kept::serve(&stage.world.cluster, stage.world.metrics(OPERATOR)).await?)
        } else {
            None
        };
        if let Some(kept) = &kept {
            stage.teller.line(&format!("Look at it from another terminal, now or later:\n  {}", kept.command()))?;
        }
        let Ok(good) = stage.perform().await? else { return stage.interrupted().await };
        if let Some(kept) = &kept {
            stage.teller.line(&format!("\nThe cluster runs on in real time, until Ctrl-C:\n  {}", kept.command()))?;
            stage.pacer.set_rate(1);
            while !stage.is_asked_to_end() {
                stage.pacer.slice(Duration::MAX).await;
            }
            stage.teller.line("")?;
        }
        stage.world.stop(OPERATOR).await;
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Strikes and watches until it is over; says whether it went as promised.
    async fn perform(&mut self) -> Watched {
        let struck = self.elapsed() + CALM;
        if let Err(Interrupted) = self.watch(CALM, "all is well", |_| false).await? {
            return Ok(Err(Interrupted));
        }
        self.failed = struck;
        self.split = Split::since(struck);
        self.writers.restart(struck);
        self.cue = self.scenario.cue();
        let words = self.scenario.strike(&self.world.cluster, &self.cast.home);
        self.tell(&Beat { at: struck, room: Room::World, text: words, mark: None })?;

        if self.alone {
            let told = "Kubernetes alone";
            return match self.watch(ALONE_WATCH, told, |_| false).await? {
                Err(Interrupted) => Ok(Err(Interrupted)),
                Ok(_) => Ok(Ok(self.close_alone()?)),
            };
        }
        let over = match self.scenario.ends() {
            Ending::Moves => match self.watch(MOVE_LIMIT, "", |it| it.reached(Mark::Running)).await? {
                Ok(true) => self.watch(RETURN_LIMIT, "", |it| it.reached(Mark::Closed) && it.left().is_empty()).await?,
                not => not,
            },
            Ending::Settles => self.watch(RETURN_LIMIT, "", Self::is_settled).await?,
            Ending::Holds => self.watch(HOLD_LIMIT, "", Self::is_held).await?,
        };
        match over {
            Err(Interrupted) => Ok(Err(Interrupted)),
            Ok(_) => Ok(Ok(self.close()?)),
        }
    }

    /// Lets time pass until something is so; false if it did not come to it.
    async fn watch(&mut self, limit: Duration, told: &str, mut so: impl FnMut(&Self) -> bool) -> Watched {
        let end = self.elapsed() + limit;
        while !so(self) {
            let now = self.elapsed();
            if now >= end {
                return Ok(Ok(false));
            }
            self.set_pace()?;
            self.pacer.slice(self.next_cue().unwrap_or(end).min(end).saturating_sub(now)).await;
            self.follow_cue()?;
            self.catch_up()?;
            if self.is_asked_to_end() {
                return Ok(Err(Interrupted));
            }
            let words = if told.is_empty() { waits_for(self.split.last()) } else { told };
            let since = seconds(self.elapsed().saturating_sub(self.failed));
            self.teller.progress(&format!("{since:>8}  {words} · writes: {}", self.writers.words()))?;
        }
        Ok(Ok(true))
    }

    /// Real time where something happens; faster where a person would only wait.
    fn set_pace(&mut self) -> io::Result<()> {
        let since = self.elapsed().saturating_sub(self.failed);
        let (forward, why) = match self.scenario.ends() {
            _ if self.alone => (if since > Duration::from_secs(15) { 20 } else { 1 }, "while nobody comes"),
            Ending::Holds => (if since > Duration::from_secs(30) { 10 } else { 1 }, "while it holds"),
            Ending::Moves | Ending::Settles => {
                (if self.reached(Mark::Running) { 4 } else { 1 }, "while the node returns")
            }
        };
        self.pacer.set_rate(self.speed.saturating_mul(forward));
        if forward > 1 && !self.forward {
            self.forward = true;
            self.teller.line(&format!("          (from here {forward} times faster, {why})"))?;
        }
        Ok(())
    }

    /// Tells everything that happened since the last time, in its order.
    fn catch_up(&mut self) -> anyhow::Result<()> {
        let mut beats = self.truth_beats();
        beats.extend(self.api_beats()?);
        beats.sort_by_key(|beat| beat.at);
        for beat in &beats {
            self.tell(beat)?;
        }
        self.writers.pass(self.elapsed());
        Ok(())
    }

    fn truth_beats(&mut self) -> Vec<Beat> {
        let fresh: Vec<Event> = self.world.cluster.truth().look(|world| world.events[self.events..].to_vec());
        self.events += fresh.len();
        let mut beats = Vec::new();
        for event in &fresh {
            beats.extend(of_event(event, &self.cast));
            if let Some(words) = writing(&mut self.writers, event, &self.cast) {
                beats.push(Beat { at: event.at, room: Room::Writes, text: words, mark: None });
            }
        }
        beats
    }

    fn api_beats(&mut self) -> anyhow::Result<Vec<Beat>> {
        let Ok(changes) = self.world.cluster.api().changes_since(self.revision) else {
            bail!("the API has forgotten a part of the story");
        };
        self.revision = changes.last().map_or(self.revision, |change| change.revision);
        let writes: Vec<Written<'_>> = changes
            .iter()
            .map(|change| Written {
                at: Duration::try_from(change.at.duration_since(self.epoch)).unwrap_or_default(),
                by: change.by.name(),
                name: &change.key.name,
                old: change.old.as_deref(),
                new: change.new.as_deref(),
            })
            .collect();
        Ok(of_writes(&writes, &self.cast))
    }

    fn tell(&mut self, beat: &Beat) -> io::Result<()> {
        if let Some(mark) = beat.mark {
            self.split.note(mark, beat.at);
        }
        self.released |= beat.room == Room::Released;
        if beat.room == Room::Held && self.held.is_none() {
            self.held = Some(beat.clone());
        }
        self.teller.beat(beat, beat.at.saturating_sub(self.failed))
    }

    fn next_cue(&self) -> Option<Duration> {
        match self.cue? {
            Cue::After(time) => Some(self.failed + time),
            Cue::Moved => None,
        }
    }

    fn follow_cue(&mut self) -> io::Result<()> {
        let now = self.elapsed();
        let due = self.next_cue().is_some_and(|due| now >= due);
        let moved = self.cue == Some(Cue::Moved) && self.reached(Mark::Running);
        if !due && !moved {
            return Ok(());
        }
        self.cue = None;
        let words = self.scenario.follow(&self.world.cluster, &self.cast.home);
        self.tell(&Beat { at: now, room: Room::World, text: words, mark: None })
    }
}

/// Keeps count of who can write to the volume; says so if the nodes that can have changed.
fn writing(writers: &mut Writers, event: &Event, cast: &Cast) -> Option<String> {
    let (volume, writer, can) = match &event.what {
        What::CanWrite { volume, writer } => (volume, writer, true),
        What::CannotWrite { volume, writer } => (volume, writer, false),
        _ => return None,
    };
    if **volume != *cast.volume {
        return None;
    }
    let before = writers.words();
    writers.change(event.at, &writer.node, &writer.pod, can);
    let now = writers.words();
    (before != now).then(|| format!("{now} can write to the volume"))
}

/// What everybody waits for, after the last thing that happened.
fn waits_for(last: Option<Mark>) -> &'static str {
    match last {
        None => "the lease has to miss two renewals, and a witness to agree",
        Some(Mark::Detected) => "the gates decide",
        Some(Mark::Admitted | Mark::Isolated) => "off, and read back until it is steady",
        Some(Mark::Proven) => "marked; read back once more before anything is removed",
        Some(Mark::Released) => "the StatefulSet makes it again",
        Some(Mark::Scheduled) => "the volume moves, the replacement starts",
        Some(Mark::Running) => "the machine boots; the node has to be clean",
        Some(Mark::Closed) => "over",
    }
}
