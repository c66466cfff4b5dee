//! Golden cases of recovery: is the node back and clean, and in which order is everything undone?

use palisade_core::reason::recover::ReturnReason;
use palisade_core::recover::{return_checks, returned};

use crate::golden::{Fact, Room};
use crate::world;

pub fn rooms() -> Vec<Room> {
    // The new boot is asked for when an isolation is lifted, not by the checks.
    let checks = ReturnReason::NAMES.iter().copied().filter(|name| *name != "OldBoot").chain(["clean", "healthy"]);
    let lift = [
        "OldBoot",
        "LiftIntended",
        "Lifted",
        "Uncordon",
        "LiftQuarantine",
        "LiftOutOfService",
        "RestoreFailed",
        "Recovered",
    ];
    vec![
        Room { files: "recover/checks", run: checked, must_show: checks.map(str::to_owned).collect() },
        Room { files: "recover/lift", run: world::run, must_show: lift.map(str::to_owned).to_vec() },
    ]
}

/// Whether the node is healthy, and what speaks against letting it back in.
fn checked(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let world = world::read(facts)?;
    let mut lines = vec![if returned(&world.seen) { "healthy" } else { "unwell" }.to_owned()];
    let against = return_checks(&world.fence, &world.seen);
    if against.is_empty() {
        lines.push("clean".to_owned());
    }
    lines.extend(against.iter().map(ReturnReason::brief));
    Ok(lines)
}
