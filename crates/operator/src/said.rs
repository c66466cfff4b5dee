//! Said: what goes wrong again and again is said once, and again when it goes wrong in another way or is over; and in as many
//! words as it takes.

use std::error::Error;

use kube::core::Status;

/// What was said last.
#[derive(Debug, Default)]
pub(crate) struct Said(Option<String>);

impl Said {
    /// Whether this has not been said yet.
    pub(crate) fn is_news(&mut self, why: &str) -> bool {
        let new = self.0.as_deref() != Some(why);
        if new {
            self.0 = Some(why.to_owned());
        }
        new
    }

    /// It goes well; whether something else was said before.
    pub(crate) fn is_over(&mut self) -> bool {
        self.0.take().is_some()
    }
}

/// What went wrong, for a log: of an API server's refusal its own sentence, and not all of its fields twice; of anything else
/// also the cause at the bottom, which is what tells something.
pub(crate) fn brief(why: &(dyn Error + 'static)) -> String {
    refusal(why).unwrap_or_else(|| {
        let (text, mut last) = (why.to_string(), why);
        while let Some(inner) = last.source() {
            last = inner;
        }
        let bottom = last.to_string();
        if text.contains(&bottom) { text } else { format!("{text}: {bottom}") }
    })
}

/// What is said once: each refusal of its own, and that the API server is not there, however that shows from one try to the next:
/// one that has just come back refuses this and that before it is itself again. Nothing, where `forbidden` speaks.
pub(crate) fn theme(why: &(dyn Error + 'static)) -> Option<String> {
    match status(why) {
        Some(status) if status.code == 403 => None,
        Some(status) if status.code == 429 || status.code >= 500 => Some(AWAY.to_owned()),
        Some(status) => Some(status.message.clone()),
        None => Some(AWAY.to_owned()),
    }
}

/// The API server is not there, or not itself.
pub(crate) const AWAY: &str = "away";

fn refusal(why: &(dyn Error + 'static)) -> Option<String> {
    status(why).map(|status| format!("{} ({})", status.message, status.code))
}

/// What an API server said, if it is that.
fn status<'a>(why: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    let mut cause = Some(why);
    while let Some(inner) = cause {
        if let Some(kube::Error::Api(status)) = inner.downcast_ref::<kube::Error>() {
            return Some(status);
        }
        cause = inner.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16) -> kube::Error {
        let status = serde_json::json!({ "code": code, "message": "you may not" });
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn a_refusal_is_told_in_one_sentence() {
        assert_eq!(brief(&refused(403)), "you may not (403)");
        assert_eq!(brief(&kube::runtime::watcher::Error::InitialListFailed(refused(422))), "you may not (422)");
        assert_eq!(brief(&std::io::Error::other("broken")), "broken");
    }

    #[test]
    fn an_api_server_that_is_away_or_just_back_is_one_theme() {
        let broken = std::io::Error::other("broken");
        for why in [theme(&broken), theme(&refused(429)), theme(&refused(503))] {
            assert_eq!(why.as_deref(), Some(AWAY));
        }
        assert_eq!(theme(&refused(404)).as_deref(), Some("you may not"));
        assert_eq!(theme(&refused(403)), None);
    }

    #[test]
    fn the_same_is_said_once_and_the_end_of_it_once() {
        let mut said = Said::default();
        assert!(!said.is_over());
        assert!(said.is_news("refused"));
        assert!(!said.is_news("refused"));
        assert!(said.is_news("timed out"));
        assert!(said.is_over());
        assert!(!said.is_over());
        assert!(said.is_news("timed out"));
    }
}
