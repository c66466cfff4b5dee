//! Embedded / process: an operator as a process, which can be stopped where it stands and go on later (SIGSTOP, a frozen
//! virtual machine, a page that is swapped in for a minute), and whose wall clock can be set.
//!
//! What it had sent before it stopped arrives; what it was about to send is sent when it goes on, however late that is.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The strings that a process hangs on.
#[derive(Clone, Default)]
pub(super) struct Strings {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    stopped: bool,
    waker: Option<Waker>,
    skew: SignedDuration,
}

impl Strings {
    /// Stops the process.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
    }

    /// Lets it go on.
    pub(super) fn go_on(&self) {
        let mut state = self.lock();
        state.stopped = false;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Sets its wall clock so much ahead, or behind.
    pub(super) fn set_clock(&self, ahead: SignedDuration) {
        self.lock().skew = ahead;
    }

    /// What its wall clock shows.
    pub(super) fn wall(&self, true_time: Timestamp) -> Timestamp {
        true_time.checked_add(self.lock().skew).unwrap_or(true_time)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process.
pub(super) struct Process {
    body: Pin<Box<dyn Future<Output = ()> + Send>>,
    strings: Strings,
}

impl Process {
    pub(super) fn new(body: impl Future<Output = ()> + Send + 'static, strings: Strings) -> Self {
        Self { body: Box::pin(body), strings }
    }
}

impl Future for Process {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut state = self.strings.lock();
            if state.stopped {
                state.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
        self.body.as_mut().poll(context)
    }
}

/// How far a wall clock is off, from seconds.
pub(super) fn ahead(by: Duration, backwards: bool) -> SignedDuration {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::ZERO);
    if backwards { -by } else { by }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stopped_process_does_nothing_until_it_goes_on() {
        let strings = Strings::default();
        let (done, mut told) = tokio::sync::mpsc::unbounded_channel();
        let body = async move {
            for step in 0..3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let _ = done.send(step);
            }
        };
        let task = tokio::spawn(Process::new(body, strings.clone()));
        tokio::time::sleep(Duration::from_millis(1500)).await;
        strings.stop();
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!((told.try_recv().ok(), told.try_recv().ok()), (Some(0), None));
        strings.go_on();
        task.await.expect("it ends");
        assert_eq!((told.try_recv().ok(), told.try_recv().ok()), (Some(1), Some(2)));
    }
}
