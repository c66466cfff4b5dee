//! Release: which pods go now, and one careful step after the other until their volumes are free.
//!
//! Who is decided before the first mark, because a mark cannot be undone (`plan`). Then quarantine, mark, verify, remove,
//! detach (`progress`, `detach`): whole groups, or nothing.

mod detach;
mod groups;
mod lanes;
mod out_of_service;
mod plan;
mod progress;
mod verify;

pub use groups::groups;
pub use lanes::{Lane, may_go};
pub use plan::{Kept, PODS_ON_RECORD, ReleasePlan, VOLUMES_ON_RECORD, plan};

pub(crate) use detach::{Detaching, detach};
pub(crate) use out_of_service::{OutOfService, out_of_service};
pub(crate) use progress::{Progress, caught_up, progress};

use crate::ident::VolumeName;
use crate::observe::{Observations, PodSeen};

/// The volumes behind a pod's claims, as far as they are known.
pub(crate) fn volumes_of<'a>(pod: &'a PodSeen, seen: &'a Observations) -> impl Iterator<Item = &'a VolumeName> {
    lanes::claims(pod).filter_map(|name| seen.volumes.get(name)).map(|volume| &volume.name)
}
