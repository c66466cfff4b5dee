//! Stage / setting: the cluster that a story needs, and what people are told when the curtain rises.

use std::io;

use anyhow::Context;
use jiff::Timestamp;
use palisade_cluster::Shape;
use palisade_cluster::api::{Key, Kind};
use palisade_scenarios::catalogue::Story;
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::stories::{DATA, FIRST};

use super::{CALM, Deeds, Stage, Wait, writing};
use crate::demo::Options;
use crate::demo::keep::Kept;
use crate::demo::pacer::Pacer;
use crate::demo::scenario::sentence;
use crate::demo::split::{Split, Writers};
use crate::demo::story::{Cast, Holds};
use crate::demo::tell::{Teller, seconds};

/// The database of most stories.
const POD: &str = "db-0";

impl Stage {
    /// A cluster in which nothing happened yet.
    pub(super) async fn set(options: &Options, story: &Story<Self>) -> anyhow::Result<Self> {
        let mut teller = Teller::on_stdout();
        announce(&mut teller, options, story)?;

        let (nodes, zones) = (story.needs.nodes, story.needs.zones);
        let mut shape = Shape { nodes, zones, seed: options.seed, ..Shape::default() };
        if options.keep {
            shape.epoch = recent()?;
        }
        let world = Embedded::up(&shape).await;
        Ok(Self {
            ends: options.scenario.ends(),
            about: story.about,
            alone: options.without_palisade,
            keep: options.keep,
            speed: options.speed,
            epoch: shape.epoch,
            open: false,
            kept: None,
            cast: Cast::default(),
            failed: world.cluster.elapsed(),
            split: Split::since(world.cluster.elapsed()),
            writers: Writers::default(),
            holds: Holds::default(),
            deeds: Deeds::default(),
            revision: 0,
            events: 0,
            pacer: Pacer::at(options.speed),
            forward: 1,
            teller,
            trouble: None,
            world,
        })
    }

    /// People are told what they see, and see it for a moment. What comes next is the failure.
    pub(super) async fn raise(&mut self) -> anyhow::Result<()> {
        let now = self.elapsed();
        self.open = true;
        self.cast = cast(&self.world).unwrap_or_default();
        self.revision = self.world.cluster.api().revision();
        let events = self.world.cluster.truth().look(|world| world.events.clone());
        self.events = events.len();
        for event in &events {
            writing(&mut self.writers, event, &self.cast);
        }
        self.describe()?;
        if self.keep {
            let kept = Kept::serve(&self.world.cluster, self.world.metrics(FIRST)).await?;
            self.teller.line(&format!("Look at it from another terminal, now or later:\n  {}\n", kept.command()))?;
            self.kept = Some(kept);
        }
        self.failed = now + CALM;
        self.pacer = Pacer::at(self.speed);
        self.watch(Wait::For, CALM, "all is well", |_| false).await?;
        self.failed = self.elapsed();
        self.split = Split::since(self.failed);
        self.writers.restart(self.failed);
        Ok(())
    }

    fn describe(&mut self) -> io::Result<()> {
        let nodes = self.world.cluster.api().list(Kind::NODE).len();
        let (home, who, passed) = (&self.cast.home, self.writers.words(), seconds(self.elapsed()));
        let database = if home.is_empty() {
            String::new()
        } else {
            format!(" {POD} runs on {home}, and {who} writes to its volume.")
        };
        self.teller.line(&format!("{nodes} nodes are ready.{database}"))?;
        self.teller.line(&format!(
            "(The first {passed} were fast-forwarded: a new operator watches for a while before it acts.)\n"
        ))
    }
}

fn announce(teller: &mut Teller<io::Stdout>, options: &Options, story: &Story<Stage>) -> io::Result<()> {
    let name = options.scenario.name();
    if options.without_palisade {
        teller.line(&format!("palisade demo: {name}, without Palisade"))?;
        return teller.line("The same failure, and nobody but Kubernetes to deal with it.\n");
    }
    teller.line(&format!("palisade demo: {name}\n{}\n", sentence(story)))
}

/// The database's node and volume, if there is one.
fn cast(world: &Embedded) -> Option<Cast> {
    let cluster = &world.cluster;
    let claim = cluster.api().get(&Key::new(Kind::PERSISTENT_VOLUME_CLAIM, "default", DATA))?;
    let pv = claim["spec"]["volumeName"].as_str()?.to_owned();
    let volume = cluster.volume_of(DATA)?.to_string();
    Some(Cast { home: cluster.node_of(POD), pod: POD.to_owned(), pv, volume })
}

/// So that `kubectl describe` shows sensible ages: most stories and all that is fast-forwarded take less than this.
#[expect(clippy::disallowed_methods, reason = "a date for people's eyes; nobody decides by it")]
fn recent() -> anyhow::Result<Timestamp> {
    let before = jiff::SignedDuration::from_mins(30);
    Timestamp::now().checked_sub(before).context("the clock of this machine is not set")
}
