//! Act: one call to one fence agent, made by a pod of ours, `palisade act`.
//!
//! An [`Order`] is what the pod is told, a [`Report`] is what it says. Both are texts that the cluster keeps where people can read
//! them (an annotation, a termination message), so neither ever holds a secret (I7): an order says in which file one is.
//!
//! | file | is |
//! |---|---|
//! | `order` | what is to be done |
//! | `report` | what became of it |

mod order;
mod report;

pub use order::{BadOrder, Order, Task};
pub use report::{BadReport, Look, MOST, Report, Shown, Verdict};
