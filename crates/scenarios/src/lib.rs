//! Scenarios: what happens to a cluster, as short stories; and the embedded world with the operator in it.
//!
//! | room | is |
//! |---|---|
//! | [`world`] | the verbs that a story may use |
//! | [`look`] | what a story may look at |
//! | [`stories`] | the stories, one file per theme |
//! | [`catalogue`] | all of them by name |
//! | [`failover`] | the main job with a stopwatch |
//! | [`embedded`] | the embedded cluster as a world |
//! | [`conformance`] | what every cluster's API does, embedded or real, by the same text |
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod conformance;
pub mod embedded;
pub mod failover;
pub mod look;
pub mod stories;
pub mod world;
