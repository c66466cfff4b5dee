//! No secret anywhere (I7): every login of every device is a word that nobody else uses. A failover, wrong passwords, refusals and
//! checks that fail go by; then nobody may have said that word, in the API, in the metrics or in the log, however fine it is.
//!
//! With the feature `planted` somebody says it on purpose.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use palisade_cluster::api::Kind as Stored;
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::look::Look;
use palisade_scenarios::stories::{FIRST, clean, database, moved, moved_and_clean, nothing_released};
use palisade_scenarios::world::{Bmc, Kind, Link, Needs, Switched, Told, World};
use serde_json::{Value, json};
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::format::FmtSpan;

const CANARY: &str = "canary-4f1c90b2e7";
const NODES: Needs = Needs { nodes: 4, zones: 1 };

/// The word itself, and what Base64 makes of it at each of the three places where it can begin.
fn forms() -> Vec<String> {
    let shifted = (0..3).map(|shift| {
        let bytes = [&b"xx"[..shift], CANARY.as_bytes()].concat();
        let text = STANDARD_NO_PAD.encode(&bytes);
        text[if shift == 0 { 0 } else { 4 }..bytes.len() / 3 * 4].to_owned()
    });
    std::iter::once(CANARY.to_owned()).chain(shifted).collect()
}

/// Hears everything that is logged, and sees everything that is written to the API, Secrets excepted.
#[derive(Clone, Default)]
struct Audience {
    log: Arc<Mutex<Vec<u8>>>,
    written: Arc<Mutex<Vec<String>>>,
}

impl Write for Audience {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.log.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Audience {
    fn listen(&self) -> DefaultGuard {
        let ears = self.clone();
        let everything = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_writer(move || ears.clone());
        tracing::subscriber::set_default(everything.finish())
    }

    fn watch(&self, world: &Embedded) {
        let (written, forms) = (Arc::clone(&self.written), forms());
        world.cluster.api().on_write(Box::new(move |_, change| {
            let Some(new) = change.new.as_ref().filter(|_| change.key.kind != Stored::SECRET) else { return };
            let text = new.to_string();
            if forms.iter().any(|form| text.contains(form)) {
                written.lock().unwrap().push(text);
            }
        }));
    }

    /// Whatever gives the word away.
    fn found(&self, world: &Embedded) -> Vec<String> {
        let log = String::from_utf8_lossy(&self.log.lock().unwrap()).into_owned();
        let metrics = world.metrics(FIRST).map(|metrics| metrics.text()).unwrap_or_default();
        let tells = |line: &&str| forms().iter().any(|form| line.contains(form));
        let told = log.lines().chain(metrics.lines()).filter(tells).map(ToOwned::to_owned);
        self.written.lock().unwrap().iter().cloned().chain(told).collect()
    }

    fn heard(&self, words: &str) -> bool {
        String::from_utf8_lossy(&self.log.lock().unwrap()).contains(words)
    }
}

fn secret(user: &str, password: &str) -> Value {
    json!({ "data": { "username": STANDARD.encode(user), "password": STANDARD.encode(password) } })
}

/// A world in which every login has the word in it.
async fn with_canaries(audience: &Audience) -> Embedded {
    let mut world = Embedded::for_story(&NODES, 1).await;
    audience.watch(&world);
    for number in 1..=NODES.nodes {
        let node = format!("n{number}");
        let (user, password) = (format!("u-{CANARY}-{node}"), format!("p-{CANARY}-{node}"));
        world.cluster.bmc(&node).set_login(&user, &password);
        world.patch(Kind::Secret, &format!("bmc-{node}"), secret(&user, &password)).await.unwrap();
    }
    let often = json!({ "spec": { "checkInterval": "60s" } });
    world.patch(Kind::Template, "bmc", often).await.unwrap();
    world
}

async fn everything_goes_wrong(world: &mut Embedded) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await?;

    // A login that the device does not know: the check is refused, and so is the fence.
    let home = world.node_of("db-0");
    let (_, user, password) = world.cluster.bmc(&home).login().unwrap_or_default();
    world.patch(Kind::Secret, &format!("bmc-{home}"), secret(&user, &format!("wrong-{CANARY}"))).await?;
    world.run_until(200, "the check is refused", |world| world.was_told("DeviceCheckFailed", &home)).await?;
    world.power_off(&home).await?;
    nothing_released(world, 120).await?;
    world.patch(Kind::Secret, &format!("bmc-{home}"), secret(&user, &password)).await?;
    moved(world, &home, 900).await?;
    clean(world, &home, 900).await?;

    // A device that refuses every command.
    let home = world.node_of("db-0");
    world.bmc(&home, Bmc::Refuses).await?;
    world.cut(&home, Link::Api).await?;
    nothing_released(world, 120).await?;
    world.bmc(&home, Bmc::Honest).await?;
    moved(world, &home, 900).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 1200).await?;

    // And one that is not there when it is checked.
    let home = world.node_of("db-0");
    world.bmc(&home, Bmc::Silent).await?;
    world.run_until(200, "the check fails", |world| world.was_told("DeviceCheckFailed", &home)).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nobody_tells_a_secret_whatever_goes_wrong() {
    let audience = Audience::default();
    let _listens = audience.listen();
    let mut world = with_canaries(&audience).await;
    everything_goes_wrong(&mut world).await.unwrap();
    assert!(audience.heard("a device fails its check") && audience.heard("TRACE"), "nobody listened");
    let found = audience.found(&world);
    assert!(found.is_empty(), "{} places, the first: {:#?}", found.len(), &found[..found.len().min(5)]);
}

/// Without this the test above could be deaf.
#[tokio::test(start_paused = true)]
async fn whoever_tells_a_secret_is_found_in_whatever_form() {
    let audience = Audience::default();
    let _listens = audience.listen();
    let mut world = with_canaries(&audience).await;
    assert_eq!(audience.found(&world), Vec::<String>::new());
    for words in ["x", "xy", "xyz"] {
        tracing::trace!(header = STANDARD.encode(format!("{words}{CANARY}")), "request");
    }
    tracing::debug!("login of {CANARY}");
    let labels = json!({ "metadata": { "annotations": { "example.org/last": STANDARD.encode(CANARY) } } });
    world.patch(Kind::Node, "n1", labels).await.unwrap();
    assert_eq!(audience.found(&world).len(), 5);
}

/// The operator itself, with the mistake in it.
#[cfg(feature = "planted")]
#[tokio::test(start_paused = true)]
async fn an_operator_that_tells_a_secret_is_found() {
    let audience = Audience::default();
    let _listens = audience.listen();
    palisade_core::planted::plant(Some(palisade_core::planted::Bug::TellsASecret));
    let mut world = with_canaries(&audience).await;
    let told = database(&mut world).await;
    palisade_core::planted::plant(None);
    told.unwrap();
    assert!(!audience.found(&world).is_empty(), "nobody saw it");
}

#[tokio::test(start_paused = true)]
async fn a_password_that_is_changed_between_two_fences_is_read_anew() {
    let mut world = Embedded::for_story(&NODES, 1).await;
    let home = database(&mut world).await.unwrap();
    world.power_off(&home).await.unwrap();
    moved_and_clean(&mut world, &home).await.unwrap();
    for number in 1..=NODES.nodes {
        let node = format!("n{number}");
        world.cluster.bmc(&node).set_login("fence", "another");
        world.patch(Kind::Secret, &format!("bmc-{node}"), secret("fence", "another")).await.unwrap();
    }
    let home = world.node_of("db-0");
    world.power_off(&home).await.unwrap();
    moved_and_clean(&mut world, &home).await.unwrap();
    assert!(world.commands_to(&home).contains(&Switched::On), "the second one was switched on, too");
}
