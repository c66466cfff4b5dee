//! Runs one command: its output is seen live, its tests are counted, its time is measured and limited.
//!
//! A command never reads from us (no stdin), leads its own process group, and ends with us (`interrupt`).

use std::{
    env,
    ffi::OsStr,
    io::{Read, Write, stdout},
    os::unix::process::CommandExt,
    process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::{
    clock::{now, pause},
    counts::{Counter, Tally},
    interrupt,
    workspace::Workspace,
};

/// Far above any step that works; below CI's own limit, so that a step that hangs still ends in a table.
const LIMIT: Duration = Duration::from_mins(40);
const POLL: Duration = Duration::from_millis(50);
/// How long output may stay open after its command has ended.
const DRAIN: Duration = Duration::from_secs(10);

/// A command that is about to run.
pub(crate) struct Call {
    command: Command,
    limit: Duration,
}

/// A command that has run.
pub(crate) struct Ran {
    pub(crate) end: End,
    pub(crate) tally: Tally,
    pub(crate) took: Duration,
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Good,
    /// It said no, by its exit code or by dying of a signal.
    Bad(String),
    OutOfTime(Duration),
    /// It ended, but something that it started did not.
    LeftOpen,
    Interrupted,
}

impl Call {
    pub(crate) fn new(workspace: &Workspace, program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.current_dir(&workspace.root).stdin(Stdio::null()).process_group(0);
        // What cargo told *us* about our own package would make its build scripts run again for others.
        for (name, _) in env::vars_os() {
            if is_ours(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        Self { command, limit: LIMIT }
    }

    pub(crate) fn cargo(workspace: &Workspace, args: &[&str]) -> Self {
        Self::new(workspace, Workspace::cargo()).args(args)
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end. Only stdout passes through us: cargo keeps its progress bar on stderr.
    pub(crate) fn stream(self) -> Result<Ran> {
        self.stream_to(stdout())
    }

    fn stream_to(mut self, out: impl Write + Send + 'static) -> Result<Ran> {
        let started = now();
        let name = self.command.get_program().to_string_lossy().into_owned();
        let mut child = self.command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {name}"))?;
        let counted = forward(child.stdout.take().context("stdout was not piped")?, out);
        let end = wait(&mut child, started, self.limit)?;
        let took = started.elapsed();
        Ok(match counted.recv_timeout(DRAIN) {
            Ok(tally) => Ran { end, tally, took },
            Err(_) if end == End::Good => Ran { end: End::LeftOpen, tally: Tally::default(), took },
            Err(_) => Ran { end, tally: Tally::default(), took },
        })
    }

    /// Runs it without showing anything and says whether it succeeded: for "is this tool there?".
    pub(crate) fn succeeds(mut self) -> bool {
        let quiet = self.command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }

    /// What it prints, for a command that is over at once.
    pub(crate) fn output(mut self) -> Result<String> {
        let name = self.command.get_program().to_string_lossy().into_owned();
        let output = self.command.output().with_context(|| format!("cannot start {name}"))?;
        anyhow::ensure!(output.status.success(), "{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl End {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Good => ExitCode::SUCCESS,
            Self::Interrupted => ExitCode::from(INTERRUPTED),
            Self::Bad(_) | Self::OutOfTime(_) | Self::LeftOpen => ExitCode::FAILURE,
        }
    }

    /// Why this was no success; `None` if it was one.
    pub(crate) fn complaint(&self) -> Option<String> {
        match self {
            Self::Good => None,
            Self::Bad(how) => Some(how.clone()),
            Self::OutOfTime(limit) => Some(format!("not done after {} s, ended", limit.as_secs())),
            Self::LeftOpen => Some("left a process behind that keeps its output open".into()),
            Self::Interrupted => Some("interrupted".into()),
        }
    }
}

/// What a shell reports for a command that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

fn is_ours(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// Passes output on as it comes, counting along; the tally arrives when the output ends.
fn forward(mut output: ChildStdout, mut out: impl Write + Send + 'static) -> Receiver<Tally> {
    let (done, counted) = channel();
    thread::spawn(move || {
        let mut counter = Counter::default();
        let mut piece = [0; 8192];
        while let Ok(length @ 1..) = output.read(&mut piece) {
            counter.feed(&piece[..length]);
            // If nobody listens any more (a closed pager), the tests still run and still count.
            let _shown = out.write_all(&piece[..length]).and_then(|()| out.flush());
        }
        let _listened = done.send(counter.finish());
    });
    counted
}

fn wait(child: &mut Child, started: Instant, limit: Duration) -> Result<End> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a command")? {
            return Ok(if interrupt::asked() { End::Interrupted } else { judge(status) });
        }
        if interrupt::asked() {
            interrupt::end_group(child);
            return Ok(End::Interrupted);
        }
        if started.elapsed() > limit {
            interrupt::end_group(child);
            return Ok(End::OutOfTime(limit));
        }
        pause(POLL);
    }
}

fn judge(status: ExitStatus) -> End {
    if status.success() { End::Good } else { End::Bad(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use std::io::sink;

    use super::*;

    fn here() -> Workspace {
        Workspace { root: env::temp_dir(), ci: false }
    }

    fn shell(script: &str) -> Call {
        Call::new(&here(), "sh").args(["-c", script])
    }

    /// Unseen: a closing line on our real stdout would be counted by the xtask that runs this test.
    fn run(call: Call) -> Result<Ran> {
        call.stream_to(sink())
    }

    #[test]
    fn tests_are_counted_and_the_exit_code_is_kept() {
        let call = shell("echo 'test result: ok. 3 passed; 0 failed; 1 ignored'; exit 7");
        let ran = run(call).unwrap();
        assert_eq!(ran.tally, Tally { passed: 3, failed: 0, skipped: 1 });
        assert_eq!(ran.end, End::Bad("exit status: 7".into()));
    }

    #[test]
    fn a_command_that_hangs_ends_with_all_that_it_started() {
        // Both sleeps hold the output open. Had one of them lived on, the wait for its end would show.
        let limit = Duration::from_millis(200);
        let started = now();
        let ran = run(shell("sleep 600 & sleep 600").within(limit)).unwrap();
        assert_eq!(ran.end, End::OutOfTime(limit));
        assert!(started.elapsed() < DRAIN);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(Call::new(&here(), "no-such-program")).err().unwrap();
        assert_eq!(error.to_string(), "cannot start no-such-program");
    }

    #[test]
    fn only_variables_about_ourselves_are_taken_away() {
        assert!(is_ours("CARGO_PKG_NAME"));
        assert!(is_ours("CARGO_MANIFEST_DIR"));
        assert!(!is_ours("CARGO_HOME"));
        assert!(!is_ours("CARGO_TARGET_DIR"));
    }
}
