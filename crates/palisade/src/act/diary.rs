//! Act / diary: what has been done so far, so that an end in the middle still leaves a report.

use std::sync::{Arc, Mutex, PoisonError};

use palisade_devices::act::{Look, Report, Shown, Verdict};
use tokio::time::Instant;

/// What has been done so far.
#[derive(Clone)]
pub(super) struct Diary {
    start: Instant,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    sent: Option<String>,
    looks: Vec<Look>,
}

impl Diary {
    pub(super) fn starting_now() -> Self {
        Self { start: Instant::now(), entries: Arc::default() }
    }

    /// Milliseconds since the start.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The agent is about to be told this.
    pub(super) fn sends(&self, word: &str) {
        self.entries().sent = Some(word.to_owned());
    }

    /// The device was looked at.
    pub(super) fn looked(&self, began_ms: u64, state: Shown) -> Look {
        let look = Look { began_ms, ended_ms: self.now(), state };
        self.entries().looks.push(look);
        look
    }

    /// What becomes of it.
    pub(super) fn report(&self, verdict: Verdict, said: String) -> Report {
        let entries = self.entries();
        // What was refused did not reach the device, whatever the agent was told.
        let sent = entries.sent.clone().filter(|_| verdict != Verdict::Refused);
        Report { sent, looks: entries.looks.clone(), took_ms: self.now(), ..Report::new(verdict, said) }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_what_was_done_and_seen_until_then() {
        let diary = Diary::starting_now();
        diary.sends("off");
        let look = diary.looked(diary.now(), Shown::On);
        let report = diary.report(Verdict::Unknown, "ended".to_owned());
        assert_eq!((report.sent.as_deref(), report.looks), (Some("off"), vec![look]));
        assert_eq!(diary.report(Verdict::Refused, String::new()).sent, None);
    }
}
