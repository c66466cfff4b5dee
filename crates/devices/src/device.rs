//! Device: what every power device can do, whatever it speaks.
//!
//! Promise (I6): `Ok` of a command means only that the device took it; what counts is what [`Device::state`] says later, and
//! a state that is not plainly off is never called off.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// What a device call comes to.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// A device that switches machines.
pub trait Device: Send + Sync {
    /// Tells one plug to go off or on. Asks `permit` immediately before the one request that has an effect.
    fn command<'a>(&'a self, plug: &'a str, command: Command, permit: &'a dyn Permit) -> Answer<'a, ()>;

    /// Reads the state of one plug.
    fn state<'a>(&'a self, plug: &'a str) -> Answer<'a, PowerState>;

    /// Reads whose machine is behind the plug, as far as the device knows.
    fn identity<'a>(&'a self, plug: &'a str) -> Answer<'a, Identity>;
}

/// What a plug is told. There is no cycle: nobody would see the machine off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Off, at once and by force: the memory is lost.
    Off,
    /// On.
    On,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::On => "on",
        })
    }
}

/// What a device says of a plug.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PowerState {
    /// Off; nothing is left in memory.
    Off,
    /// On, or on its way to either side: a machine that is powering off still runs.
    On,
    /// It keeps its memory (paused, suspended, hibernated), or says something that nobody understands.
    Unclear(String),
}

/// What a device knows of the machine behind a plug. Empty texts are never stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The system UUID, in lower case.
    pub uuid: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
}

/// Whether something may still be sent.
pub trait Permit: Send + Sync {
    /// Asked immediately before sending.
    fn may_send(&self) -> Result<(), Late>;
}

/// It may not be sent any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late(pub String);

/// Why a call did not come to what it should.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The device, or a check before it, said no: nothing was done.
    Refused(String),
    /// Nobody knows whether anything was done.
    Unknown(String),
}

impl From<Late> for Failure {
    fn from(late: Late) -> Self {
        Self::Refused(late.0)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

impl std::error::Error for Failure {}
