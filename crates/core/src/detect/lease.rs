//! Detect / lease: how long has the node's lease been silent, by our own clock?
//!
//! Promise: silence runs from the moment we saw `renewTime` change. Its value is opaque: a clock that runs wrong on the
//! node changes nothing, and a value that goes backwards is a sign of life like any other.
//! Never: claims from silence alone while a witness is required, nor against a witness who sees the node alive, before
//! the control plane has lost the node too (Ready=Unknown). A device that says off is a word and not a silence, so fewer
//! missed renewals are enough beside it; whether the node is the only one that died is for the storm brake to say.

use std::fmt;
use std::num::NonZeroU64;

use crate::detect::sight::Sight;
use crate::detect::witness::{Hearing, Question, Witness, Witnesses};
use crate::detect::{Finding, LOOK_AGAIN};
use crate::ident::NodeName;
use crate::reason::detect::{ClaimReason, WatchReason};
use crate::snapshot::{Ready, WitnessKind};
use crate::time::{Span, Tick};

/// The shortest and the longest `leaseDurationSeconds` that renewals can be counted by. Below, an interval is no longer
/// than a hiccup of the API; above, two missed renewals take longer than five minutes and tell nothing early.
pub const DURATIONS: std::ops::RangeInclusive<i64> = 4..=600;

/// When silence is a suspicion, and what has to second it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseThreshold {
    /// So many missed renewals are a suspicion; fewer only start the gathering of witnesses.
    pub missed: NonZeroU64,
    /// So many are a suspicion already, if the node's power device says off.
    pub missed_when_off: NonZeroU64,
    /// What has to second it.
    pub needs: Needs,
    /// A witness counts only if it saw the node alive this long before the silence began, or later.
    pub trusted: Span,
}

/// What has to second a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Needs {
    /// A witness, and nothing less.
    Witness,
    /// A witness, or else the control plane's Ready=Unknown.
    WitnessOrControlPlane,
    /// Nothing.
    Nothing,
}

/// A node's lease as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeenLease {
    /// `holderIdentity`.
    pub holder: Option<Box<str>>,
    /// `leaseDurationSeconds`.
    pub seconds: Option<i64>,
    /// `renewTime`, as text: only whether it changes matters.
    pub renewed: Option<Box<str>>,
}

/// What this process remembers of one node's lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseMemory {
    seen: Option<SeenLease>,
    changed: Tick,
    moved: Option<Tick>,
    /// When it moved again after it had missed two renewals.
    back: Option<Tick>,
    /// Whether the lease was watched for an earlier Node of this name, and how it was last seen then.
    watched_before: bool,
    before: Option<SeenLease>,
}

/// How long a lease has been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Silence {
    /// The last renewal that we saw, or since when we watch.
    pub began: Tick,
    /// How long ago that was.
    pub lasted: Span,
    /// How many renewals are missing.
    pub missed: u64,
    /// The longest regular time between two renewals.
    pub interval: Span,
}

/// Who else may speak.
#[derive(Clone, Copy, Debug)]
pub struct Others<'a> {
    /// The witnesses of this node.
    pub witnesses: &'a Witnesses,
    /// The Ready condition: Unknown is the control plane's own word.
    pub ready: Ready,
}

/// Who seconded a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seconded {
    /// A witness.
    Witness(Witness),
    /// The control plane, by Ready=Unknown.
    ControlPlane,
    /// Nobody: the policy does not ask for it.
    NotRequired,
}

impl fmt::Display for Seconded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Witness(witness) => witness.fmt(f),
            Self::ControlPlane => f.write_str("control-plane"),
            Self::NotRequired => f.write_str("not-required"),
        }
    }
}

impl LeaseMemory {
    /// The lease was seen; `None`: there is none.
    pub fn observe(&mut self, seen: Option<SeenLease>, now: Tick) {
        let sign = |lease: &SeenLease| (lease.holder.clone(), lease.renewed.clone());
        if self.seen.as_ref().map(sign) != seen.as_ref().map(sign) {
            let silent = now.since(self.changed);
            self.changed = now;
            // What is seen for the first time has not moved under our eyes; what comes back has.
            let other_than_before = self.before.as_ref().map(sign) != seen.as_ref().map(sign);
            let moved = !self.is_unseen() || (self.watched_before && other_than_before);
            self.moved = moved.then_some(now);
            let seconds = self.seen.as_ref().and_then(|lease| lease.seconds).unwrap_or(0);
            let two = Span::secs(u64::try_from(seconds).unwrap_or(0) / 2);
            if moved && two > Span::ZERO && silent > two {
                self.back = Some(now);
            }
        }
        self.seen = seen;
    }

    /// Whether nothing was seen of it for this Node yet.
    pub fn is_unseen(&self) -> bool {
        self.seen.is_none() && self.moved.is_none()
    }

    /// What is left of it for another Node of the same name.
    #[must_use]
    pub fn of_another(self) -> Self {
        let watched_before = self.watched_before || !self.is_unseen();
        let before = if self.is_unseen() { self.before } else { self.seen };
        Self { watched_before, before, ..Self::default() }
    }

    /// When this process last saw the lease move, for the snapshot; `None`: not since it started.
    pub fn last_renewal(&self) -> Option<Tick> {
        self.moved
    }

    /// When it moved again after a silence, for the snapshot.
    pub fn back_since(&self) -> Option<Tick> {
        self.back
    }

    /// How long the lease has been silent, or why that cannot be told.
    pub fn silence(&self, node: &NodeName, sight: Sight, now: Tick) -> Result<Silence, Finding> {
        let began = sight.began(self.changed, now)?;
        let interval = self.interval(node).map_err(|why| Finding::Watching { why, until: now + LOOK_AGAIN })?;
        let lasted = now.since(began);
        let missed = lasted.as_millis() / interval.as_millis();
        Ok(Silence { began, lasted, missed, interval })
    }

    /// The kubelet renews every quarter of the duration, up to 4 % late: 10.4 s for the usual 40 s.
    fn interval(&self, node: &NodeName) -> Result<Span, WatchReason> {
        let lease = self.seen.as_ref().ok_or(WatchReason::LeaseAbsent)?;
        let holder = lease.holder.as_deref().unwrap_or("nobody");
        if holder != node.as_str() {
            return Err(WatchReason::LeaseOfAnother { holder: holder.into() });
        }
        let seconds = lease.seconds.unwrap_or(0);
        let (least, most) = (*DURATIONS.start(), *DURATIONS.end());
        let whole = u64::try_from(seconds).ok().filter(|_| DURATIONS.contains(&seconds));
        let whole = whole.ok_or(WatchReason::LeaseDurationAbsurd { seconds, least, most })?;
        if lease.renewed.is_none() {
            return Err(WatchReason::LeaseNeverRenewed);
        }
        Ok(Span::millis(whole * 1_000 / 4 * 104 / 100))
    }

    /// Whether the silence makes a claim.
    pub fn judge(&self, node: &NodeName, by: &LeaseThreshold, others: Others<'_>, sight: Sight, now: Tick) -> Finding {
        match self.silence(node, sight, now) {
            Err(unsure) => unsure,
            // I6: a lease that nobody has seen move is not yet silent, and no sign of life either.
            Ok(silence) if silence.missed == 0 && self.moved.is_none_or(|moved| moved < silence.began) => {
                Finding::Watching { why: WatchReason::LeaseUnheard, until: silence.next() }
            }
            Ok(silence) => silence.judge(by, others, now),
        }
    }
}

impl Silence {
    fn judge(self, by: &LeaseThreshold, others: Others<'_>, now: Tick) -> Finding {
        let Self { missed, lasted: silence, .. } = self;
        let watching = |why| Finding::Watching { why, until: self.next() };
        if missed == 0 {
            return Finding::Quiet;
        }
        let hearing = others.witnesses.hear(self.question(by.trusted), now);
        let off = match hearing {
            Hearing::Confirmed { by } => by.kind == WitnessKind::BmcPower,
            Hearing::Contradicted { .. } | Hearing::Nobody { .. } => false,
        };
        let enough = if off { by.missed.min(by.missed_when_off) } else { by.missed };
        if missed < enough.get() {
            return watching(WatchReason::LeaseLate { missed, silence });
        }
        match seconded(hearing, others.ready, by.needs) {
            Ok(witness) => Finding::Claim { why: ClaimReason::LeaseSilent { missed, silence, witness } },
            Err(Some(witness)) => watching(WatchReason::LeaseContradicted { missed, silence, witness }),
            Err(None) => {
                let abstained = hearing.abstained();
                watching(WatchReason::LeaseUnwitnessed { missed, silence, abstained })
            }
        }
    }

    /// What the witnesses are asked: a word older than one interval says nothing of now.
    pub fn question(self, trusted: Span) -> Question {
        Question { began: self.began, trusted, fresh: self.interval }
    }

    /// When the next renewal will be missing.
    fn next(self) -> Tick {
        self.began + self.interval.times(self.missed.saturating_add(1))
    }
}

/// Who seconds the silence; or who contradicts it, if anybody speaks at all.
fn seconded(hearing: Hearing, ready: Ready, needs: Needs) -> Result<Seconded, Option<Witness>> {
    // Lost to the control plane as well: a node that lives all the same is what fencing is for.
    let lost = match (ready, needs) {
        (Ready::Unknown, Needs::WitnessOrControlPlane | Needs::Nothing) => true,
        (Ready::Unknown, Needs::Witness) | (Ready::True | Ready::False, _) => false,
    };
    match hearing {
        Hearing::Confirmed { by } => Ok(Seconded::Witness(by)),
        Hearing::Contradicted { .. } | Hearing::Nobody { .. } if lost => Ok(Seconded::ControlPlane),
        Hearing::Contradicted { by } => Err(Some(by)),
        Hearing::Nobody { .. } => match needs {
            Needs::Nothing => Ok(Seconded::NotRequired),
            Needs::Witness | Needs::WitnessOrControlPlane => Err(None),
        },
    }
}
