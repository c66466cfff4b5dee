//! Real time: to tell people how long a command took, and to end one that hangs.
//!
//! The rest of the workspace takes time as an argument (clippy.toml); xtask runs real commands.

use std::{
    thread,
    time::{Duration, Instant},
};

#[expect(clippy::disallowed_methods, reason = "xtask measures real commands; no decision of the product depends on it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "xtask has nothing else to do while a command runs")]
pub(crate) fn pause(length: Duration) {
    thread::sleep(length);
}
