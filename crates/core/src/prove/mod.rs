//! Prove: what is certain about a node, how we know it, and how long it stands.

mod cover;
mod life;
mod proof;
mod readback;

pub use cover::{Basis, Coverage, cover};
pub use life::{LifeSigns, sign_of_life};
pub(crate) use proof::RecordedProof;
pub use proof::{Class, Proof, ProofId, Scope};
pub(crate) use readback::read_off;
pub use readback::{
    Judged, PlugRead, ReadPath, Sample, Seen, Verified, dumping, fenced_by_storage, judge, judge_for, person_said,
    pod_said, unpublished,
};
