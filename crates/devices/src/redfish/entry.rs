//! Redfish / entry: how we show a service who we are, and how we leave again.
//!
//! Promise: what is tried twice is a login or a question, never a command. A session is asked for only where it is wanted: by
//! the template, or by a service that turns us away and does not offer to take a password with a request.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde_json::json;
use tokio::time::timeout;

use super::session::{self, Account, Login, SESSIONS, Session, TOKEN};
use super::{Credentials, Redfish};
use crate::Failure;
use crate::transport::Response;

/// For a goodbye: what the service has said before must not be lost because it is slow to let us go.
const GOODBYE: Duration = Duration::from_secs(2);

/// What a request shows.
pub(super) enum Pass {
    /// Nothing: nobody has given us a name.
    Nothing,
    /// Name and password.
    Basic(HeaderValue),
    /// A session.
    Session(Session),
}

impl Pass {
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Nothing => None,
            Self::Basic(shown) => Some((AUTHORIZATION, shown.clone())),
            Self::Session(session) => Some((HeaderName::from_static(TOKEN), session.token()?.clone())),
        }
    }
}

impl Redfish {
    /// What the first request shows.
    pub(super) async fn enter(&self) -> Result<Pass, Failure> {
        if self.credentials.username.is_empty() {
            return Ok(Pass::Nothing);
        }
        let account = self.account();
        let by_session = match self.login {
            Login::BySession => true,
            Login::ByRequest => false,
            Login::AsOffered => self.sessions.wanted(&account),
        };
        if !by_session {
            return Ok(Pass::Basic(basic(&self.credentials)?));
        }
        match self.sessions.left_open(&account) {
            Some(session) => Ok(Pass::Session(session)),
            None => self.log_in(&account).await,
        }
    }

    /// What a question shows that was turned away, if there is another way in.
    pub(super) async fn other_way(&self, pass: &mut Pass, answer: &Response) -> Result<Option<Pass>, Failure> {
        match std::mem::replace(pass, Pass::Nothing) {
            // It has ended meanwhile.
            Pass::Session(session) if session.resumed => {
                session.gone();
                self.log_in(&self.account()).await.map(Some)
            }
            Pass::Basic(_) if self.login == Login::AsOffered && !session::offers_basic(answer) => {
                self.log_in(&self.account()).await.map(Some)
            }
            kept => {
                *pass = kept;
                Ok(None)
            }
        }
    }

    /// Closes the session, if there is one; if that cannot be done in time, the next call does it.
    pub(super) async fn leave(&self, pass: Pass) {
        let Pass::Session(session) = &pass else { return };
        let Some(place) = session.place() else { return };
        let Ok(request) = self.request(Method::DELETE, &place, None, &pass) else { return };
        // Who may not close it can at least use it again.
        let gone = |status: StatusCode| {
            status.is_success() || [StatusCode::UNAUTHORIZED, StatusCode::NOT_FOUND, StatusCode::GONE].contains(&status)
        };
        if let Ok(Ok(answer)) = timeout(GOODBYE, self.send(request)).await
            && gone(answer.status())
            && let Pass::Session(session) = pass
        {
            session.gone();
        }
    }

    async fn log_in(&self, account: &Account) -> Result<Pass, Failure> {
        let Credentials { username, password } = &self.credentials;
        let body = json!({ "UserName": username, "Password": password });
        let answer = self.send(self.request(Method::POST, SESSIONS, Some(&body), &Pass::Nothing)?).await?;
        match answer.status() {
            status if status.is_success() => Ok(Pass::Session(self.sessions.opened(account, &answer)?)),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                self.sessions.forget(account);
                Err(Failure::Refused(
                    "the service has no sessions; set `session` to 0, and let the user log in with each request (Basic)"
                        .to_owned(),
                ))
            }
            status => Err(self.failed(&answer, "logging in by a session", status)),
        }
    }

    fn account(&self) -> Account {
        (self.base.clone(), self.credentials.username.clone())
    }
}

/// The value of the Authorization header.
fn basic(credentials: &Credentials) -> Result<HeaderValue, Failure> {
    let Credentials { username, password } = credentials;
    let text = format!("Basic {}", STANDARD.encode(format!("{username}:{password}")));
    let shown = HeaderValue::from_str(&text);
    let mut shown = shown.map_err(|_| Failure::Refused("name and password fit into no header".to_owned()))?;
    shown.set_sensitive(true);
    Ok(shown)
}
