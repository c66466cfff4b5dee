//! Prove / readback: what makes evidence verified.
//!
//! Promise (I6): off means that every plug was read off, twice or more, steady over the method's `stableOff`; a single
//! Unknown or On among the last reads starts the count again. A machine that is said to be off while its kubelet answers is a
//! contradiction, and a contradiction is never off. Never: an exit code, an accepted command, a time-out. A pod's success becomes
//! evidence only by the policy's word for it, and under the class of a person's.

use std::fmt;

use super::proof::{Class, Scope};
use crate::ident::{MethodName, ProviderName, VolumeName};
use crate::planted::{self, Bug};
use crate::snapshot::WitnessWord;
use crate::time::{Span, Tick};

/// What one read of a device or provider showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seen {
    /// Off with its memory lost; the port down; access revoked.
    Off,
    /// On, or on its way: a machine that is powering off is still on.
    On,
    /// No answer, an answer that nobody understands, or a state that keeps the memory (suspended, hibernated, migrating).
    Unknown,
}

/// One read, with the time that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sample {
    /// When it was sent.
    pub began: Tick,
    /// When its answer was there.
    pub ended: Tick,
    /// What it showed.
    pub seen: Seen,
    /// What the node's kubelet said meanwhile.
    pub kubelet: WitnessWord,
}

/// The reads of one plug, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlugRead {
    /// The method whose device was read.
    pub method: MethodName,
    /// The plug.
    pub plug: Box<str>,
    /// The reads.
    pub samples: Vec<Sample>,
}

/// By which path the isolation was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadPath {
    /// Another path than the one that acted: the native driver after an agent, or a second device.
    Independent,
    /// The native driver that acted, in a call of its own.
    SameDriver,
    /// A second call of the same agent: the weakest, and called so.
    SameAgent,
    /// Nothing can be read back; a person or the policy's word for a pod stands for it.
    Declared,
}

impl fmt::Display for ReadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Independent => "independent",
            Self::SameDriver => "same-driver",
            Self::SameAgent => "same-agent",
            Self::Declared => "declared",
        })
    }
}

/// Evidence that was verified. Only this room makes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verified {
    class: Class,
    scope: Scope,
    path: ReadPath,
    source: Box<str>,
    evidence: Box<str>,
}

impl Verified {
    pub(super) fn into_parts(self) -> (Class, Scope, ReadPath, Box<str>, Box<str>) {
        (self.class, self.scope, self.path, self.source, self.evidence)
    }
}

/// What a series of reads amounts to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Judged {
    /// Every plug off, steady.
    Off,
    /// Every plug off so far, not long enough.
    NotSteady {
        /// How long the least steady plug has been off.
        steady: Span,
    },
    /// The plugs that make up the machine read off, and its kubelet answers: one of the two is wrong.
    Contradicted,
    /// A plug is on.
    On,
    /// A plug could not be read, or none was.
    Unknown,
}

/// Judges the reads of every plug that has to be off, each by its own word.
pub fn judge(reads: &[PlugRead], wanted: &[(MethodName, Box<str>)], stable_off: Span) -> Judged {
    worst_of(reads, wanted, stable_off, said_off)
}

fn said_off(sample: &Sample) -> bool {
    sample.seen == Seen::Off
}

/// Judges the reads of everything that a proof of this class rests on. Where all of it off means that the machine is off, the
/// kubelet must not answer. (One of two power supplies may well be off while it does; so may a port or a storage session.)
pub fn judge_for(class: Class, reads: &[PlugRead], wanted: &[(MethodName, Box<str>)], stable_off: Span) -> Judged {
    match class {
        Class::Power => worst_of(reads, wanted, stable_off, |sample| {
            said_off(sample) && (sample.kubelet != WitnessWord::Alive || planted::is(Bug::BelievesTheDevice))
        }),
        Class::Confirmed => unheard(reads, wanted, stable_off),
        Class::Storage | Class::Driver | Class::Network | Class::Kdump => judge(reads, wanted, stable_off),
    }
}

/// No device tells that the machine is off, so the kubelet's silence is all that there is to hear: each time, for long enough. A port
/// that refuses is no silence (a machine answers there), nor is a look that failed on our own side. A device that says on is believed.
fn unheard(reads: &[PlugRead], wanted: &[(MethodName, Box<str>)], stable_off: Span) -> Judged {
    let asked = |read: &&PlugRead| wanted.iter().any(|(method, plug)| read.method == *method && read.plug == *plug);
    if reads.iter().filter(asked).flat_map(|read| &read.samples).any(|sample| sample.kubelet == WitnessWord::Alive)
        && !planted::is(Bug::BelievesTheDevice)
    {
        return Judged::Contradicted;
    }
    let mut last = reads.iter().filter(asked).filter_map(|read| read.samples.last());
    if last.any(|sample| sample.seen == Seen::On) {
        return Judged::On;
    }
    worst_of(reads, wanted, stable_off, |sample| sample.kubelet == WitnessWord::Silent)
}

fn worst_of(
    reads: &[PlugRead],
    wanted: &[(MethodName, Box<str>)],
    stable_off: Span,
    off: impl Fn(&Sample) -> bool,
) -> Judged {
    if wanted.is_empty() {
        return Judged::Unknown;
    }
    if planted::is(Bug::ExitCodeIsProof) {
        return Judged::Off;
    }
    let mut worst = Judged::Off;
    for (method, plug) in wanted {
        let read = reads.iter().find(|read| read.method == *method && read.plug == *plug);
        let judged = read.map_or(Judged::Unknown, |read| judge_plug(&read.samples, stable_off, &off));
        // Off < NotSteady < Contradicted < On < Unknown: the worst plug speaks for all.
        worst = worst.max(judged);
    }
    worst
}

fn judge_plug(samples: &[Sample], stable_off: Span, is_off: impl Fn(&Sample) -> bool) -> Judged {
    let last_other = samples.iter().rposition(|sample| !is_off(sample));
    let off = &samples[last_other.map_or(0, |at| at + 1)..];
    match (off, samples.last().map(|sample| sample.seen)) {
        // From the end of the first to the beginning of the last: what lies between was certainly off.
        ([first, .., last], _) if last.began.since(first.ended) >= stable_off => Judged::Off,
        ([first, .., last], _) => Judged::NotSteady { steady: last.began.since(first.ended) },
        ([_], _) => Judged::NotSteady { steady: Span::ZERO },
        ([], Some(Seen::Off)) => Judged::Contradicted,
        ([], Some(Seen::On)) => Judged::On,
        ([], Some(Seen::Unknown) | None) => Judged::Unknown,
    }
}

/// The evidence of a device that was switched off and read back. Nothing but a steady off makes one.
pub(crate) fn read_off(judged: &Judged, class: Class, scope: &Scope, path: ReadPath, source: &str) -> Option<Verified> {
    match judged {
        Judged::Off => Some(Verified {
            class,
            scope: scope.clone(),
            path,
            source: source.into(),
            evidence: "read off, steady".into(),
        }),
        Judged::NotSteady { .. } | Judged::Contradicted | Judged::On | Judged::Unknown => None,
    }
}

/// The storage's own quorum has given the node up. It counts only where the provider revokes old sessions.
pub fn fenced_by_storage(provider: &ProviderName, read_back: Seen, revokes_sessions: bool) -> Option<Verified> {
    (read_back == Seen::Off && revokes_sessions).then(|| Verified {
        class: Class::Storage,
        scope: Scope::Provider(provider.clone()),
        path: ReadPath::SameDriver,
        source: provider.as_str().into(),
        evidence: "offline by its own quorum, sessions revoked".into(),
    })
}

/// Our attacher's fencing unpublish came back OK, called after the mark.
pub fn unpublished(volume: &VolumeName, ok: bool) -> Option<Verified> {
    ok.then(|| Verified {
        class: Class::Driver,
        scope: Scope::Volume(volume.clone()),
        path: ReadPath::SameDriver,
        source: "attacher".into(),
        evidence: format!("{volume} was unpublished with fence").into(),
    })
}

/// A person vouches for the very life that the fence is about.
pub fn person_said(who: &str, same_incarnation: bool) -> Option<Verified> {
    (same_incarnation && !who.is_empty()).then(|| Verified {
        class: Class::Confirmed,
        scope: Scope::Node,
        path: ReadPath::Declared,
        source: who.into(),
        evidence: "a person vouches".into(),
    })
}

/// A pod that nobody can read back succeeded, and its template is named in the policy: whoever wrote that vouches, as a person
/// does. It takes a Node that was looked at after all else, a silent lease, and a kubelet that was listened for in vain.
pub fn pod_said(method: &str, looked_last: bool, lease_silent: bool, kubelet: &Judged) -> Option<Verified> {
    (looked_last && lease_silent && *kubelet == Judged::Off && !method.is_empty()).then(|| Verified {
        class: Class::Confirmed,
        scope: Scope::Node,
        path: ReadPath::Declared,
        source: method.into(),
        evidence: "its pod succeeded, and spec.declaredPower of the policy lets that count".into(),
    })
}

/// The kernel is dumping: its packets are fresh, from the node's own address, and the policy lets them count (they are
/// not authenticated, so by default it does not). The same boot, and a lease that is silent, as a dumping kernel's is.
pub fn dumping(counts: bool, same_incarnation: bool, lease_silent: bool) -> Option<Verified> {
    (counts && same_incarnation && lease_silent).then(|| Verified {
        class: Class::Kdump,
        scope: Scope::Node,
        path: ReadPath::Declared,
        source: "kdump".into(),
        evidence: "kernel dump in progress".into(),
    })
}
