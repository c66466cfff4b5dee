//! IPMI: beside Redfish each BMC speaks IPMI 2.0, by somebody else's program (`ipmi_sim`), whose chassis is the machine.
//!
//! One process for each BMC: it does one thing at a time, and one that is slow must not hold up the others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::bmc::{Bmc, USER};
use crate::daemon::Daemon;
use crate::machine::Machine;
use crate::run::Run;

/// One controller, which is the BMC.
const HARDWARE: &str = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n";

/// Starts the IPMI side of every BMC. `lab` is our own program, which they call to look at their machine and to switch it.
pub fn start(run: Run, machines: &[Machine], lab: &Path) -> Result<()> {
    for machine in machines {
        let dir = machine.dir().join("ipmi");
        fs::create_dir_all(dir.join("state"))?;
        let chassis = dir.join("chassis");
        let call = format!("#!/bin/sh\nexec {} chassis {} {} \"$@\"\n", lab.display(), run.number(), machine.name());
        fs::write(&chassis, call)?;
        fs::set_permissions(&chassis, fs::Permissions::from_mode(0o755))?;
        fs::write(dir.join("sim.emu"), HARDWARE)?;
        fs::write(dir.join("lan.conf"), settings(run, machine, &chassis))?;
        let mut sim = Command::new("ipmi_sim");
        sim.arg("-c").arg(dir.join("lan.conf")).arg("-f").arg(dir.join("sim.emu")).arg("-s").arg(dir.join("state"));
        sim.arg("-n");
        let daemon = Daemon::of(run, &format!("ipmi-{}", machine.name()));
        daemon.start(run, "control-plane", sim).context("install the package openipmi")?;
    }
    Ok(())
}

fn settings(run: Run, machine: &Machine, chassis: &Path) -> String {
    let (address, password) = (run.bmc_address(machine.index()), Bmc::of(run, machine).password());
    let guid = machine.uuid().unwrap_or_default().replace('-', "");
    let auths = ["callback", "user", "operator", "admin"]
        .map(|level| format!("    allowed_auths_{level} none md2 md5 straight\n"));
    format!(
        "name \"{}\"\nset_working_mc 0x20\n  startlan 1\n    addr {address} 623\n    priv_limit admin\n{}    guid {guid}\n  endlan\n  \
         chassis_control \"{}\"\n  user 2 true \"{USER}\" \"{password}\" admin 10 none md2 md5 straight\n",
        machine.name(),
        auths.concat(),
        chassis.display(),
    )
}
