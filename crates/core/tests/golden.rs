//! Runs every golden case of `tests/golden`; see the README there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail loudly
#![allow(missing_docs, unreachable_pub)] // the runners are read by people, not linked by anyone

#[path = "support/automaton.rs"]
mod automaton;
#[path = "support/detect.rs"]
mod detect;
#[path = "support/golden.rs"]
mod golden;
#[path = "support/isolate.rs"]
mod isolate;
#[path = "support/ledger.rs"]
mod ledger;
#[path = "support/prove.rs"]
mod prove;
#[path = "support/recover.rs"]
mod recover;
#[path = "support/release.rs"]
mod release;
#[path = "support/request.rs"]
mod request;
#[path = "support/vet.rs"]
mod vet;
#[path = "support/world.rs"]
mod world;

#[test]
fn every_golden_case_is_decided_as_written() {
    let rooms = [
        automaton::rooms(),
        detect::rooms(),
        isolate::rooms(),
        ledger::rooms(),
        prove::rooms(),
        recover::rooms(),
        release::rooms(),
        request::rooms(),
        vet::rooms(),
    ];
    let rooms: Vec<golden::Room> = rooms.into_iter().flatten().collect();
    golden::run_all(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")), &rooms);
}
