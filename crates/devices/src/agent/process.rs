//! Agent / process: one run of an agent, and the end of everything that it started.
//!
//! Promise: nothing of a run outlives it: at its deadline, at its own end and when nobody waits for it any more, the whole process
//! group is killed. A child that an agent leaves behind (`ipmitool`, after a timeout) cannot switch anything later.
//! Promise: a run ends in time, whatever the agent does: reads nothing, writes without end, closes its streams, or leaves them to
//! somebody who has gone out of the group.
//! Never: a second run, or a run under another name.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::program::Program;
use super::secret::Secret;
use super::words::{End, Heard};

/// The pause between two looks whether it has ended.
const BETWEEN: Duration = Duration::from_millis(10);

/// How long the streams are read on after the end. Whoever still has them open is out of the group.
const DRAIN: Duration = Duration::from_millis(500);

/// How long the kernel may take to end what was killed.
const DYING: Duration = Duration::from_secs(2);

/// Runs it once: `input` is what it reads, and `most` is what is kept of each stream, in bytes.
pub(super) async fn run(program: &Program, input: &Secret, until: Instant, most: usize) -> io::Result<Heard> {
    let mut child = program.command().spawn()?;
    let group = Group::of(&child)?;
    let (stdout, stderr) = (Kept::default(), Kept::default());
    let mut readers = JoinSet::new();
    if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
        readers.spawn(keep(out, stdout.clone(), most));
        readers.spawn(keep(err, stderr.clone(), most));
    }
    let stdin = child.stdin.take();
    let (end, deaf) = told(&group, stdin, input, until).await;
    group.kill();
    // It is not taken off the kernel's list before its group is killed: so long, its number belongs to nobody else.
    let reaped = timeout(DYING, child.wait()).await;
    drop(timeout(DRAIN, async { while readers.join_next().await.is_some() {} }).await);
    readers.abort_all();
    group.over();
    let end = if reaped.is_ok() { end } else { End::Deadline };
    let ((stdout, cut_out), (stderr, cut_err)) = (stdout.take(), stderr.take());
    Ok(Heard { end, stdout, stderr, cut: cut_out || cut_err, deaf })
}

/// Tells it everything, and waits for its end. Says, too, whether it did not listen.
async fn told(group: &Group, stdin: Option<ChildStdin>, input: &Secret, until: Instant) -> (End, bool) {
    let mut tell = pin!(async {
        let Some(mut stdin) = stdin else { return true };
        stdin.write_all(input.value().as_bytes()).await.is_err() || stdin.shutdown().await.is_err()
    });
    let mut ended = pin!(group.ended());
    let both = async {
        tokio::select! {
            deaf = &mut tell => (ended.await, deaf),
            end = &mut ended => (end, true),
        }
    };
    timeout_at(until, both).await.unwrap_or((End::Deadline, false))
}

/// The process group of an agent. It is killed when nobody holds it any more.
struct Group(Pid);

impl Group {
    fn of(child: &Child) -> io::Result<Self> {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        id.map(Self).ok_or_else(|| io::Error::other("it ended before it began"))
    }

    fn kill(&self) {
        // An empty group is what is wanted.
        let _gone = kill_process_group(self.0, Signal::KILL);
    }

    /// Its number may belong to somebody else from now on.
    fn over(self) {
        std::mem::forget(self);
    }

    /// Waits for the end of the agent itself, and leaves it on the kernel's list.
    async fn ended(&self) -> End {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        loop {
            match waitid(WaitId::Pid(self.0), options) {
                Ok(Some(status)) => return end(status.exit_status(), status.terminating_signal()),
                Ok(None) => sleep(BETWEEN).await,
                // Somebody else has waited for it: nobody knows how it ended.
                Err(_) => return End::Lost,
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn end(code: Option<i32>, signal: Option<i32>) -> End {
    match (code, signal) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Lost,
    }
}

/// What was kept of a stream, and whether there was more.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<(Vec<u8>, bool)>>);

impl Kept {
    fn add(&self, bytes: &[u8], most: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = most.saturating_sub(kept.0.len()).min(bytes.len());
        kept.0.extend_from_slice(&bytes[..room]);
        kept.1 |= room < bytes.len();
    }

    fn take(&self) -> (String, bool) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (String::from_utf8_lossy(&kept.0).into_owned(), kept.1)
    }
}

/// Reads a stream to its end, and keeps its beginning.
async fn keep(mut stream: impl AsyncRead + Unpin, kept: Kept, most: usize) {
    let mut buffer = vec![0; 4096];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            return;
        }
        kept.add(&buffer[..read], most);
    }
}
