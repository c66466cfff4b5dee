//! Preflight / outcome: what a device's answer to a check means.
//!
//! Promise (I6): whatever is not plainly good is not good. What we could not even ask is no answer of the device, neither good nor
//! bad, and changes nothing that is known of it.

use std::fmt;

use palisade_api::template::Identity;

use crate::snapshot::WitnessWord;

/// How many characters of a device's words are passed on: several of them stand in one condition.
const ENOUGH: usize = 160;

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The device told us.
    Said {
        /// Whose machine it switches.
        whose: Whose,
        /// The power of that machine.
        power: Power,
        /// What the node's kubelet said, if the device said off.
        kubelet: WitnessWord,
    },
    /// It said no, or what it has to be told makes no sense.
    Refused(String),
    /// It did not answer.
    Silent(String),
    /// It was not asked: what stands between is not its fault.
    NotAsked(String),
}

/// Whose machine is behind a device, by what both say of themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The node's.
    Ours,
    /// Another's.
    Another {
        /// Who it is.
        theirs: String,
        /// Who the node is.
        ours: String,
    },
    /// One of both does not say.
    Unknown,
}

/// The power of a machine, by its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Power {
    /// On.
    On,
    /// Off.
    Off,
    /// Something else, in its words.
    Unclear(String),
}

/// What is known of the node besides.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// Whether the device must show whose machine it switches.
    pub rule: Identity,
    /// The Node is Ready.
    pub ready: bool,
}

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The device answers, and nothing speaks against its being the node's.
    Good,
    /// It does not answer.
    NoAnswer(String),
    /// It refuses us.
    Refused(String),
    /// It switches another machine.
    WrongMachine {
        /// The one that it switches.
        theirs: String,
        /// The node's.
        ours: String,
    },
    /// It has to show whose machine it switches, and nobody can tell.
    CannotTell,
    /// It says neither on nor off, or nobody knows what to think of what it says.
    Unclear(String),
    /// It says off while the node is Ready and its kubelet answers.
    OffWhileReady,
    /// It was not asked.
    NotAsked(String),
}

impl Outcome {
    /// Its name, for conditions, events and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Good => "Good",
            Self::NoAnswer(_) => "NoAnswer",
            Self::Refused(_) => "Refused",
            Self::WrongMachine { .. } => "WrongMachine",
            Self::CannotTell => "CannotTell",
            Self::Unclear(_) => "Unclear",
            Self::OffWhileReady => "OffWhileReady",
            Self::NotAsked(_) => "NotAsked",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good => f.write_str("answers and is the node's"),
            Self::NoAnswer(why) => {
                write!(f, "does not answer ({why}); look at its power, its network and `ip`")
            }
            Self::Refused(why) => write!(f, "refuses us: {why}"),
            Self::WrongMachine { theirs, ours } => {
                write!(f, "switches the machine {theirs}, and the node is {ours}; put `ip` or `plug` right")
            }
            Self::CannotTell => f.write_str(
                "has to show whose machine it switches, and nobody can tell; set identity: WhenKnown, or use one that can",
            ),
            Self::Unclear(why) => write!(f, "says nothing clear: {why}; look at the machine"),
            Self::OffWhileReady => f.write_str(
                "says off while the node is Ready and its kubelet answers: it switches another machine, or it lies; put `ip` or \
                 `plug` right",
            ),
            Self::NotAsked(why) => write!(f, "was not asked: {why}"),
        }
    }
}

/// What an answer means.
pub fn judge(answer: Answer, around: Around) -> Outcome {
    let (whose, power, kubelet) = match answer {
        Answer::Said { whose, power, kubelet } => (whose, power, kubelet),
        Answer::Refused(why) => return Outcome::Refused(short(&why)),
        Answer::Silent(why) => return Outcome::NoAnswer(short(&why)),
        Answer::NotAsked(why) => return Outcome::NotAsked(short(&why)),
    };
    match whose {
        Whose::Another { theirs, ours } => {
            return Outcome::WrongMachine { theirs: short(&theirs), ours: short(&ours) };
        }
        Whose::Unknown if around.rule == Identity::Required => return Outcome::CannotTell,
        Whose::Ours | Whose::Unknown => {}
    }
    match power {
        Power::On => Outcome::Good,
        Power::Unclear(why) => Outcome::Unclear(short(&why)),
        // Nobody says that it should be on.
        Power::Off if !around.ready => Outcome::Good,
        Power::Off => match kubelet {
            WitnessWord::Alive => Outcome::OffWhileReady,
            // The machine has just lost its power, and the control plane does not know yet.
            WitnessWord::Silent => Outcome::Good,
            WitnessWord::Unknown => {
                Outcome::Unclear("off while the node is Ready, and its kubelet could not be looked at".to_owned())
            }
        },
    }
}

fn short(text: &str) -> String {
    text.chars().take(ENOUGH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: Around = Around { rule: Identity::WhenKnown, ready: true };

    fn said(whose: Whose, power: Power, kubelet: WitnessWord) -> Answer {
        Answer::Said { whose, power, kubelet }
    }

    fn name(answer: Answer, around: Around) -> &'static str {
        judge(answer, around).name()
    }

    #[test]
    fn each_answer_has_one_meaning() {
        use WitnessWord::{Alive, Silent, Unknown};
        let required = Around { rule: Identity::Required, ..READY };
        let gone = Around { ready: false, ..READY };
        let another = || Whose::Another { theirs: "b-2".to_owned(), ours: "a-1".to_owned() };
        let unclear = || Power::Unclear("PowerState is Paused".to_owned());
        let table = [
            (said(Whose::Ours, Power::On, Unknown), READY, "Good"),
            (said(Whose::Ours, Power::On, Unknown), required, "Good"),
            (said(Whose::Unknown, Power::On, Unknown), READY, "Good"),
            (said(Whose::Unknown, Power::On, Unknown), required, "CannotTell"),
            (said(another(), Power::On, Unknown), READY, "WrongMachine"),
            // Whose machine it is comes first: nothing else that it says is about the node.
            (said(another(), Power::Off, Alive), required, "WrongMachine"),
            (said(Whose::Ours, unclear(), Unknown), READY, "Unclear"),
            (said(Whose::Ours, unclear(), Unknown), gone, "Unclear"),
            (said(Whose::Ours, Power::Off, Alive), READY, "OffWhileReady"),
            (said(Whose::Ours, Power::Off, Alive), gone, "Good"),
            (said(Whose::Ours, Power::Off, Silent), READY, "Good"),
            (said(Whose::Ours, Power::Off, Unknown), READY, "Unclear"),
            (said(Whose::Ours, Power::Off, Unknown), gone, "Good"),
            (Answer::Silent("no route".to_owned()), READY, "NoAnswer"),
            (Answer::Refused("401".to_owned()), READY, "Refused"),
            (Answer::NotAsked("the API server is away".to_owned()), READY, "NotAsked"),
        ];
        for (answer, around, meaning) in table {
            assert_eq!(name(answer.clone(), around), meaning, "{answer:?} {around:?}");
        }
    }

    #[test]
    fn a_devices_words_are_cut_short() {
        let outcome = judge(Answer::Refused("x".repeat(1_000)), READY);
        assert_eq!(outcome, Outcome::Refused("x".repeat(ENOUGH)));
    }
}
