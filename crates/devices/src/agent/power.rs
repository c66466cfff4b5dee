//! Agent / power: off, on and status, as an agent is asked for them.
//!
//! Promise (I6): an agent that says off because the device was off a moment ago has sent nothing: a power cycle may be under way, and
//! the machine on in a second. Off is then asked for again, until it is sent, or until the device has said off for longer
//! than a cycle takes. A machine without power says so for ever.
//! Promise: a plug that the device does not list is neither switched nor read: agents call what does not exist off.
//! Never: on, in order to have something to switch off.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::words::{self, Done, Heard, Listed};
use super::{Agent, Told};
use crate::{Command, Failure, Permit, PowerState};

/// How long a device has to say off before that counts for an off of ours: longer than a power cycle of fence agents and of the BMCs
/// that were measured (2 s).
const LONGER_THAN_A_CYCLE: Duration = Duration::from_secs(5);

/// The pause between two tries within that time: three in all.
const AGAIN: Duration = Duration::from_millis(2_500);

/// The plugs that a person is shown.
const SHOWN: usize = 12;

impl Agent {
    /// Tells one plug to go off or on, and says whether the agent had to send anything.
    pub async fn tell(&self, plug: &str, command: Command, permit: &dyn Permit) -> Result<Told, Failure> {
        self.known(plug).await.map_err(nothing_sent)?;
        let mut first = None;
        loop {
            permit.may_send()?;
            let (done, said) = self.once(plug, command).await?;
            match (done, command) {
                (Done::Sent, _) => return Ok(Told { sent: true, said }),
                (Done::Already, Command::On) => return Ok(Told { sent: false, said }),
                (Done::Already, Command::Off) => {}
            }
            let now = Instant::now();
            let first = *first.get_or_insert(now);
            if now.duration_since(first) >= LONGER_THAN_A_CYCLE {
                let said = format!(
                    "{said}; nothing had to be sent, as the device has said off for {:?}",
                    now.duration_since(first)
                );
                return Ok(Told { sent: false, said });
            }
            if now + AGAIN >= self.until {
                return Err(Failure::Refused(format!(
                    "{}: the device says off, so the agent sends nothing; in the time that is left nobody could tell that from a \
                     power cycle; give it more than {:?}",
                    self.name, LONGER_THAN_A_CYCLE
                )));
            }
            sleep(AGAIN).await;
        }
    }

    async fn once(&self, plug: &str, command: Command) -> Result<(Done, String), Failure> {
        let action = match command {
            Command::Off => "off",
            Command::On => "on",
        };
        let heard = self.ask(action, plug).await?;
        let said = self.said(&heard);
        let done = words::done(command, &heard).map_err(|cause| self.failed(action, cause, &heard))?;
        Ok((done, said))
    }

    /// Reads how one plug stands.
    pub(super) async fn status(&self, plug: &str) -> Result<PowerState, Failure> {
        self.known(plug).await?;
        let heard = self.ask("status", plug).await?;
        words::state(&heard).map_err(|cause| self.failed("status", cause, &heard))
    }

    /// Whether the device knows the plug, as far as the agent can tell. It is asked once.
    async fn known(&self, plug: &str) -> Result<(), Failure> {
        if plug.is_empty() || !self.metadata.can("list") || self.is_known(plug) {
            return Ok(());
        }
        let heard = self.ask("list", plug).await?;
        match words::listed(plug, &heard).map_err(|cause| self.failed("list", cause, &heard))? {
            Listed::Yes | Listed::CannotTell => {
                self.remember(plug);
                Ok(())
            }
            Listed::No(known) => Err(Failure::Refused(self.unlisted(plug, &known, &heard))),
            Listed::Twice => Err(Failure::Refused(format!(
                "{}: more than one plug of the device is called {plug:?}; name it by its number",
                self.name
            ))),
        }
    }

    fn unlisted(&self, plug: &str, known: &[String], heard: &Heard) -> String {
        let more = if known.len() > SHOWN { ", ..." } else { "" };
        let known: Vec<&str> = known.iter().take(SHOWN).map(String::as_str).collect();
        let known = self.redactor.clean(&known.join(", "), heard.cut);
        format!("{}: the device has no plug {plug:?}; it has {known}{more}; put the plug right", self.name)
    }
}

/// Before anything was sent, nothing was.
fn nothing_sent(why: Failure) -> Failure {
    match why {
        Failure::Refused(why) => Failure::Refused(why),
        Failure::Unknown(why) => Failure::Refused(format!("{why}; nothing was sent")),
    }
}
