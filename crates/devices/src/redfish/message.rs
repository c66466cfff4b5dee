//! Redfish / message: what a service says in words, and how we show who we are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::transport::Response;

/// The words of an error, cut short: they go into events and status.
pub(super) fn told(answer: &Response) -> String {
    const ENOUGH: usize = 200;
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

/// The value of the Authorization header.
pub(super) fn basic(username: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
}
