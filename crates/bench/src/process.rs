//! Process: a child of ours, and what Linux says of its memory and its time.
//!
//! Promise: the child is gone when this is, ended by its id; it also ends by itself when its stdin is closed.

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// A child of ours.
pub(crate) struct Process(Child);

/// What it has used so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// Memory that is resident now, in MiB.
    pub(crate) resident: f64,
    /// The most that ever was, in MiB.
    pub(crate) peak: f64,
    /// Time on a processor.
    pub(crate) cpu: Duration,
}

impl Process {
    /// Starts ourselves with other arguments. The child is told to end by closing its stdin.
    pub(crate) fn start(arguments: &[&str]) -> Result<Self> {
        let own = std::env::current_exe().context("where this program is")?;
        let child = Command::new(own).args(arguments).stdin(Stdio::piped()).spawn();
        child.map(Self).context("a child process could not be started")
    }

    /// What it has used so far.
    pub(crate) fn used(&self) -> Result<Used> {
        let folder = format!("/proc/{}", self.0.id());
        let status = fs::read_to_string(format!("{folder}/status")).context("this measure needs Linux's /proc")?;
        let mut cpu = Duration::ZERO;
        for thread in fs::read_dir(format!("{folder}/task"))? {
            // A thread may end between the two looks.
            let times = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            cpu += Duration::from_nanos(first_number(&times).unwrap_or_default());
        }
        let (resident, peak) = (mebibytes(&status, "VmRSS:"), mebibytes(&status, "VmHWM:"));
        Ok(Used { resident: resident.context("the child has ended")?, peak: peak.context("the child has ended")?, cpu })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Who has ended already cannot be killed, which is as good.
        let _: io::Result<()> = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What ourselves with other arguments say until they end.
pub(crate) fn told(arguments: &[&str]) -> Result<String> {
    let own = std::env::current_exe().context("where this program is")?;
    let ran = Command::new(own).args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let ran = ran.context("a child process could not be started")?;
    ensure!(ran.status.success(), "a child process failed: {}", ran.status);
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// The most memory that this process ever had, in MiB.
pub(crate) fn own_peak() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status").context("this measure needs Linux's /proc")?;
    mebibytes(&status, "VmHWM:").context("Linux does not tell")
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

fn mebibytes(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes = u32::try_from(first_number(line)?).ok()?;
    Some(f64::from(kibibytes) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_linux_writes_it() {
        let status = "Name:\tpalisade\nVmHWM:\t  131072 kB\nVmRSS:\t   98304 kB\n";
        assert_eq!(mebibytes(status, "VmRSS:"), Some(96.0));
        assert_eq!(mebibytes(status, "VmHWM:"), Some(128.0));
        assert_eq!(mebibytes(status, "VmSwap:"), None);
    }
}
