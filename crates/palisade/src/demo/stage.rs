//! Demo / stage: a story of the catalogue, told to people. The stage is the story's world: the embedded cluster, at a pace.
//!
//! Promise: whoever tells a story here gets what the tests get, at the same instants; the stage only slows down and speaks.
//! Everything up to the first blow is fast-forwarded.

mod closing;
mod facts;
mod setting;
mod world;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use palisade_cluster::truth::{Event, What};
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::stories::FIRST;
use palisade_scenarios::world::Look;

use super::Options;
use super::keep::{Kept, interrupts};
use super::pacer::Pacer;
use super::scenario::Ending;
use super::split::{Mark, Split, Writers};
use super::story::{Beat, Cast, Holds, Room, Written, of_event, of_writes};
use super::tell::{Teller, seconds};

/// What a person sees before anything happens.
const CALM: Duration = Duration::from_secs(2);
/// Grace of 50 s, eviction after 300 s, and some more.
const ALONE_WATCH: Duration = Duration::from_mins(7);

/// One run.
pub(super) struct Stage {
    ends: Ending,
    about: &'static str,
    alone: bool,
    keep: bool,
    speed: u32,
    world: Embedded,
    epoch: Timestamp,
    /// Whether people look on: from shortly before the first blow.
    open: bool,
    kept: Option<Kept>,
    cast: Cast,
    failed: Duration,
    split: Split,
    writers: Writers,
    holds: Holds,
    deeds: Deeds,
    revision: u64,
    events: usize,
    pacer: Pacer,
    forward: u32,
    teller: Teller<io::Stdout>,
    /// Why it could not be told. A story knows no such thing: it ends, and this is said instead.
    trouble: Option<anyhow::Error>,
}

/// What Palisade did so far.
#[derive(Debug, Default)]
struct Deeds {
    /// The last reason that it named for holding.
    held: Option<Beat>,
    fenced: bool,
    released: bool,
}

/// How a story lets time pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Until something is so.
    Until,
    /// For so long.
    For,
    /// For so long, and something has to stay so.
    Hold,
    /// For as long as Kubernetes alone is given.
    Alone,
}

impl Stage {
    /// Plays a scenario to its end.
    pub(super) async fn play(options: &Options) -> anyhow::Result<ExitCode> {
        let asked_to_end = interrupts()?;
        let story = options.scenario.story().context("the story is not in the catalogue")?;
        let mut stage = Self::set(options, &story).await?;
        let told = tokio::select! {
            biased;
            told = story.tell(&mut stage) => told,
            () = asked_to_end.notified() => return stage.interrupted().await,
        };
        if let Some(trouble) = stage.trouble.take() {
            return Err(trouble);
        }
        let good = if stage.alone { stage.close_alone(told)? } else { stage.close(told)? };
        if let Some(kept) = &stage.kept {
            let words = format!("\nThe cluster runs on in real time, until Ctrl-C:\n  {}", kept.command());
            stage.teller.line(&words)?;
            tokio::select! {
                () = stage.run_on() => {}
                () = asked_to_end.notified() => stage.teller.line("")?,
            }
        }
        stage.world.stop(FIRST).await;
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Lets real time pass, for whoever looks on with kubectl.
    async fn run_on(&mut self) {
        self.pacer.set_rate(1);
        loop {
            let slice = self.pacer.slice();
            tokio::time::sleep(slice).await;
            self.pacer.keep_up(slice);
        }
    }

    /// Lets time pass at a pace and tells what happens, until something is so; says how long that took.
    async fn watch(
        &mut self,
        wait: Wait,
        limit: Duration,
        what: &str,
        mut so: impl FnMut(&dyn Look) -> bool,
    ) -> anyhow::Result<Option<Duration>> {
        let begun = self.elapsed();
        loop {
            let now = self.elapsed();
            self.set_pace(wait, now.saturating_sub(begun))?;
            let slice = self.pacer.slice().min((begun + limit).saturating_sub(now));
            let is_so = self.world.look_until(slice, &mut so).await.is_some();
            let passed = self.elapsed();
            self.pacer.keep_up(passed.saturating_sub(now));
            self.catch_up()?;
            self.progress(wait, what)?;
            if is_so {
                return Ok(Some(passed.saturating_sub(begun)));
            }
            if passed >= begun + limit {
                return Ok(None);
            }
        }
    }

    /// Real time where something happens; faster where a person would only wait.
    fn set_pace(&mut self, wait: Wait, waited: Duration) -> io::Result<()> {
        let returns = self.reached(Mark::Running) && !self.reached(Mark::Closed);
        let (forward, why) = match wait {
            Wait::Alone if waited > Duration::from_secs(15) => (20, "while nobody comes"),
            Wait::Hold if waited > Duration::from_secs(30) => (30, "while it has to hold"),
            Wait::For if waited > Duration::from_secs(15) => (10, "while time passes"),
            Wait::Until if returns => (4, "while the node returns"),
            Wait::Until if waited > Duration::from_mins(2) => (10, "while everybody waits"),
            Wait::Alone | Wait::Hold | Wait::For | Wait::Until => (1, ""),
        };
        self.pacer.set_rate(self.speed.saturating_mul(forward));
        let before = std::mem::replace(&mut self.forward, forward);
        match forward {
            _ if forward == before => Ok(()),
            1 => self.teller.line("          (from here at the usual pace again)"),
            _ => self.teller.line(&format!("          (from here {forward} times faster, {why})")),
        }
    }

    /// The moving line of a terminal.
    fn progress(&mut self, wait: Wait, what: &str) -> io::Result<()> {
        let words = match wait {
            Wait::Until if !self.cast.home.is_empty() && self.failed < self.elapsed() => waits_for(self.split.last()),
            Wait::Until | Wait::For | Wait::Hold | Wait::Alone => what,
        };
        let since = seconds(self.elapsed().saturating_sub(self.failed));
        let fast = if self.forward > 1 { format!(" · {} times faster", self.forward) } else { String::new() };
        self.teller.progress(&format!("{since:>8}  {words} · writes: {}{fast}", self.writers.words()))
    }

    /// Tells everything that happened since the last time, in its order.
    fn catch_up(&mut self) -> anyhow::Result<()> {
        let mut beats = self.truth_beats();
        beats.extend(self.api_beats()?);
        beats.sort_by_key(|beat| beat.at);
        for beat in self.holds.sift(beats, self.elapsed()) {
            self.tell(&beat)?;
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
                beats.push(Beat::new(event.at, Room::Writes, words));
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
        self.deeds.fenced |= writes.iter().any(|write| write.kind() == "NodeFence");
        Ok(of_writes(&writes, &self.cast))
    }

    fn tell(&mut self, beat: &Beat) -> io::Result<()> {
        if let Some(mark) = beat.mark {
            self.split.note(mark, beat.at);
        }
        self.deeds.released |= beat.room == Room::Released;
        if beat.room == Room::Held {
            self.deeds.held = Some(beat.clone());
        }
        self.teller.beat(beat, beat.at.saturating_sub(self.failed))
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
        None => "the lease has to fall silent, and a witness to agree",
        Some(Mark::Detected) => "the gates decide",
        Some(Mark::Admitted | Mark::Isolated) => "off, and read back until it is steady",
        Some(Mark::Proven) => "marked; read back once more before anything is removed",
        Some(Mark::Released) => "the StatefulSet makes it again",
        Some(Mark::Scheduled) => "the volume moves, the replacement starts",
        Some(Mark::Running) => "the machine boots; the node has to be clean",
        Some(Mark::Closed) => "over",
    }
}
