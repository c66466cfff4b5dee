//! Beside: what the operator does while its loop goes on: requests, devices, witnesses.
//!
//! Promise: all of it is part of the one future that [`run`](crate::run) is. Whoever drops that future ends the process at the
//! very await where each thing stands, and whoever does not poll it stops all of it: nothing of an operator outlives it.

use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

/// What is under way.
#[derive(Default)]
pub(crate) struct Beside {
    under_way: FuturesUnordered<BoxFuture<'static, ()>>,
}

impl Beside {
    /// Begins something. It is first polled when the loop waits.
    pub(crate) fn start(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.under_way.push(Box::pin(work));
    }

    /// Carries on with everything until something has ended, and then takes along whatever else has ended by then: a thousand
    /// answers of one moment are one turn. For ever, if there is nothing.
    pub(crate) async fn go_on(&mut self) {
        if self.under_way.next().await.is_none() {
            std::future::pending::<()>().await;
        }
        while let Some(Some(())) = self.under_way.next().now_or_never() {}
    }

    /// Lets everything end that does so in time; the rest is dropped.
    pub(crate) async fn finish(mut self, within: Duration) {
        let all = async { while self.under_way.next().await.is_some() {} };
        if tokio::time::timeout(within, all).await.is_err() {
            tracing::info!("not everything ended in time; whoever leads next looks at it anew");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_ends_together_is_one_step() {
        let mut beside = Beside::default();
        for seconds in [1, 1, 1, 2] {
            beside.start(tokio::time::sleep(Duration::from_secs(seconds)));
        }
        beside.go_on().await;
        assert_eq!(beside.under_way.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_in_time_is_waited_for_and_the_rest_is_dropped() {
        let (ended, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut beside = Beside::default();
        for seconds in [1, 3, 60] {
            let ended = ended.clone();
            beside.start(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                let _ = ended.send(seconds);
            });
        }
        beside.go_on().await;
        assert_eq!(told.try_recv(), Ok(1));
        beside.finish(Duration::from_secs(5)).await;
        drop(ended);
        assert_eq!(told.recv().await, Some(3));
        assert_eq!(told.recv().await, None, "the last one was dropped, and its sender with it");
    }
}
