//! Scenarios: what happens to a cluster, as short stories; and the embedded world with the operator in it.
#![forbid(unsafe_code)]

pub mod embedded;
