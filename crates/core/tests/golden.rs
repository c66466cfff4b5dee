//! Runs every golden case of `tests/golden`; see the README there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail loudly
#![allow(missing_docs, unreachable_pub)] // the runners are read by people, not linked by anyone

#[path = "support/detect.rs"]
mod detect;
#[path = "support/golden.rs"]
mod golden;
#[path = "support/ledger.rs"]
mod ledger;
#[path = "support/request.rs"]
mod request;
#[path = "support/vet.rs"]
mod vet;

#[test]
fn every_golden_case_is_decided_as_written() {
    let rooms: Vec<golden::Room> =
        [detect::rooms(), request::rooms(), vet::rooms(), ledger::rooms()].into_iter().flatten().collect();
    golden::run_all(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")), &rooms);
}
