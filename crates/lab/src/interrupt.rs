//! Interrupt: somebody wants it to end. Whoever waits for this takes his labs down first.

use tokio::signal::unix::{SignalKind, signal};

/// Returns when somebody has pressed Ctrl-C, or has asked the process to end.
pub async fn asked() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}
