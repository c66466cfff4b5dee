//! Messages: one file per service, and one for what they share.
//!
//! The names are those of the specification, so that whoever knows CSI finds what is looked for. Maps are ordered, so that
//! the same message gives the same bytes.

pub mod controller;
pub mod identity;
pub mod node;
pub mod registration;
pub mod volume;

mod hidden;
