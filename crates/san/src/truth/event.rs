//! Event: what happened at the SAN, as its log has it.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Id, named};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When, by the host's clock. The order of the lines is the order of the events.
    pub time: Timestamp,
    /// What.
    pub what: What,
    /// To which volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// On, or for, which node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The node may not write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub readonly: bool,
    /// Where on the node; or why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// A node was made known to the SAN.
    Registered,
    /// A volume was made.
    Created,
    /// A volume was destroyed.
    Deleted,
    /// A volume was published to a node.
    Published,
    /// A volume was taken away from a node.
    Unpublished,
    /// A node asked for a volume, or somebody for it, and did not get it.
    Refused,
    /// A node mounted a volume for all its workloads.
    Staged,
    /// A node unmounted it again. A machine that dies does not say so.
    Unstaged,
    /// A node gave a volume to a workload.
    Mounted,
    /// A node took it away again. A machine that dies does not say so.
    Unmounted,
}

/// The whole log, oldest first. Empty if nothing ever happened.
pub fn events(san: &Path) -> io::Result<Vec<Event>> {
    let path = san.join("truth.log");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(why) => return Err(named(&path, &why)),
    };
    // What has no end yet is still being written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().enumerate();
    lines.map(|(at, line)| serde_json::from_str(line).map_err(|why| broken(&path, at + 1, &why))).collect()
}

fn broken(path: &Path, line: usize, why: &serde_json::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}, line {line}: {why}", path.display()))
}

impl Event {
    #[expect(clippy::disallowed_methods, reason = "a stamp for whoever reads the log; nothing is decided by it")]
    pub(crate) fn now(what: What) -> Self {
        Self { time: Timestamp::now(), what, volume: None, node: None, readonly: false, detail: None }
    }

    pub(crate) fn of_volume(self, volume: &Id) -> Self {
        Self { volume: Some(volume.to_string()), ..self }
    }

    pub(crate) fn of_node(self, node: &Id) -> Self {
        Self { node: Some(node.to_string()), ..self }
    }

    pub(crate) fn reading(self, readonly: bool) -> Self {
        Self { readonly, ..self }
    }

    pub(crate) fn saying(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }
}
