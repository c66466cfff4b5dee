//! How one node is fenced: the FenceConfig and its templates, resolved for this node and in the units of `core`.

use std::collections::BTreeMap;

use crate::ident::MethodName;
use crate::prove::{Class, ReadPath, Scope};
use crate::time::Span;

/// The deadline of a device call where no device is slower.
pub const SEND_WINDOW: Span = Span::secs(5);

/// The longest deadline of a device call. A device that needs longer before it can be told anything is told nothing. All that waits
/// for calls of other processes waits for this, since nobody knows which config these were decided by.
pub const LONGEST_WINDOW: Span = Span::secs(30);

/// A Job whose pod has not started by then has failed.
pub const JOB_START: Span = Span::secs(20);

/// See [`Settings::fresh`].
pub const FRESH: Span = Span::secs(5);

/// Everything that the automaton has to know about how this node is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The isolation step.
    pub isolation: Plan,
    /// The power step's way off; without levels there is no power step.
    pub power_off: Plan,
    /// How each device that switches the machine off switches it on again, by the method that did it.
    pub switch_on: BTreeMap<MethodName, Method>,
    /// The way on besides: what the power step names.
    pub power_on: Plan,
    /// The recovery step.
    pub recovery: Plan,
    /// How each isolation from network or storage is lifted, by the method that made it.
    pub undo: BTreeMap<MethodName, Method>,
    /// How often the flow is restarted before it holds and retries slowly.
    pub restarts: u32,
    /// How long an isolated node may stay unwell before the power step.
    pub power_after: Span,
    /// Leave the machine off.
    pub stay_off: bool,
    /// Delete the Node object once everything is released, instead of switching the machine on.
    pub delete_node: bool,
    /// How long `on` waits for releases that do not get ready.
    pub release_timeout: Span,
    /// How long a node may take to be healthy after the power step.
    pub recovery_timeout: Span,
    /// How long a node has to be Ready before it counts as back.
    pub return_hold: Span,
    /// The deadline of a device call: how long after its decision it may still be sent. It follows the node's slowest device,
    /// from [`SEND_WINDOW`] to [`LONGEST_WINDOW`].
    pub send_window: Span,
    /// How long a call may wait before it is sent, whatever config it was decided by: who must not cross the call of another
    /// process waits for so long.
    pub longest_window: Span,
    /// How old a read may be that a release rests on directly, and until when after it that release may be sent. No machine boots
    /// and no Node registers in so short a time: so it follows no device, however slow.
    pub fresh: Span,
    /// How long a device may take from the command to a steady state.
    pub settle: Span,
    /// The pause before a failed flow starts again; doubled each time, up to [`Self::slowest`].
    pub backoff: Span,
    /// The longest pause between two slow retries.
    pub slowest: Span,
    /// How often watched time is written down.
    pub checkpoint: Span,
    /// How long the attach/detach controller may take before it is nudged, and again before we act by hand.
    pub detach_patience: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            isolation: Plan::default(),
            power_off: Plan::default(),
            switch_on: BTreeMap::new(),
            power_on: Plan::default(),
            recovery: Plan::default(),
            undo: BTreeMap::new(),
            restarts: 3,
            power_after: Span::mins(5),
            stay_off: false,
            delete_node: false,
            release_timeout: Span::mins(2),
            recovery_timeout: Span::mins(10),
            return_hold: Span::secs(30),
            send_window: SEND_WINDOW,
            longest_window: LONGEST_WINDOW,
            fresh: FRESH,
            settle: Span::secs(60),
            backoff: Span::secs(10),
            slowest: Span::mins(10),
            checkpoint: Span::secs(30),
            detach_patience: Span::secs(10),
        }
    }
}

/// One step: alternatives, tried in order until one level has all its methods succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The levels.
    pub levels: Vec<Level>,
    /// How often the whole step is tried again before it has failed.
    pub retries: u32,
}

impl Plan {
    /// The method at a place of the plan, if the plan (still) has one there.
    pub fn method(&self, level: u32, method: u32) -> Option<&Method> {
        let level = self.levels.get(usize::try_from(level).ok()?)?;
        level.methods.get(usize::try_from(method).ok()?)
    }
}

/// Methods that all have to succeed, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// The methods.
    pub methods: Vec<Method>,
}

/// One call to one device or mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name; unique within the config.
    pub name: MethodName,
    /// What it does.
    pub action: Action,
    /// What its success proves once it is read back; none for what only prepares or repairs.
    pub proves: Option<Class>,
    /// What such a proof covers.
    pub scope: Scope,
    /// The plugs that have to go off: one per power supply. Each is a call of its own.
    pub plugs: Vec<Box<str>>,
    /// By which path its state is read.
    pub path: ReadPath,
    /// How long the state has to be steady.
    pub stable_off: Span,
    /// How often it is tried again before its level has failed.
    pub retries: u32,
    /// It is called by a Job, which can outlive whoever made it.
    pub in_job: bool,
    /// The device can tell a machine that is off from one that hibernates.
    pub tells_hibernation: bool,
    /// Lifting the isolation leaves old sessions dead.
    pub revokes_sessions: bool,
}

/// What a method does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Cut off: power off, port down, access revoked. Read back afterwards.
    CutOff,
    /// The opposite. Read back where the device can tell.
    Restore,
    /// Let our attacher unpublish with fence, per volume, as pods are released.
    FenceByDriver,
    /// Mark the node unschedulable.
    Cordon,
    /// Undo our own cordon.
    Uncordon,
    /// Run something whose success is all that matters (003: the tool only cares if the job succeeds or fails).
    Run,
}
