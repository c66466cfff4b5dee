//! Conformance / run: plays tables on a cluster, several checks at a time, and says how each ended.

use std::fmt;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::{items, text};
use super::bench::Bench;
use super::places::{CONFIG_MAPS, DEFINITIONS, at};
use super::{Check, Told, all, bad, controllers};

/// A check of an API server answers in a second; a busy machine may take longer.
const PATIENCE: Duration = Duration::from_mins(1);
const AT_ONCE: usize = 8;
/// The longest wait of a controller is six minutes, after a node was silent for one.
const CONTROLLERS_PATIENCE: Duration = Duration::from_mins(12);
/// They wait far more than they work.
const CONTROLLERS_AT_ONCE: usize = 64;

/// How one check ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Group and name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// What was found instead, if it did not.
    pub wrong: Option<String>,
    /// How long it took, by tokio's clock.
    pub took: Duration,
}

/// How all of them ended, in the order of the table.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One for each check.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// Those that did not go as they should.
    pub fn failures(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.wrong.is_some())
    }

    /// Whether there was something to play, and all of it went well.
    pub fn is_good(&self) -> bool {
        !self.outcomes.is_empty() && self.failures().next().is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Outcome { name, about, wrong, took } in &self.outcomes {
            let word = if wrong.is_some() { "WRONG" } else { "ok   " };
            writeln!(f, "{word} {name} ({:.1} s): {about}", took.as_secs_f32())?;
            if let Some(wrong) = wrong {
                writeln!(f, "      {wrong}")?;
            }
        }
        write!(f, "{} checks, {} wrong", self.outcomes.len(), self.failures().count())
    }
}

/// Plays the checks of an API server whose group and name contain the filter; an empty one takes all.
///
/// The client must not repeat what was refused (`default_retry` of its configuration), as some checks ask to be refused with 429
/// or 504; nor may its connection break because a watch is silent (`read_timeout`).
pub async fn run(client: Client, filter: &str) -> Report {
    play(client, &all(), filter, AT_ONCE, PATIENCE).await
}

/// The same for the checks of the controllers: minutes, on a clock that runs as clocks do.
pub async fn run_controllers(client: Client, filter: &str) -> Report {
    play(client, &controllers(), filter, CONTROLLERS_AT_ONCE, CONTROLLERS_PATIENCE).await
}

/// Plays the table of bad objects. Needs a cluster without a FencePolicy: the table makes its own.
pub async fn run_bad_objects(client: Client) -> Report {
    match begin(&client).await {
        Err(wrong) => failed_to_begin(wrong),
        Ok(tag) => bad::play(&client, &tag).await,
    }
}

async fn play(client: Client, table: &[Check], filter: &str, at_once: usize, patience: Duration) -> Report {
    let tag = match begin(&client).await {
        Err(wrong) => return failed_to_begin(wrong),
        Ok(tag) => tag,
    };
    let named = |check: &&Check| format!("{}/{}", check.group, check.name).contains(filter);
    let played = stream::iter(table.iter().filter(named).enumerate()).map(|(number, check)| {
        let bench = Bench::new(client.clone(), format!("{tag}-{number}"));
        async move {
            let begin = Instant::now();
            let wrong = bench.play(check, patience).await.err();
            let name = format!("{}/{}", check.group, check.name);
            Outcome { name, about: check.about.to_owned(), wrong, took: begin.elapsed() }
        }
    });
    Report { outcomes: played.buffered(at_once).collect().await }
}

/// Makes sure that our kinds are there; says what was wrong otherwise.
pub async fn prepare(client: &Client) -> Result<(), String> {
    let bench = Bench::new(client.clone(), String::new());
    for definition in palisade_api::crds() {
        let definition = serde_json::to_value(definition).map_err(|why| why.to_string())?;
        let path = at(DEFINITIONS, text(&definition, "/metadata/name"));
        if bench.get(&path).await?.code == 404 {
            bench.post(DEFINITIONS, &definition).await?.is(201)?;
        }
        let established = |definition: &Value| {
            let mut conditions = items(definition, "/status/conditions");
            conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
        };
        bench.until(&path, PATIENCE, established).await?;
        // Established means that it will be served, not that every path is there already.
        let place =
            format!("/apis/{}/v1alpha1/{}", text(&definition, "/spec/group"), text(&definition, "/spec/names/plural"));
        served(&bench, &place).await?;
    }
    Ok(())
}

/// A kind that is new is not found at first, and then its storage is not ready (429).
async fn served(bench: &Bench, place: &str) -> Told {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = bench.get(place).await?;
        if !matches!(answer.code, 404 | 429) || Instant::now() >= end {
            return answer.is(200).map(drop);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Prepares the cluster, and takes a word for this run from it: names must differ from those of the run before.
async fn begin(client: &Client) -> Told<String> {
    prepare(client).await?;
    let bench = Bench::new(client.clone(), String::new());
    let made = bench.post(CONFIG_MAPS, &json!({"metadata": {"generateName": "conformance-"}})).await?.is(201)?;
    let name = text(&made, "/metadata/name");
    bench.delete(&at(CONFIG_MAPS, name), &Value::Null).await?.is(200)?;
    Ok(name.replacen("conformance-", "c", 1))
}

fn failed_to_begin(wrong: String) -> Report {
    let (name, about) = ("begin".to_owned(), "the cluster can be prepared".to_owned());
    Report { outcomes: vec![Outcome { name, about, wrong: Some(wrong), took: Duration::ZERO }] }
}
