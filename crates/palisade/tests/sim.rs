//! The simulation as a person runs it: the built binary, its words, and its exit code.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Output};

fn palisade(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.arg("sim").args(arguments);
    command
}

fn run(arguments: &[&str]) -> (Output, String) {
    let output = palisade(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, said)
}

fn trace_of(said: &str) -> &str {
    said.lines().find(|line| line.starts_with("trace ")).expect("it says its trace's hash")
}

#[test]
fn a_seed_is_the_same_run_in_every_process() {
    for seed in ["1", "4", "9"] {
        let (_, here) = run(&["--seed", seed]);
        let elsewhere = palisade(&["--seed", seed])
            .env_clear()
            .env("TZ", "Pacific/Auckland")
            .env("LANG", "tr_TR.UTF-8")
            .env("RUST_LOG", "trace")
            .current_dir(std::env::temp_dir())
            .output()
            .unwrap();
        let there = String::from_utf8_lossy(&elsewhere.stdout).into_owned();
        assert_eq!(trace_of(&here), trace_of(&there), "seed {seed}");
        assert_eq!(here, there, "seed {seed}");
    }
}

#[test]
fn the_timeline_fits_the_page_and_tells_what_each_actor_did() {
    let (_, said) = run(&["--seed", "3"]);
    for word in ["FAULT", "happened", "wrote", "saw", "decided", "palisade-0", "trace "] {
        assert!(said.contains(word), "no {word:?} in:\n{said}");
    }
    let wide = said.lines().find(|line| line.chars().count() > 120 && line.contains("  "));
    assert!(wide.is_none(), "{wide:?}");
}

#[test]
fn a_run_stops_right_after_an_event_and_shows_how_everything_stood() {
    let (_, whole) = run(&["--seed", "3"]);
    let event = "400";
    let (_, part) = run(&["--seed", "3", "--until", event]);
    let line = |said: &str| said.lines().find(|line| line.trim_start().starts_with("400 ")).map(str::to_owned);
    assert!(line(&whole).is_some() && line(&whole) == line(&part), "event 400 is the same in both:\n{part}");
    assert!(!part.lines().any(|line| line.trim_start().starts_with("401 ")), "nothing comes after it:\n{part}");
    for word in
        ["right after event 400", "by the truth:", "n8: On", "can write", "by the API:", "Node n1: Ready", "Pod db-0"]
    {
        assert!(part.contains(word), "no {word:?} in:\n{part}");
    }
}

#[test]
fn only_what_was_asked_for_is_told() {
    let (_, said) = run(&["--seed", "3", "--actor", "palisade-0", "--node", "n1"]);
    let told =
        said.lines().filter(|line| line.split_whitespace().next().is_some_and(|word| word.parse::<u64>().is_ok()));
    for line in told {
        assert!(line.contains("palisade-0") || line.contains("FAULT") || line.contains("BROKEN"), "{line}");
    }
}

#[test]
fn many_seeds_end_in_a_summary_and_in_what_was_reached() {
    let (output, said) = run(&["--seeds", "1..2", "--jobs", "2", "--coverage"]);
    assert!(said.lines().last().unwrap().starts_with("2 seeds: "), "{said}");
    assert!(said.lines().any(|line| line.starts_with("effect/Record")), "{said}");
    // Two seeds cannot reach everything, and what was not reached is a failure.
    assert!(!output.status.success());
    assert!(said.contains("was never reached"), "{said}");
}

#[test]
fn bad_input_is_told() {
    let (output, _) = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let (output, _) = run(&["--seeds", "9..3"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("9 to 3 are no seeds"));
    let (output, _) = run(&["--seeds", "1..2", "--until", "5"]);
    assert_eq!(output.status.code(), Some(2), "an event belongs to one seed");
}
