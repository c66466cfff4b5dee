//! Detect / witness: does anybody else see that the node is gone, or that it lives?
//!
//! Promise: a witness's silence counts only if the same witness, from the same place, saw this node alive shortly
//! before the lease fell silent; a word of life from any place outweighs every silence. A machine that is off needs no
//! such earlier sight, and one that is on shows nothing: a kernel that hangs has power too.
//! Never: takes a witness that could not look, or a word that is old, for an answer.

use std::collections::BTreeMap;
use std::fmt;

use crate::reason::detect::AbstainReason;
use crate::snapshot::{WitnessKind, WitnessView, WitnessWord};
use crate::time::{Span, Tick};

/// Where a witness looks from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// This process.
    Here,
    /// The standby replica, which publishes what it sees.
    Standby,
}

/// One witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Witness {
    /// What it looks at.
    pub kind: WitnessKind,
    /// Where it looks from.
    pub place: Place,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            WitnessKind::KubeletPort => "kubelet-port",
            WitnessKind::BmcPower => "bmc-power",
            WitnessKind::StorageHeartbeat => "storage-heartbeat",
        })?;
        f.write_str(match self.place {
            Place::Here => "",
            Place::Standby => "@standby",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Heard {
    word: WitnessWord,
    at: Tick,
    last_alive: Option<Tick>,
}

/// What this process remembers of the witnesses of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Witnesses {
    heard: BTreeMap<Witness, Heard>,
}

/// What the witnesses are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    /// When the lease fell silent, as far as we watched.
    pub began: Tick,
    /// How long before that a sight of life may lie.
    pub trusted: Span,
    /// How old a word may be that speaks of now.
    pub fresh: Span,
}

/// What one witness's word amounts to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Testimony {
    /// It saw the node alive and now sees nothing, or it sees the machine off.
    Confirms,
    /// It sees the node alive.
    Contradicts,
    /// Its word does not count.
    Abstains {
        /// Why not.
        why: AbstainReason,
    },
}

/// What all witnesses together amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hearing {
    /// Somebody confirms, and nobody contradicts.
    Confirmed {
        /// The one who says most.
        by: Witness,
    },
    /// Somebody contradicts.
    Contradicted {
        /// The first who does.
        by: Witness,
    },
    /// All abstain, or there is none.
    Nobody {
        /// How many abstain.
        abstained: usize,
    },
}

impl Hearing {
    /// How many abstained, where nobody spoke.
    pub fn abstained(self) -> usize {
        match self {
            Self::Nobody { abstained } => abstained,
            Self::Confirmed { .. } | Self::Contradicted { .. } => 0,
        }
    }
}

impl Witnesses {
    /// A witness gave its word. For the standby's: when we saw its publication change.
    pub fn observe(&mut self, who: Witness, word: WitnessWord, now: Tick) {
        let before = self.heard.get(&who).and_then(|heard| heard.last_alive);
        let last_alive = match word {
            WitnessWord::Alive => Some(now),
            WitnessWord::Silent | WitnessWord::Unknown => before,
        };
        self.heard.insert(who, Heard { word, at: now, last_alive });
    }

    /// Each witness's testimony.
    pub fn testimonies(&self, about: Question, now: Tick) -> Vec<(Witness, Testimony)> {
        self.heard.iter().map(|(who, heard)| (*who, heard.testify(who.kind, about, now))).collect()
    }

    /// All testimonies, weighed: one word of life outweighs any number of silences.
    pub fn hear(&self, about: Question, now: Tick) -> Hearing {
        let all = self.testimonies(about, now);
        let first = |what: Testimony| all.iter().find(|(_, said)| *said == what).map(|(who, _)| *who);
        if let Some(by) = first(Testimony::Contradicts) {
            return Hearing::Contradicted { by };
        }
        // A device that says off says more than a port that is silent.
        let off = all.iter().find(|(who, said)| who.kind == WitnessKind::BmcPower && *said == Testimony::Confirms);
        match off.map(|(who, _)| *who).or_else(|| first(Testimony::Confirms)) {
            Some(by) => Hearing::Confirmed { by },
            None => Hearing::Nobody { abstained: all.len() },
        }
    }

    /// When somebody last saw the node itself alive; a device that says on does not.
    pub fn last_alive(&self) -> Option<Tick> {
        let seers = self.heard.iter().filter(|(who, _)| who.kind != WitnessKind::BmcPower);
        seers.filter_map(|(_, heard)| heard.last_alive).max()
    }

    /// Whether the power device said lately that the machine is off.
    pub fn says_off(&self, fresh: Span, now: Tick) -> bool {
        self.heard.iter().any(|(who, heard)| {
            who.kind == WitnessKind::BmcPower && heard.word == WitnessWord::Silent && now.since(heard.at) <= fresh
        })
    }

    /// The words as a snapshot carries them.
    pub fn views(&self) -> Vec<WitnessView> {
        let view = |(who, heard): (&Witness, &Heard)| WitnessView {
            kind: who.kind,
            says: heard.word,
            asked: heard.at,
            last_alive: heard.last_alive,
        };
        self.heard.iter().map(view).collect()
    }
}

impl Heard {
    fn testify(&self, kind: WitnessKind, about: Question, now: Tick) -> Testimony {
        let abstains = |why| Testimony::Abstains { why };
        let age = now.since(self.at);
        if age > about.fresh {
            return abstains(AbstainReason::WordTooOld { age, fresh: about.fresh });
        }
        match self.word {
            WitnessWord::Unknown => abstains(AbstainReason::CouldNotLook),
            WitnessWord::Alive => match kind {
                WitnessKind::BmcPower => abstains(AbstainReason::PowerOnly),
                WitnessKind::KubeletPort | WitnessKind::StorageHeartbeat => Testimony::Contradicts,
            },
            WitnessWord::Silent => match kind {
                // Off is a word, not a silence: it needs no earlier sight of life.
                WitnessKind::BmcPower => Testimony::Confirms,
                WitnessKind::KubeletPort | WitnessKind::StorageHeartbeat => self.silence(about),
            },
        }
    }

    fn silence(&self, about: Question) -> Testimony {
        let Some(alive) = self.last_alive else {
            return Testimony::Abstains { why: AbstainReason::NeverSeenAlive };
        };
        let before = about.began.since(alive);
        if before > about.trusted {
            let why = AbstainReason::AliveTooLongAgo { before, trusted: about.trusted };
            return Testimony::Abstains { why };
        }
        Testimony::Confirms
    }
}
