//! Conformance / lines: what a watch tells, one line each.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use super::Told;
use super::answer::{must, same, text};

/// How long the next line may take. A watch cache that is asked for the first time takes seconds to fill.
const PATIENCE: Duration = Duration::from_secs(20);

/// The lines of a watch.
pub(super) struct Lines {
    body: Body,
    buffer: Vec<u8>,
}

/// One line.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) word: String,
    pub(super) object: Value,
}

impl Line {
    /// The name of its object.
    pub(super) fn name(&self) -> &str {
        text(&self.object, "/metadata/name")
    }
}

impl Lines {
    pub(super) fn of(body: Body) -> Self {
        Self { body, buffer: Vec::new() }
    }

    /// The next line; nothing if the watch is over.
    pub(super) async fn next_or_end(&mut self) -> Told<Option<Line>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let mut line: Value = serde_json::from_slice(&line).map_err(|why| format!("a broken line: {why}"))?;
                let word = text(&line, "/type").to_owned();
                return Ok(Some(Line { word, object: line["object"].take() }));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            match frame.map_err(|_| format!("the watch told nothing for {PATIENCE:?}"))? {
                None => return Ok(None),
                Some(Err(why)) => return Err(format!("the watch broke: {why}")),
                Some(Ok(frame)) => self.buffer.extend(frame.into_data().unwrap_or_default()),
            }
        }
    }

    /// The next line.
    pub(super) async fn next(&mut self) -> Told<Line> {
        self.next_or_end().await?.ok_or_else(|| "the watch is over".to_owned())
    }

    /// The next line has to be this word about the object of this name.
    pub(super) async fn expect(&mut self, word: &str, name: &str) -> Told<Value> {
        let line = self.next().await?;
        same("line", (line.word.as_str(), line.name()), (word, name))?;
        Ok(line.object)
    }

    /// The watch has to end without another line.
    pub(super) async fn expect_end(&mut self) -> Told {
        let line = self.next_or_end().await?;
        must(line.is_none(), || format!("wanted the end of the watch, got {line:?}"))
    }
}
