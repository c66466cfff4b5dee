//! Prove / life: has the node shown a sign of life since it was proven isolated?
//!
//! Promise (I6): a change counts, in whatever direction; a value that is read unchanged does not. Stamps are compared
//! with each other and never with a clock: a machine that boots with a wrong clock still lives.

use crate::ident::BootId;
use crate::reason::prove::LifeSign;

/// What a living node moves: opaque values, as the API shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifeSigns {
    /// The lease's renewTime.
    pub renewed: Option<Box<str>>,
    /// The heartbeat of the Ready condition, where the kubelet wrote it.
    pub heartbeat: Option<Box<str>>,
    /// The boot.
    pub boot: Option<BootId>,
}

/// The first thing that moved since `before`. What is no longer shown has not moved: an absent lease is no life.
pub fn sign_of_life(before: &LifeSigns, now: &LifeSigns) -> Option<LifeSign> {
    if moved(before.boot.as_ref(), now.boot.as_ref()) {
        return Some(LifeSign::NewBoot);
    }
    if moved(before.renewed.as_ref(), now.renewed.as_ref()) {
        return Some(LifeSign::LeaseRenewed);
    }
    moved(before.heartbeat.as_ref(), now.heartbeat.as_ref()).then_some(LifeSign::Heartbeat)
}

fn moved<T: PartialEq>(before: Option<&T>, now: Option<&T>) -> bool {
    now.is_some() && before != now
}
