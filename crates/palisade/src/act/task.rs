//! Act / task: off, on, or a series of looks.
//!
//! Promise (I6): what the agent says of its own `off` is the verdict and nothing more; how the device stands is looked at by
//! runs of their own, each of which is in the report with its time.
//! Never: off to a machine that may be asleep, where the order forbids it; a look after the first one that says something else
//! than off, where off has to be steady.

use std::time::Duration;

use palisade_devices::act::{Look, Shown, Task, Verdict};
use palisade_devices::agent::Agent;
use palisade_devices::{Command, Device, Failure, Late, Permit, PowerState};
use tokio::time::{Instant, sleep};

use super::diary::Diary;

/// The pause between two looks, as the operator's own.
const BETWEEN: Duration = Duration::from_millis(500);

/// One order, on its way.
pub(super) struct Work<'a> {
    pub(super) agent: &'a Agent,
    pub(super) plug: &'a str,
    /// When all of it has to be over.
    pub(super) until: Instant,
    /// When half of the time is used up.
    pub(super) half: Instant,
    pub(super) diary: &'a Diary,
}

/// The last look at the clock before something is sent, and a note that it is.
struct Before<'a> {
    until: Instant,
    diary: &'a Diary,
    word: &'static str,
}

impl Permit for Before<'_> {
    fn may_send(&self) -> Result<(), Late> {
        if Instant::now() >= self.until {
            return Err(Late("the order's time was over; nothing was sent".to_owned()));
        }
        self.diary.sends(self.word);
        Ok(())
    }
}

impl Work<'_> {
    pub(super) async fn carry_out(&self, task: Task) -> (Verdict, String) {
        match task {
            Task::Off { only_if_on } => self.off(only_if_on).await,
            Task::On => self.tell(Command::On, "on").await,
            Task::Look { steady_ms } => self.look_until_steady(Duration::from_millis(steady_ms)).await,
        }
    }

    async fn off(&self, only_if_on: bool) -> (Verdict, String) {
        if only_if_on {
            let (look, heard) = self.look().await;
            if look.state != Shown::On {
                let why =
                    "off was not sent: it goes to a machine that is on, and nobody could tell this one from sleep";
                return (Verdict::Refused, format!("{why} ({})", said(&heard)));
            }
        }
        let (verdict, said) = self.tell(Command::Off, "off").await;
        if verdict != Verdict::Refused {
            self.look_until_off().await;
        }
        (verdict, said)
    }

    async fn tell(&self, command: Command, word: &'static str) -> (Verdict, String) {
        let permit = Before { until: self.until, diary: self.diary, word };
        match self.agent.tell(self.plug, command, &permit).await {
            Ok(told) => (Verdict::Taken, told.said),
            Err(Failure::Refused(why)) => (Verdict::Refused, why),
            Err(Failure::Unknown(why)) => (Verdict::Unknown, why),
        }
    }

    /// Looks until it is off, or until half of the time is used up: the other half is for whoever reads it back.
    async fn look_until_off(&self) {
        while Instant::now() < self.until {
            let (look, _) = self.look().await;
            if look.state == Shown::Off || Instant::now() + BETWEEN >= self.half {
                return;
            }
            sleep(BETWEEN).await;
        }
    }

    async fn look_until_steady(&self, steady: Duration) -> (Verdict, String) {
        let mut first: Option<Look> = None;
        loop {
            let (look, heard) = self.look().await;
            match heard {
                Ok(PowerState::Off) => {}
                Ok(PowerState::On) => return (Verdict::Taken, said(&Ok(PowerState::On))),
                Err(Failure::Refused(why)) => return (Verdict::Refused, why),
                unclear @ (Ok(PowerState::Unclear(_)) | Err(Failure::Unknown(_))) => {
                    return (Verdict::Unknown, said(&unclear));
                }
            }
            let first = *first.get_or_insert(look);
            let off_for = look.began_ms.saturating_sub(first.ended_ms);
            // Whoever asks for no time at all has looked once.
            if u128::from(off_for) >= steady.as_millis() {
                return (Verdict::Taken, format!("off for {off_for} ms"));
            }
            if Instant::now() + BETWEEN >= self.until {
                return (Verdict::Taken, format!("off, and the time was over before it had been so for {steady:?}"));
            }
            sleep(BETWEEN).await;
        }
    }

    async fn look(&self) -> (Look, Result<PowerState, Failure>) {
        let began = self.diary.now();
        let heard = self.agent.state(self.plug).await;
        let state = heard.as_ref().map_or(Shown::Unknown, Shown::from);
        (self.diary.looked(began, state), heard)
    }
}

fn said(heard: &Result<PowerState, Failure>) -> String {
    match heard {
        Ok(state) => format!("it says {state:?}"),
        Err(why) => why.to_string(),
    }
}
