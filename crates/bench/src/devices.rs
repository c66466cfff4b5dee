//! Devices: from the order to switch machines off until their BMCs have said steadily that they are.
//!
//! The BMCs are ipmi_sim of OpenIPMI, and Redfish services over HTTPS in this process; who switches them off is a child of ours,
//! so that its memory is its own. What it does to each is what the operator does: identity, off, and reads until they have
//! been off for `stableOff`. How long that lasts above `stableOff` is what counts.

mod fence;
mod service;
mod simulator;

use anyhow::{Context, Result};
use palisade_api::template::Driver;

use self::fence::Fenced;
pub(crate) use self::fence::{Targets, run as fence};
use self::service::Services;
use self::simulator::Simulator;
use crate::process;
use crate::quantile;
use crate::table::Figure;

/// A rack or a few, as in the widest failure that we have a figure of with fence agents.
const MANY: u16 = 110;
/// How often one BMC is fenced alone.
const TIMES: u16 = 5;

/// What it should cost: one above `stableOff`, many above it, and memory.
const ONE: f64 = 0.5;
const ALL: f64 = 10.0;
const MEMORY: f64 = 64.0;

/// Measures both drivers.
pub(crate) fn measure() -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    match Simulator::start(MANY)? {
        Some(simulator) => figures.extend(of(Driver::Ipmi, simulator.ports(), None)?),
        None => eprintln!("SKIPPED: ipmi_sim is not installed, so IPMI was not measured; install the package openipmi"),
    }
    let services = Services::start(MANY)?;
    figures.extend(of(Driver::Redfish, services.ports(), Some(services.fingerprint()))?);
    Ok(figures)
}

fn of(driver: Driver, ports: &[u16], fingerprint: Option<&str>) -> Result<Vec<Figure>> {
    let word = match driver {
        Driver::Redfish => "Redfish",
        Driver::Ipmi => "IPMI",
        Driver::SnmpPdu => "SNMP",
    };
    let (alone, all) = ports.split_at(ports.len().min(TIMES.into()));
    let mut single = Vec::new();
    for port in alone {
        single.extend(child(driver, &[*port], fingerprint)?.above);
    }
    let one = |share| quantile::millis(&mut single.clone(), share).unwrap_or_default() / 1e3;
    let many = child(driver, &[all, alone].concat(), fingerprint)?;
    let last = many.above.iter().max().context("nobody was fenced")?.as_secs_f64();
    let count = many.above.len();
    Ok(vec![
        Figure::new(format!("{word}: one BMC off and steady, above stableOff, median"), one(0.5), "s").at_most(ONE),
        Figure::new(format!("{word}: the same, longest of {}", single.len()), one(1.0), "s").at_most(ONE),
        Figure::new(format!("{word}: {count} BMCs at once, the last of them"), last, "s").at_most(ALL),
        Figure::new(format!("{word}: memory for these {count}"), many.peak, "MiB").at_most(MEMORY),
    ])
}

fn child(driver: Driver, ports: &[u16], fingerprint: Option<&str>) -> Result<Fenced> {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let mut arguments = vec!["fence", if driver == Driver::Ipmi { "--ipmi" } else { "--redfish" }];
    arguments.extend(fingerprint.iter().flat_map(|digits| ["--fingerprint", *digits]));
    arguments.extend(ports.iter().map(String::as_str));
    Fenced::read(&process::told(&arguments)?)
}
