//! Daemon: a process of the lab that outlives the call which started it, found again by its pid file.
//!
//! Promise: never signals a process that is not ours: a pid counts only together with the time at which it was started.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::run::{MARK, Run};

/// A process that was started once, and may be gone by now.
#[derive(Clone, Debug)]
pub struct Daemon {
    name: String,
    pids: PathBuf,
    log: PathBuf,
}

/// A process, beyond the reuse of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pid: i32,
    started: u64,
}

impl Daemon {
    /// The daemon of this name in a lab.
    pub fn of(run: Run, name: &str) -> Self {
        let dir = run.dir();
        Self {
            name: name.to_owned(),
            pids: dir.join("pids").join(name),
            log: dir.join("logs").join(format!("{name}.log")),
        }
    }

    /// Starts it; what it prints goes to its log. `of` is whose process it is: a machine's, or the control plane's.
    pub fn start(&self, run: Run, of: &str, mut command: Command) -> Result<()> {
        use std::os::unix::process::CommandExt;

        for file in [&self.pids, &self.log] {
            if let Some(dir) = file.parent() {
                fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            }
        }
        let log = File::options().create(true).append(true).open(&self.log)?;
        command.stdin(std::process::Stdio::null()).stdout(log.try_clone()?).stderr(log).env(MARK, run.mark(of));
        // A group of its own: Ctrl-C is for whoever started the lab, and ends it in order.
        let mut child = command.process_group(0).spawn().with_context(|| format!("cannot start {}", self.name))?;
        let process = Process::of(i32::try_from(child.id())?).context("it ended at once")?;
        fs::write(&self.pids, format!("{} {}", process.pid, process.started))?;
        // Somebody has to take note of its end, or it stays as a zombie for as long as we live.
        std::thread::spawn(move || child.wait());
        Ok(())
    }

    /// The process, if it is alive.
    pub fn process(&self) -> Option<Process> {
        let text = fs::read_to_string(&self.pids).ok()?;
        let (pid, started) = text.split_once(' ')?;
        let process = Process { pid: pid.parse().ok()?, started: started.trim().parse().ok()? };
        process.is_alive().then_some(process)
    }

    /// Ends it the hard way, and waits until it is gone.
    pub fn kill(&self) -> Result<()> {
        match self.process() {
            Some(process) => process.kill(),
            None => Ok(()),
        }
    }

    /// Asks it to end, and ends it the hard way if it does not.
    pub fn stop(&self, within: Duration) -> Result<()> {
        let Some(process) = self.process() else { return Ok(()) };
        process.signal(Signal::TERM);
        if process.gone_within(within) { Ok(()) } else { process.kill() }
    }

    /// Everything that it has said so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Why it is not alive, for people: the end of its log.
    pub fn last_words(&self) -> String {
        let text = self.said();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(8);
        format!("{} said last ({}):\n  {}", self.name, self.log.display(), lines[from..].join("\n  "))
    }
}

impl Process {
    /// The process of this number, as it is now.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold blanks and brackets; what follows its last bracket does not.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // Field 3 is the state, field 22 the time of its start.
        // Its first thread may be gone while others still hold its sockets.
        let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        if fields.first() == Some(&"Z") && threads() <= 1 {
            return None;
        }
        Some(Self { pid, started: fields.get(19)?.parse().ok()? })
    }

    /// Its number.
    pub fn pid(self) -> i32 {
        self.pid
    }

    /// Whether it is still the same, and no zombie.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Its children.
    pub fn children(self) -> Vec<Self> {
        let text = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid)).unwrap_or_default();
        text.split_whitespace().filter_map(|pid| Self::of(pid.parse().ok()?)).collect()
    }

    /// Sends a signal.
    pub fn signal(self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive()) {
            // Gone in between is as good.
            let _gone = kill_process(pid, signal);
        }
    }

    /// Ends it the hard way, and waits until it is gone.
    pub fn kill(self) -> Result<()> {
        self.signal(Signal::KILL);
        // The kernel takes a while to clear away a whole PID namespace where the cores are busy.
        if !self.gone_within(Duration::from_mins(1)) {
            bail!("process {} does not end, although it was killed", self.pid);
        }
        Ok(())
    }

    fn gone_within(self, within: Duration) -> bool {
        let begin = Instant::now();
        while self.is_alive() {
            if begin.elapsed() > within {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

/// Every living process that carries the mark of this lab, or of one machine of it.
pub fn marked(mark: &str) -> Vec<Process> {
    let wanted = format!("{MARK}={mark}");
    let carries = |pid: i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| {
            let entry = String::from_utf8_lossy(entry);
            entry == wanted || entry.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('/'))
        })
    };
    pids().into_iter().filter(|pid| carries(*pid)).filter_map(Process::of).collect()
}

/// Whether a process runs this program, or is this component of a program of many.
pub fn runs(process: Process, component: &str) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let program = words.first().and_then(|word| Path::new(&**word).file_name()).and_then(|name| name.to_str());
    program == Some(component) || program == Some("kubernetes") && words.get(1).is_some_and(|word| word == component)
}

fn pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
