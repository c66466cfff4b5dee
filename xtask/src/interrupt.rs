//! Ctrl-C, and its relatives, end what we started and still leave a table.
//!
//! Each command leads a process group of its own, so that one signal reaches cargo, its compilers and
//! the tests. The price: the terminal no longer sends Ctrl-C to them, hence we do it.

use std::{
    process::Child,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::clock::pause;

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// How long a group may take to end by itself before it is ended.
const GRACE: Duration = Duration::from_secs(2);

/// From now on a request to stop is noted rather than obeyed at once.
pub(crate) fn listen() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ASKED)).context("cannot listen for Ctrl-C")?;
    }
    Ok(())
}

/// Whether somebody asked us to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Ends a child that leads its own group, with everything in that group.
///
/// Expects: the child has not been waited for, so that its process id cannot belong to anybody else.
pub(crate) fn end_group(child: &mut Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    // An error here means that the group is gone already, which is what we want.
    let _gone = kill_process_group(group, Signal::TERM);
    pause(GRACE);
    let _gone = kill_process_group(group, Signal::KILL);
    let _status = child.wait();
}
