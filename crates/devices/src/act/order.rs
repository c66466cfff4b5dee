//! Act / order: what a pod of ours is told.
//!
//! Promise: one order is one thing done to one plug. There is no cycle and no reboot: nobody would see the machine off.
//! Never: a secret. Where a parameter is one, the order names the file that it is mounted at.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The form of orders and reports. A pod of another version refuses what it does not know, rather than guess.
pub(super) const FORM: u32 = 1;

/// What a pod of ours is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Order {
    /// The form that this is written in.
    pub form: u32,
    /// The agent, such as `fence_ipmilan`.
    pub agent: String,
    /// What is to be done.
    pub task: Task,
    /// The one plug that it is done to; none where the device is in one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plug: Option<String>,
    /// Parameters as the agent names them, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Parameters whose values are secrets, with the file that holds each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// How long all of it may take, in milliseconds from the pod's start.
    pub within_ms: u64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do", deny_unknown_fields)]
pub enum Task {
    /// Off, at once and by force.
    Off {
        /// Only if the device says on immediately before: off is not sent to a machine that may be asleep.
        #[serde(rename = "onlyIfOn")]
        only_if_on: bool,
    },
    /// On.
    On,
    /// Look, again and again until it has been off for so long without a break, or says otherwise.
    Look {
        /// How long it has to be off, in milliseconds.
        #[serde(rename = "steadyMs")]
        steady_ms: u64,
    },
}

/// An order that cannot be followed.
#[derive(Debug, Error)]
pub enum BadOrder {
    /// It is no order at all.
    #[error("the order cannot be read: {0}; operator and pod have to run the same version of Palisade")]
    Unreadable(#[source] serde_json::Error),
    /// It was written by another version.
    #[error("the order has form {0}, and this version knows form {FORM} only; let operator and pod run the same image")]
    Form(u32),
}

impl Order {
    /// An order for this agent, with nothing to tell it yet.
    pub fn new(agent: impl Into<String>, task: Task, within: Duration) -> Self {
        Self {
            form: FORM,
            agent: agent.into(),
            task,
            plug: None,
            parameters: BTreeMap::new(),
            secrets: BTreeMap::new(),
            within_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// How long all of it may take.
    pub const fn within(&self) -> Duration {
        Duration::from_millis(self.within_ms)
    }

    /// The order in a text.
    pub fn read(text: &str) -> Result<Self, BadOrder> {
        let order: Self = serde_json::from_str(text).map_err(BadOrder::Unreadable)?;
        if order.form == FORM { Ok(order) } else { Err(BadOrder::Form(order.form)) }
    }

    /// The text of the order.
    pub fn text(&self) -> String {
        // Maps with text for keys, numbers and texts: there is nothing in it that JSON could not say.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        for task in [Task::Off { only_if_on: true }, Task::On, Task::Look { steady_ms: 5000 }] {
            let mut order = Order::new("fence_ipmilan", task, Duration::from_secs(25));
            order.plug = Some("3".to_owned());
            order.parameters.insert("ip".to_owned(), "192.0.2.7".to_owned());
            order.secrets.insert("password".to_owned(), "0/password".to_owned());
            assert_eq!(Order::read(&order.text()).unwrap(), order);
        }
    }

    #[test]
    fn what_another_version_wrote_is_refused_and_not_guessed_at() {
        let order = Order { form: 2, ..Order::new("fence_dummy", Task::On, Duration::ZERO) };
        assert!(Order::read(&order.text()).unwrap_err().to_string().contains("form 2"));
        let more = order.text().replace("\"form\":2", "\"form\":1,\"cycle\":true");
        assert!(matches!(Order::read(&more), Err(BadOrder::Unreadable(_))));
    }
}
