//! Devices / simulator: many BMCs in one ipmi_sim, each with a machine that is a file.
//!
//! Promise: everything is on loopback and in a folder of its own; the process and the folder go with this.

use std::fmt::Write as _;
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::fence::{PASSWORD, USER};

/// The address of the first one among its own kind, and how far it is to the next.
const FIRST: u16 = 0x20;
const STEP: u16 = 2;

/// What plays the machine: called with its folder, and `get power` or `set power 0`.
const CHASSIS: &str = "d=$1; case \"$2\" in\nget) read -r p < \"$d/power\"; echo \"power:$p\";;\nset) echo \"$4\" > \"$d/power\";;\nesac\nexit 0\n";

pub(super) struct Simulator {
    process: Child,
    folder: PathBuf,
    ports: Vec<u16>,
}

impl Simulator {
    /// So many BMCs, or nothing where ipmi_sim is missing.
    pub(super) fn start(count: u16) -> Result<Option<Self>> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|place| place.join("ipmi_sim").is_file()) {
            return Ok(None);
        }
        let folder = std::env::temp_dir().join(format!("palisade-bench-{}", std::process::id()));
        fs::create_dir_all(folder.join("state"))?;
        fs::write(folder.join("chassis.sh"), CHASSIS)?;
        let ports = free_ports(count)?;
        let (mut lan, mut emu) = ("name \"bench\"\n".to_owned(), format!("mc_setbmc {FIRST:#x}\n"));
        for (address, port) in (FIRST..).step_by(STEP.into()).zip(&ports) {
            let machine = folder.join(format!("{address:x}"));
            fs::create_dir_all(&machine)?;
            fs::write(machine.join("power"), "1\n")?;
            write!(
                lan,
                "set_working_mc {address:#x}\nstartlan 1\n addr 127.0.0.1 {port}\n priv_limit admin\n \
                 allowed_auths_admin none md2 md5 straight\n allowed_auths_operator none md2 md5 straight\n \
                 guid 4c1d7e0293aa4fcbb1c00cc47a12{address:04x}\nendlan\n\
                 chassis_control \"/bin/sh {0}/chassis.sh {1}\"\n\
                 user 2 true \"{USER}\" \"{PASSWORD}\" admin 10 none md2 md5 straight\n",
                folder.display(),
                machine.display()
            )?;
            writeln!(emu, "mc_add {address:#x} 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable {address:#x}")?;
        }
        fs::write(folder.join("lan.conf"), lan)?;
        fs::write(folder.join("bmc.emu"), emu)?;
        let process = Command::new("ipmi_sim")
            .arg("-c")
            .arg(folder.join("lan.conf"))
            .arg("-f")
            .arg(folder.join("bmc.emu"))
            .arg("-s")
            .arg(folder.join("state"))
            .arg("-n")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let simulator = Self { process: process.context("ipmi_sim does not start")?, folder, ports };
        simulator.wait()?;
        Ok(Some(simulator))
    }

    /// Until the last port is taken: whoever comes earlier would measure their own patience.
    #[expect(clippy::disallowed_methods, reason = "another process is waited for in real time")]
    fn wait(&self) -> Result<()> {
        let last = *self.ports.last().context("no BMCs")?;
        for _ in 0..200 {
            if UdpSocket::bind(("127.0.0.1", last)).is_err() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("ipmi_sim does not listen")
    }

    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Ports where nothing listens right now: all are held until the last is known.
fn free_ports(count: u16) -> Result<Vec<u16>> {
    let held: Vec<UdpSocket> = (0..count).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    held.iter().map(|socket| Ok(socket.local_addr()?.port())).collect()
}
