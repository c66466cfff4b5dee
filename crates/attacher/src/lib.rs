//! Attacher: serves the VolumeAttachments of one CSI driver, as external-attacher does, and made to become the one that
//! fences.
//!
//! Promise: an attachment has its finalizer, and the node ID that is about to be used, written down before the driver is asked
//! to publish (I5); it loses the finalizer only after the driver said that the volume is unpublished from that very node ID.
//! Nothing is asked of the driver on the word of a cache: the attachment was written or read live in the same pass (I4). An
//! error is not an answer (I6): it is written into the attachment and tried again. One attachment never holds up another.
//!
//! Where it differs from external-attacher, on purpose:
//! - On detach the node ID that was written down comes before the one in CSINode. A node that was made anew under its old name
//!   has another ID, and unpublishing from that one would free a volume that the old machine still has.
//! - A node ID that changes before the volume was attached is unpublished first.
//! - The volume handle is written down too: a PersistentVolume that is gone does not hold up a detach for ever.
//! - A volume that came free, a PersistentVolume or a CSINode that changed, wakes whoever waited for it: nobody sits out a
//!   back-off of minutes in the middle of a failover.
//! - A driver that cannot publish is refused: `attachRequired: false` in its CSIDriver is what it needs.
//!
//! Left out: leader election, CSI migration of in-tree volumes, and the periodic comparison with `ListVolumes`.
//!
//! | room | is |
//! |---|---|
//! | `decide` | one attachment and the facts in, what to do next out. Pure |
//! | `capability` | how a PersistentVolume may be used, in CSI's words. Pure |
//! | `patches` | the writes, each with its preconditions. Pure |
//! | `agenda` | what is due when, and what is under way. Pure |
//! | `view` | what the watches saw |
//! | `watch` | the watches |
//! | `driver` | the CSI driver |
//! | `pass` | one attachment, carried as far as it goes |
//! | `run` | the loop |
#![forbid(unsafe_code)]

mod agenda;
mod capability;
mod decide;
mod driver;
mod names;
mod pass;
mod patches;
mod run;
mod view;
mod watch;

pub use names::finalizer;
pub use run::{Error, run};
