//! Embedded / agents / agent: one call of a fence agent, honest or not.
//!
//! An honest one does what those of ClusterLabs do: it asks for the state first, sends nothing if that is what is wanted, and
//! otherwise sends once and asks until it is so. Exit codes and words are theirs, too.

use std::time::Duration;

use palisade_cluster::clock::Clock;

use super::Agents;
use super::panel::{Panel, Trouble};
use crate::world::Agent;

/// How long an agent takes to start, and to say what it was told.
const STARTS: Duration = Duration::from_millis(150);
/// How often it looks whether it is done (`stonith_status_sleep`), and how many times (`power_timeout`).
const POLL: Duration = Duration::from_secs(1);
const POLLS: u32 = 20;

/// What an agent is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Status,
    Off,
    On,
}

impl Action {
    const fn reset(self) -> &'static str {
        match self {
            Self::Off => "ForceOff",
            Self::Status | Self::On => "On",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Off => "OFF",
            Self::Status | Self::On => "ON",
        }
    }
}

/// What an agent said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
    /// It was killed, and its pod with it.
    pub(super) killed: bool,
}

impl Said {
    fn well(out: impl Into<String>) -> Self {
        Self { code: 0, out: out.into(), err: String::new(), killed: false }
    }

    fn badly(err: &str) -> Self {
        Self { code: 1, out: String::new(), err: format!("ERROR: Failed: {err}"), killed: false }
    }
}

/// Who calls an agent.
pub(super) struct Caller {
    agents: Option<Agents>,
    panel: Panel,
    clock: Clock,
}

impl Caller {
    pub(super) fn new(agents: Agents, panel: Panel, clock: Clock) -> Self {
        Self { agents: Some(agents), panel, clock }
    }

    /// One that is honest whatever the others are.
    pub(super) fn honest(panel: Panel, clock: Clock) -> Self {
        Self { agents: None, panel, clock }
    }

    /// Calls it, as it behaves at this moment.
    pub(super) async fn call(&self, action: Action) -> Said {
        let behaves = self.agents.as_ref().map_or(Agent::Honest, Agents::behaves);
        self.clock.sleep(STARTS).await;
        match behaves {
            Agent::Honest | Agent::WrongReport => self.honestly(action).await,
            Agent::Slow(seconds) => {
                self.clock.sleep(Duration::from_secs(seconds)).await;
                self.honestly(action).await
            }
            Agent::SaysSuccess | Agent::ErrorTextExitZero if action == Action::Status => self.honestly(action).await,
            Agent::LiesWholly if action == Action::Status => Said { code: 2, ..Said::well("Status: OFF") },
            Agent::SaysSuccess | Agent::LiesWholly => {
                self.clock.sleep(POLL).await;
                Said::well(format!("Success: Powered {}", action.word()))
            }
            Agent::FailsAfterSuccess => match self.honestly(action).await {
                done if action != Action::Status && done.code == 0 && !done.out.contains("Already") => {
                    Said::badly("Connection lost")
                }
                said => said,
            },
            Agent::ErrorTextExitZero => {
                self.clock.sleep(POLL).await;
                Said { code: 0, ..Said::badly("Connection timed out") }
            }
            Agent::Hangs => std::future::pending().await,
            Agent::KilledBySignal => Said { killed: true, ..self.honestly(action).await },
            Agent::FlapsWithCycle => {
                if let (Action::Off, Some(agents)) = (action, &self.agents) {
                    agents.somebody_cycles(&self.panel.host, &self.clock).await;
                }
                self.honestly(action).await
            }
        }
    }

    async fn honestly(&self, action: Action) -> Said {
        let off = match self.panel.says_off().await {
            Ok(off) => off,
            Err(Trouble::NoConnection) => return Said::badly("Unable to connect/login to fencing device"),
            Err(Trouble::NoState) => {
                return Said::badly("Unable to obtain correct plug status or plug is not available");
            }
        };
        match action {
            Action::Status if off => Said { code: 2, ..Said::well("Status: OFF") },
            Action::Status => Said::well("Status: ON"),
            Action::Off | Action::On if off == (action == Action::Off) => {
                Said::well(format!("Success: Already {}", action.word()))
            }
            Action::Off | Action::On => self.switch(action).await,
        }
    }

    async fn switch(&self, action: Action) -> Said {
        if self.panel.switch(action.reset()).await.is_err() {
            return Said::badly("Connection lost");
        }
        for _ in 0..POLLS {
            self.clock.sleep(POLL).await;
            if self.panel.says_off().await.ok() == Some(action == Action::Off) {
                return Said::well(format!("Success: Powered {}", action.word()));
            }
        }
        Said::badly(&format!("Timed out waiting to power {}", action.word()))
    }
}
