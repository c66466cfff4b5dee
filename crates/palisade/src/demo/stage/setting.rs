//! Stage / setting: a cluster with a database in it, and an operator that has watched for long enough to act.

use std::io;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use palisade_cluster::Shape;
use palisade_cluster::api::{Key, Kind};
use palisade_cluster::workloads::Claim;
use palisade_scenarios::embedded::Embedded;

use super::{OPERATOR, POD, Stage, writing};
use crate::demo::Options;
use crate::demo::keep::interrupts;
use crate::demo::pacer::Pacer;
use crate::demo::split::{Split, Writers};
use crate::demo::story::Cast;
use crate::demo::tell::{Teller, seconds};

const NODES: usize = 4;
const CLAIM: &str = "data-db-0";
/// An operator that has just started watches for a minute before it acts; this is that, and some more.
const SETTLE: Duration = Duration::from_mins(2);

impl Stage {
    /// Everything up to the moment before the failure.
    pub(super) async fn set(options: &Options) -> anyhow::Result<Self> {
        let asked_to_end = interrupts()?;
        let mut teller = Teller::on_stdout();
        announce(&mut teller, options)?;

        let mut shape = Shape { nodes: NODES, seed: options.seed, ..Shape::default() };
        if options.keep {
            shape.epoch = recent()?;
        }
        let world = cluster_with_database(&shape, !options.without_palisade).await?;
        let cast = cast(&world).context("the database has no volume")?;
        options.scenario.prepare(&world.cluster, &cast.home);

        let (now, events) = (world.cluster.elapsed(), world.cluster.truth().look(|world| world.events.clone()));
        let mut writers = Writers::default();
        for event in &events {
            writing(&mut writers, event, &cast);
        }
        let (home, who, passed) = (&cast.home, writers.words(), seconds(now));
        teller.line(&format!("{NODES} nodes are ready. {POD} runs on {home}, and {who} writes to its volume."))?;
        teller.line(&format!(
            "(The first {passed} were fast-forwarded: a new operator watches for a while before it acts.)\n"
        ))?;
        Ok(Self {
            scenario: options.scenario,
            alone: options.without_palisade,
            speed: options.speed,
            epoch: shape.epoch,
            failed: now,
            split: Split::since(now),
            writers,
            held: None,
            released: false,
            cue: None,
            revision: world.cluster.api().revision(),
            events: events.len(),
            pacer: Pacer::at(options.speed),
            forward: false,
            teller,
            asked_to_end,
            cast,
            world,
        })
    }
}

fn announce(teller: &mut Teller<io::Stdout>, options: &Options) -> io::Result<()> {
    let scenario = options.scenario;
    if options.without_palisade {
        teller.line(&format!("palisade demo: {}, without Palisade", scenario.name()))?;
        return teller.line("The same failure, and nobody but Kubernetes to deal with it.\n");
    }
    teller.line(&format!("palisade demo: {}\n{}\n", scenario.name(), scenario.tells()))
}

async fn cluster_with_database(shape: &Shape, with_palisade: bool) -> anyhow::Result<Embedded> {
    let mut world = Embedded::up(shape).await;
    if with_palisade {
        world.start(OPERATOR);
    }
    if let Err(why) = world.cluster.stateful_set("db", 1, Claim::ReadWriteOnce) {
        bail!("failed to make the database: {why:?}");
    }
    if world.cluster.run_until(Duration::from_mins(1), |cluster| cluster.is_ready(POD)).await.is_none() {
        bail!("the database did not start within a minute");
    }
    // The same without an operator, so that the failure comes at the same instant.
    world.cluster.run_for(SETTLE).await;
    Ok(world)
}

/// The database's node and volume.
fn cast(world: &Embedded) -> Option<Cast> {
    let cluster = &world.cluster;
    let claim = cluster.api().get(&Key::new(Kind::PERSISTENT_VOLUME_CLAIM, "default", CLAIM))?;
    let pv = claim["spec"]["volumeName"].as_str()?.to_owned();
    let volume = cluster.volume_of(CLAIM)?.to_string();
    Some(Cast { home: cluster.node_of(POD), pod: POD.to_owned(), pv, volume })
}

/// So that `kubectl describe` shows sensible ages: the story and all that is fast-forwarded take less than this.
#[expect(clippy::disallowed_methods, reason = "a date for people's eyes; nobody decides by it")]
fn recent() -> anyhow::Result<Timestamp> {
    let before = jiff::SignedDuration::from_mins(10);
    Timestamp::now().checked_sub(before).context("the clock of this machine is not set")
}
