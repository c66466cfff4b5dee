//! Act / report: what became of an order, small enough for a termination message.
//!
//! Promise (I6): only [`Verdict::Taken`] says that the device took the command, and nothing in a report says that it worked: what
//! counts is what is looked at afterwards. A text that is no report is none, whatever the exit code was.
//! Promise: a report always fits. Words are cut before looks are, and of the looks the newest stay.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::order::FORM;
use crate::PowerState;

/// The most that a kubelet keeps of a termination message, in bytes.
pub const MOST: usize = 4096;

/// The words of an agent that are kept, in characters, before they are cut further to fit.
const WORDS: usize = 1200;

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Report {
    /// The form that this is written in.
    pub form: u32,
    /// What became of it.
    pub verdict: Verdict,
    /// What the agent was told, if it was told to change anything: `off` or `on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// What happened, for people: redacted, cut short.
    pub said: String,
    /// What the device said when it was looked at, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Look>,
    /// How long all of it took, in milliseconds.
    pub took_ms: u64,
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The agent says that it was done; or, where there was only to look, it was looked at.
    Taken,
    /// Nothing was sent.
    Refused,
    /// Something may have been done, and nobody knows what.
    Unknown,
}

/// One look at the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Look {
    /// When it began, in milliseconds since the pod's start, by the pod's own clock that never goes back.
    pub began_ms: u64,
    /// When its answer was there.
    pub ended_ms: u64,
    /// What it showed.
    pub state: Shown,
}

/// What a look showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Off.
    Off,
    /// On.
    On,
    /// Anything else, or nothing.
    Unknown,
}

impl From<&PowerState> for Shown {
    fn from(state: &PowerState) -> Self {
        match state {
            PowerState::Off => Self::Off,
            PowerState::On => Self::On,
            PowerState::Unclear(_) => Self::Unknown,
        }
    }
}

/// A text that is no report.
#[derive(Debug, Error)]
pub enum BadReport {
    /// There is none: the pod was killed, or ended before it could say anything.
    #[error("the pod left no report")]
    Empty,
    /// It is something else.
    #[error("what the pod left is no report: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// It was written by another version.
    #[error(
        "the report has form {0}, and this version knows form {FORM} only; let operator and pod run the same image"
    )]
    Form(u32),
}

impl Report {
    /// A report that nothing more is known of.
    pub fn new(verdict: Verdict, said: impl Into<String>) -> Self {
        Self { form: FORM, verdict, sent: None, said: said.into(), looks: Vec::new(), took_ms: 0 }
    }

    /// The report in a text.
    pub fn read(text: &str) -> Result<Self, BadReport> {
        if text.trim().is_empty() {
            return Err(BadReport::Empty);
        }
        let report: Self = serde_json::from_str(text).map_err(BadReport::Unreadable)?;
        if report.form == FORM { Ok(report) } else { Err(BadReport::Form(report.form)) }
    }

    /// The text of the report, which fits into a termination message.
    pub fn text(&self) -> String {
        let mut report = self.clone();
        report.said = cut(&report.said, WORDS);
        loop {
            // Numbers and texts: there is nothing in it that JSON could not say.
            let text = serde_json::to_string(&report).unwrap_or_default();
            if text.len() <= MOST {
                return text;
            }
            let words = report.said.chars().count();
            if words > 100 {
                report.said = cut(&report.said, words / 2);
            } else if report.looks.is_empty() {
                report.said.clear();
                report.sent = report.sent.filter(|sent| sent.len() < 16);
            } else {
                let first = report.looks.len().div_ceil(2);
                report.looks.drain(..first);
            }
        }
    }
}

fn cut(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.to_owned();
    }
    words.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at: u64) -> Look {
        Look { began_ms: at, ended_ms: at + 120, state: Shown::Off }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = Report {
            sent: Some("off".to_owned()),
            looks: vec![look(0), look(700)],
            took_ms: 2_300,
            ..Report::new(Verdict::Taken, "Success: Powered OFF")
        };
        assert_eq!(Report::read(&report.text()).unwrap(), report);
    }

    #[test]
    fn a_report_always_fits_and_keeps_what_was_seen_last() {
        let looks: Vec<Look> = (0..500).map(|at| look(at * 700)).collect();
        let report = Report { looks, ..Report::new(Verdict::Unknown, "\u{1f480}\"\n".repeat(5_000)) };
        let text = report.text();
        assert!(text.len() <= MOST, "{}", text.len());
        let read = Report::read(&text).unwrap();
        assert_eq!((read.verdict, read.looks.last()), (Verdict::Unknown, report.looks.last()));
    }

    #[test]
    fn what_is_no_report_is_none() {
        assert!(matches!(Report::read(" \n"), Err(BadReport::Empty)));
        for text in ["Success: Powered OFF", "{}", "{\"verdict\":\"taken\"}"] {
            assert!(matches!(Report::read(text), Err(BadReport::Unreadable(_))), "{text}");
        }
        let later = Report { form: 2, ..Report::new(Verdict::Taken, "") };
        assert!(matches!(Report::read(&later.text()), Err(BadReport::Form(2))));
    }
}
