//! Devices / fence: who switches off, in a process of its own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures_util::future::try_join_all;
use palisade_api::template::{Driver, Identity};
use palisade_core::resolve::call::{Device as Target, Mechanism, THE_NODE, Value};
use palisade_core::time::Span;
use palisade_devices::https::Https;
use palisade_devices::{Command, Late, Permit, PowerState};
use palisade_operator::{Devices, Native};
use serde_json::json;

use crate::clock::now;
use crate::process;

/// How long a machine has to read off, and the pause between two reads: those of the operator for native drivers.
const STABLE_OFF: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(500);

/// Whom the BMCs of this bench know.
pub(super) const USER: &str = "fence";
pub(super) const PASSWORD: &str = "s3cret";

/// Which BMCs.
#[derive(clap::Args)]
pub(crate) struct Targets {
    #[arg(long, conflicts_with = "redfish")]
    ipmi: bool,
    #[arg(long)]
    redfish: bool,
    #[arg(long)]
    fingerprint: Option<String>,
    /// Their ports on loopback
    ports: Vec<u16>,
}

/// What became of it.
pub(super) struct Fenced {
    /// How long each took above `stableOff`.
    pub(super) above: Vec<Duration>,
    /// The most memory that it took, in MiB.
    pub(super) peak: f64,
}

impl Fenced {
    pub(super) fn read(line: &str) -> Result<Self> {
        let told: serde_json::Value = serde_json::from_str(line.trim()).context("the child says no JSON")?;
        let millis = told["above"].as_array().context("no times")?.iter().filter_map(serde_json::Value::as_u64);
        let peak = told["peak"].as_f64().context("no memory")?;
        Ok(Self { above: millis.map(Duration::from_millis).collect(), peak })
    }
}

/// Switches all of them off at once, and tells what it took.
pub(crate) fn run(targets: &Targets) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let native = Native::over(Https::default());
    let driver = if targets.ipmi { Driver::Ipmi } else { Driver::Redfish };
    let all = targets.ports.iter().map(|port| off(&native, driver, *port, targets.fingerprint.as_deref()));
    let above: Vec<Duration> = runtime.block_on(try_join_all(all))?;
    let millis: Vec<u64> = above.iter().map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).collect();
    println!("{}", json!({ "above": millis, "peak": process::own_peak()? }));
    Ok(())
}

struct Always;

impl Permit for Always {
    fn may_send(&self) -> Result<(), Late> {
        Ok(())
    }
}

/// Identity, off, and reads until it is steadily off.
async fn off(native: &Native, driver: Driver, port: u16, fingerprint: Option<&str>) -> Result<Duration> {
    let began = now();
    let target = target(driver, port, fingerprint);
    let secret = |_: &str, key: &str| (key == "password").then(|| PASSWORD.to_owned());
    let failed = |why| anyhow!("port {port}: {why}");
    let device = native.driver(&target, &secret).map_err(failed)?;
    device.identity("").await.map_err(failed)?;
    device.command("", Command::Off, &Always).await.map_err(failed)?;
    // The operator takes a driver of its own for the reads.
    let reader: Arc<_> = native.driver(&target, &secret).map_err(failed)?;
    let mut first = None;
    loop {
        let asked = now();
        match (reader.state("").await.map_err(failed)?, first) {
            (PowerState::Off, None) => first = Some(now()),
            (PowerState::Off, Some(first)) if asked.duration_since(first) >= STABLE_OFF => break,
            (PowerState::Off, Some(_)) | (PowerState::On, None) => {}
            (state, _) => bail!("port {port}: {state:?} after it was off, or unclear"),
        }
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(began.elapsed().saturating_sub(STABLE_OFF))
}

fn target(driver: Driver, port: u16, fingerprint: Option<&str>) -> Target {
    let text = |name: &str, value: &str| (name.to_owned(), Value::Text(value.to_owned()));
    let mut parameters: std::collections::BTreeMap<String, Value> =
        [text("ip", "127.0.0.1"), text("ipport", &port.to_string()), text("username", USER)].into();
    let password = Value::Secret { name: "bmc".to_owned(), key: "password".to_owned() };
    parameters.insert("password".to_owned(), password);
    parameters.extend(fingerprint.map(|digits| text("fingerprint", digits)));
    Target {
        template: "bmc".to_owned(),
        mechanism: Mechanism::Native(driver),
        parameters,
        plug: THE_NODE.into(),
        timeout: Span::secs(25),
        identity: Identity::WhenKnown,
    }
}
