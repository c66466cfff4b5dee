//! Planted: bugs on purpose, so that the simulation can show that it would see them.
//!
//! Promise: without the feature `planted`, which only tests of the simulation turn on, [`is`] is the constant `false` and
//! every planted bug is compiled out.
//!
//! Each stands as one line at the very place where somebody could make that mistake.

/// A bug on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// A device that took the command is believed to have carried it out.
    ExitCodeIsProof,
    /// A read that nobody answered counts as off.
    UnknownIsOff,
    /// A machine that hibernates is taken for one that is off.
    HibernatedIsOff,
    /// A device that says off is believed while the kubelet answers.
    BelievesTheDevice,
    /// A read-back from before the mark counts.
    ReadBackBeforeMark,
    /// Pods are removed without the deletion mark.
    NoMark,
    /// The mark has grace 0, and so is a removal.
    MarkWithoutGrace,
    /// Pods that share a claim are released one by one.
    HalfAGroup,
    /// Proofs of an earlier attempt stay in force when the flow begins again.
    KeepsProofs,
    /// A node is let back in without the return checks.
    LetsInUnchecked,
    /// `volumesInUse` is edited while the kubelet lives.
    EditsWhileAlive,
    /// The out-of-service taint is set without a power proof.
    OutOfServiceUnproven,
    /// The machine is switched on while the out-of-service taint stands.
    OnWhileOutOfService,
    /// After the last restart the pods are released all the same.
    GivesUpAndReleases,
    /// After the last restart nothing is tried any more.
    GivesUp,
    /// A node that recovered by itself is fenced again.
    FencesTheRecovered,
    /// A machine whose Node is gone stays off.
    ForgetsTheMachine,
    /// There is no storm brake.
    NoStormBrake,
    /// Time in which nobody watched counts as silence.
    CountsBlindTime,
    /// The budget is counted over a cache.
    BudgetFromCache,
    /// The ledger is written without a compare-and-swap.
    LedgerWithoutSwap,
    /// A live entry of the ledger is swept out.
    LiveEntryIsGarbage,
    /// A slot is never given back.
    LeaksAnEntry,
    /// A ledger that is missing is begun empty.
    LedgerBuiltEmpty,
    /// Deletions carry no UID.
    NoUidPrecondition,
    /// Whoever has the pod's name now is deleted.
    DeletesTheSuccessor,
    /// A device is called before anything is on record.
    ActsBeforeTheRecord,
    /// A password gets into an Event.
    TellsASecret,
    /// Our taint is never taken off.
    KeepsTheTaint,
    /// Everybody's taints are taken off with ours.
    TakesEveryTaint,
    /// A fence that is over stays.
    NeverCloses,
    /// A request that was held once is never looked at again.
    HoldsForEver,
    /// A Job of an earlier call is taken for this one's.
    AdoptsAnOldJob,
    /// Nobody waits for a Job that may still act.
    ForgetsItsJobs,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 34] = [
        Self::ExitCodeIsProof,
        Self::UnknownIsOff,
        Self::HibernatedIsOff,
        Self::BelievesTheDevice,
        Self::ReadBackBeforeMark,
        Self::NoMark,
        Self::MarkWithoutGrace,
        Self::HalfAGroup,
        Self::KeepsProofs,
        Self::LetsInUnchecked,
        Self::EditsWhileAlive,
        Self::OutOfServiceUnproven,
        Self::OnWhileOutOfService,
        Self::GivesUpAndReleases,
        Self::GivesUp,
        Self::FencesTheRecovered,
        Self::ForgetsTheMachine,
        Self::NoStormBrake,
        Self::CountsBlindTime,
        Self::BudgetFromCache,
        Self::LedgerWithoutSwap,
        Self::LiveEntryIsGarbage,
        Self::LeaksAnEntry,
        Self::LedgerBuiltEmpty,
        Self::NoUidPrecondition,
        Self::DeletesTheSuccessor,
        Self::ActsBeforeTheRecord,
        Self::TellsASecret,
        Self::KeepsTheTaint,
        Self::TakesEveryTaint,
        Self::NeverCloses,
        Self::HoldsForEver,
        Self::AdoptsAnOldJob,
        Self::ForgetsItsJobs,
    ];
}

/// Whether bugs can be planted in this build at all.
pub const COMPILED_IN: bool = cfg!(feature = "planted");

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in this thread; a simulation is one thread.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether this bug is planted.
#[cfg(feature = "planted")]
pub fn is(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether this bug is planted: never.
#[cfg(not(feature = "planted"))]
pub const fn is(_bug: Bug) -> bool {
    false
}
