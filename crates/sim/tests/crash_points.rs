//! A crash after each single write and each command to a device, for two stories, one operator and two.
//!
//! `PALISADE_CRASH_POINTS=every` takes every point, as CI does; without it every ninth is enough for a person who waits.
#![allow(missing_docs, clippy::panic, reason = "a test may fail loudly")]

use palisade_sim::crash::{Story, crashed_after};

fn every_point(story: Story, replicas: usize) {
    let whole = crashed_after(story, replicas, &[]);
    assert!(whole.broken.is_empty(), "{story:?} without a crash: {:#?}", whole.broken);
    assert!(whole.moved, "{story:?} without a crash does not move the database");
    assert!(whole.acts > 20, "a failover is more than {} acts", whole.acts);
    let mut broken = Vec::new();
    let every = std::env::var("PALISADE_CRASH_POINTS").is_ok_and(|which| which == "every");
    let step = if every { 1 } else { 9 };
    let points: Vec<u64> = (1..=whole.acts).step_by(step).collect();
    for &point in &points {
        let run = crashed_after(story, replicas, &[point]);
        let mut wrong = run.broken.clone();
        if !run.moved {
            wrong.push("the database came back with its node instead of being moved".to_owned());
        }
        if !wrong.is_empty() {
            let told = run.told.join("\n    ");
            broken.push(format!("{point} ({}): {}\n    {told}", run.after, wrong.join("; ")));
        }
    }
    println!(
        "{story:?} with {replicas} operators: {} of {} crash points, {} broken",
        points.len(),
        whole.acts,
        broken.len()
    );
    assert!(broken.is_empty(), "{story:?} with {replicas} operators:\n{}", broken.join("\n"));
}

#[test]
fn power_failure() {
    every_point(Story::PowerFailure, 1);
}

#[test]
fn power_failure_with_a_standby() {
    every_point(Story::PowerFailure, 2);
}

#[test]
fn partition() {
    every_point(Story::Partition, 1);
}

#[test]
fn partition_with_a_standby() {
    every_point(Story::Partition, 2);
}
