//! Redfish / message: what a service says in words.

use http::StatusCode;
use http::header::LOCATION;
use serde_json::Value;

use crate::transport::Response;

/// How many characters of a stranger's words are passed on.
const ENOUGH: usize = 200;

/// What a person can do about an answer that is none, with the words of the service.
pub(super) fn why(answer: &Response, asked: &str) -> String {
    let told = told(answer);
    let hint = match answer.status() {
        StatusCode::UNAUTHORIZED => {
            "the device does not know this user with this password; put the Secret right, and look whether the account is locked"
        }
        StatusCode::FORBIDDEN => {
            "this user may not do that; give it the right to control power (operator, ConfigureComponents)"
        }
        StatusCode::NOT_FOUND => {
            "there is no such thing; is this a Redfish service, and does `plug` name one of /redfish/v1/Systems?"
        }
        status if status.is_redirection() => {
            let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            let to: String = to.chars().take(ENOUGH).collect();
            return format!(
                "{asked}: the service points to {to}, and with a password nobody follows; put `ip` or `plug` right"
            );
        }
        _ => return format!("{asked}: {told}"),
    };
    format!("{asked}: {hint} (it said: {told})")
}

/// The words of an error, cut short: they go into events and status.
fn told(answer: &Response) -> String {
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or(Value::Null);
    let said = messages(&body).find_map(|message| message.get("Message").and_then(Value::as_str));
    let said = said.or_else(|| body.pointer("/error/message").and_then(Value::as_str));
    said.map_or_else(|| "without a word".to_owned(), |said| said.chars().take(ENOUGH).collect())
}

/// The service refuses because the machine is in that state already: the command is as good as taken.
pub(super) fn nothing_to_do(answer: &Response) -> bool {
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or(Value::Null);
    let mut ids = messages(&body).filter_map(|message| message.get("MessageId").and_then(Value::as_str));
    ids.any(|id| id.ends_with(".NoOperation"))
}

fn messages(body: &Value) -> impl Iterator<Item = &Value> {
    body.pointer("/error/@Message.ExtendedInfo").and_then(Value::as_array).into_iter().flatten()
}
