//! Fence agents: real ones against devices of others, and ones that a test writes to misbehave.
//!
//! What a device did is read from the device's own record, never from an agent.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bmc;
mod dummy;
mod ipmilan;
mod lies;
mod pdu;
mod scripted;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use palisade_devices::agent::{Agent, Parameters, Secret, Surroundings};
use palisade_devices::{Failure, Late, Permit};
use tokio::time::Instant;

/// Whether programs of others are wanted, and this one is there. They take their time, so they have a tier of their own, in which they
/// have to be there on a build machine.
fn is_installed(program: &str, package: &str) -> bool {
    if std::env::var_os("PALISADE_DEVICES").is_none() {
        eprintln!("LEFT OUT: {program}; `cargo xtask test --only devices` has it");
        return false;
    }
    if std::env::split_paths(&search_path()).any(|directory| directory.join(program).is_file()) {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "{program} is missing: install the package {package}");
    eprintln!("SKIPPED: {program} is not installed, so nothing was checked against it; install the package {package}");
    false
}

/// Where agents and the daemons of Debian are, too.
fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/usr/bin:/sbin:/bin");
    path
}

/// A port where nothing listens right now.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A directory of one test. It goes with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("palisade-agent-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        Self(place)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_default().trim().to_owned()
    }

    /// Written by somebody else: a file that we have open for writing cannot be run, and a sibling that is forked meanwhile has
    /// it open as well.
    fn program(&self, file: &str, text: &str) {
        let mut shell = Process::new("/bin/sh")
            .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(self.0.join(file))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(shell.wait().unwrap().success());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn parameters(plain: &[(&str, &str)], secret: &[(&str, &str)]) -> Parameters {
    let plain = plain.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let secret: BTreeMap<String, Secret> =
        secret.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
    Parameters { plain, secret }
}

/// An agent on the search path, with so much time for everything.
async fn agent(name: &str, told: &Parameters, within: Duration) -> Result<Agent, Failure> {
    let around = Surroundings { path: search_path(), authorities: None };
    Agent::find(name, told, &around, Instant::now() + within).await
}

/// What an agent itself says, told as Pacemaker would: its exit code and its words.
fn plainly(agent: &str, lines: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut process = Process::new(agent)
        .env("PATH", search_path())
        .env("PYTHONWARNINGS", "ignore")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    for (name, value) in lines {
        writeln!(stdin, "{name}={value}").unwrap();
    }
    drop(stdin);
    let said = process.wait_with_output().unwrap();
    // For whoever looks at a test that failed.
    eprintln!("{agent}: {}", String::from_utf8_lossy(&said.stderr).trim());
    (said.status.code(), String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// Whether it comes to be so at once: what is killed takes the kernel a moment, on a machine that is busy.
async fn gone(so: impl Fn() -> bool) -> bool {
    for _ in 0..50 {
        if so() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    so()
}

/// Says yes.
struct Yes;

impl Permit for Yes {
    fn may_send(&self) -> Result<(), Late> {
        Ok(())
    }
}

/// Says no.
struct No;

impl Permit for No {
    fn may_send(&self) -> Result<(), Late> {
        Err(Late("the fence was taken back".to_owned()))
    }
}

/// What a person reads when something is refused.
fn refused<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    match answer {
        Err(Failure::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

/// What a person reads when nobody knows.
fn unknown<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    match answer {
        Err(Failure::Unknown(why)) => why,
        other => panic!("not unknown: {other:?}"),
    }
}
