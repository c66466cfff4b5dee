//! Redfish / session: a login that lasts, for services that take no password with a request.
//!
//! Promise: a service has few sessions, so each is closed when its call is over. One that could not be closed, because the
//! service was too slow or the call was given up, is used by the next call to that service, and closed then.
//! Never: shows a token; tries a password twice where the service says that it takes it with a request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{LOCATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Uri};
use serde_json::Value;

use crate::Failure;
use crate::transport::Response;

/// The collection of sessions: who makes one there has logged in.
pub(super) const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// The header of a token.
pub(super) const TOKEN: &str = "x-auth-token";

/// Whether we log in by sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Login {
    /// With each request, and by a session at a service that does not offer that. A request leaves nothing behind.
    #[default]
    AsOffered,
    /// Always by a session.
    BySession,
    /// Never by one.
    ByRequest,
}

impl Login {
    /// As a template names it, in the parameter `session`.
    pub fn of(word: &str) -> Result<Self, Failure> {
        match word.trim().to_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(Self::BySession),
            "0" | "false" | "no" | "off" => Ok(Self::ByRequest),
            other => Err(Failure::Refused(format!(
                "`session` is {other:?}; it is 1 (always log in by a session) or 0 (never); left out, the service decides"
            ))),
        }
    }
}

/// The services that are known to want sessions, and the sessions that are still open there: one for all drivers of a process.
#[derive(Default)]
pub struct Sessions(Mutex<BTreeMap<Account, Vec<Open>>>);

/// A service, and a user of it.
pub(super) type Account = (String, String);

/// A session that is open.
struct Open {
    token: HeaderValue,
    /// Where it is closed.
    at: Option<String>,
}

impl Sessions {
    /// Whether this service is known to want sessions.
    pub(super) fn wanted(&self, account: &Account) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(account)
    }

    /// A session that nobody closed.
    pub(super) fn left_open(self: &Arc<Self>, account: &Account) -> Option<Session> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = known.get_mut(account)?.pop()?;
        Some(Session { open: Some(open), account: account.clone(), home: Arc::clone(self), resumed: true })
    }

    /// The session that the service has just made.
    pub(super) fn opened(self: &Arc<Self>, account: &Account, answer: &Response) -> Result<Session, Failure> {
        let Some(token) = answer.headers().get(TOKEN) else {
            return Err(Failure::Unknown("the service made a session and gave no X-Auth-Token".to_owned()));
        };
        let mut token = token.clone();
        token.set_sensitive(true);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(account.clone()).or_default();
        let open = Open { token, at: place(answer) };
        Ok(Session { open: Some(open), account: account.clone(), home: Arc::clone(self), resumed: false })
    }

    /// The service has no sessions after all.
    pub(super) fn forget(&self, account: &Account) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(account);
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions(***)")
    }
}

/// A session in use. Dropped before it was closed, it is kept for the next call.
pub(super) struct Session {
    open: Option<Open>,
    account: Account,
    home: Arc<Sessions>,
    /// Whether it is of an earlier call, and may have ended meanwhile.
    pub(super) resumed: bool,
}

impl Session {
    pub(super) fn token(&self) -> Option<&HeaderValue> {
        self.open.as_ref().map(|open| &open.token)
    }

    /// Where it is closed.
    pub(super) fn place(&self) -> Option<String> {
        self.open.as_ref().and_then(|open| open.at.clone())
    }

    /// The service has closed it, or does not know it any more.
    pub(super) fn gone(mut self) {
        self.open = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // One that cannot be closed is of no use to anybody.
        if let Some(open) = self.open.take().filter(|open| open.at.is_some()) {
            let mut known = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(self.account.clone()).or_default().push(open);
        }
    }
}

/// Where a new session is: of whatever address the service gives only the path counts, so nobody can send our token elsewhere.
fn place(answer: &Response) -> Option<String> {
    let header = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or(Value::Null);
    let said = header.or_else(|| body.get("@odata.id").and_then(Value::as_str))?;
    let path = said.parse::<Uri>().ok()?.path().to_owned();
    path.starts_with("/redfish/").then_some(path)
}

/// Whether the service would take a password with a request: then a wrong one is wrong, and not tried in another way.
pub(super) fn offers_basic(answer: &Response) -> bool {
    let offers = answer.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|offer| offer.to_str().ok());
    offers.flat_map(|offer| offer.split(',')).any(|offer| {
        let scheme = offer.split_whitespace().next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("basic")
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn answer(headers: &[(&str, &str)], body: &'static str) -> Response {
        let start = http::Response::builder().status(201);
        let built = headers.iter().fold(start, |built, (name, value)| built.header(*name, *value));
        built.body(Bytes::from_static(body.as_bytes())).unwrap()
    }

    fn account() -> Account {
        ("https://bmc".to_owned(), "fence".to_owned())
    }

    #[test]
    fn a_session_that_was_not_closed_is_there_for_the_next_call() {
        let sessions = Arc::new(Sessions::default());
        assert!(!sessions.wanted(&account()));
        let made = answer(&[("X-Auth-Token", "t1"), ("Location", "/redfish/v1/SessionService/Sessions/1")], "");
        drop(sessions.opened(&account(), &made).unwrap());
        assert!(sessions.wanted(&account()));
        let left = sessions.left_open(&account()).unwrap();
        assert_eq!((left.token().unwrap().to_str().unwrap(), left.resumed), ("t1", true));
        assert!(sessions.left_open(&account()).is_none(), "it is in use");
        left.gone();
        assert!(sessions.left_open(&account()).is_none(), "it was closed");
        assert!(sessions.wanted(&account()), "the next login is by a session, too");
    }

    #[test]
    fn a_session_is_closed_at_the_service_itself_wherever_it_points() {
        let there = Some("/redfish/v1/SessionService/Sessions/7".to_owned());
        let path = "/redfish/v1/SessionService/Sessions/7";
        assert_eq!(place(&answer(&[("Location", path)], "")), there);
        assert_eq!(
            place(&answer(&[("Location", "https://elsewhere.example/redfish/v1/SessionService/Sessions/7")], "")),
            there
        );
        assert_eq!(place(&answer(&[], r#"{"@odata.id":"/redfish/v1/SessionService/Sessions/7"}"#)), there);
        assert_eq!(place(&answer(&[("Location", "/reboot")], "")), None);
        assert_eq!(place(&answer(&[], "")), None);
    }

    #[test]
    fn a_token_is_not_shown() {
        let sessions = Arc::new(Sessions::default());
        let made = answer(&[("X-Auth-Token", "t0ken"), ("Location", "/redfish/v1/SessionService/Sessions/1")], "");
        let session = sessions.opened(&account(), &made).unwrap();
        assert!(!format!("{:?} {sessions:?}", session.token()).contains("t0ken"));
        assert!(matches!(sessions.opened(&account(), &answer(&[], "")), Err(Failure::Unknown(_))));
    }

    #[test]
    fn what_a_service_offers_is_read_as_http_has_it() {
        assert!(offers_basic(&answer(&[("WWW-Authenticate", "Basic realm=\"iDRAC\"")], "")));
        assert!(offers_basic(&answer(&[("WWW-Authenticate", "X-Auth-Token, basic")], "")));
        assert!(!offers_basic(&answer(&[("WWW-Authenticate", "X-Auth-Token realm=\"Basic\"")], "")));
        assert!(!offers_basic(&answer(&[], "")));
    }

    #[test]
    fn a_word_that_is_neither_yes_nor_no_is_refused() {
        assert_eq!(Login::of(" Yes "), Ok(Login::BySession));
        assert_eq!(Login::of("0"), Ok(Login::ByRequest));
        assert!(Login::of("maybe").is_err());
    }
}
