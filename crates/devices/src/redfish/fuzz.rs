//! Redfish / fuzz: answers of strangers, as they come in at each place. See [`crate::fuzz`].
#![expect(clippy::missing_panics_doc, reason = "a panic is what a fuzzer looks for")]

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION, WWW_AUTHENTICATE};
use serde_json::Value;

use super::session::{self, Sessions, TOKEN};
use super::system::{self, System};
use super::{message, refused_or_unknown};
use crate::transport::Response;
use crate::{Command, PowerState};

/// A plug in the first line, and behind it a list of systems, or one of them.
pub fn redfish_system(bytes: &[u8]) {
    let (plug, body) = first_line(bytes);
    if let Ok(plug) = std::str::from_utf8(plug)
        && let Ok(Some(path)) = system::path(plug)
    {
        assert!(path.starts_with('/') && !path.contains("/../") && !path.contains("//"), "{path}");
        assert!(path.parse::<http::Uri>().is_ok_and(|uri| uri.path() == path && uri.query().is_none()), "{path}");
    }
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return };
    let _ = System::only_one(&value);
    if let Ok(system) = System::read(&value, "/s") {
        let said = value.get("PowerState").and_then(Value::as_str);
        assert_eq!(system.power == PowerState::Off, said == Some("Off"));
        assert!(system.identity.uuid.is_none_or(|uuid| !uuid.trim().is_empty()));
        let system = System::read(&value, "/s");
        let _ = system.map(|system| system.reset(Command::Off).map(|(target, word)| (target.to_owned(), word)));
    }
}

/// A refusal.
pub fn redfish_message(bytes: &[u8]) {
    for status in [301, 400, 401, 403, 404, 408, 409, 429, 500, 503] {
        let Ok(status) = StatusCode::from_u16(status) else { continue };
        let mut answer = answer(status, bytes);
        if let Ok(to) = HeaderValue::from_bytes(bytes) {
            answer.headers_mut().insert(LOCATION, to);
        }
        let told = refused_or_unknown(status, &message::why(&answer, "GET /x")).to_string();
        assert!(told.chars().count() < 600, "{} characters would go into an event", told.chars().count());
        let _ = message::nothing_to_do(&answer);
    }
}

/// An address in the first line, a token in the second, and the body.
pub fn redfish_session(bytes: &[u8]) {
    let (place, rest) = first_line(bytes);
    let (token, body) = first_line(rest);
    let mut answer = answer(StatusCode::CREATED, body);
    if let Ok(place) = HeaderValue::from_bytes(place) {
        answer.headers_mut().insert(LOCATION, place.clone());
        answer.headers_mut().insert(WWW_AUTHENTICATE, place);
    }
    if let Ok(token) = HeaderValue::from_bytes(token) {
        answer.headers_mut().insert(TOKEN, token);
    }
    let _ = session::offers_basic(&answer);
    let sessions = Arc::new(Sessions::default());
    let Ok(session) = sessions.opened(&("https://bmc".to_owned(), "fence".to_owned()), &answer) else { return };
    assert!(session.token().is_some_and(HeaderValue::is_sensitive));
    if let Some(place) = session.place() {
        assert!(place.starts_with("/redfish/"), "{place}");
        assert!(
            format!("https://bmc{place}").parse::<http::Uri>().is_ok_and(|uri| uri.host() == Some("bmc")),
            "{place}"
        );
    }
}

fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    end.map_or((bytes, &[]), |end| (bytes.get(..end).unwrap_or_default(), bytes.get(end + 1..).unwrap_or_default()))
}

fn answer(status: StatusCode, body: &[u8]) -> Response {
    let mut answer = http::Response::new(Bytes::copy_from_slice(body));
    *answer.status_mut() = status;
    answer
}
