//! fence_dummy, whose device is a file. Its file may not be chosen, so the test runs a copy that knows another one.

use std::fs;
use std::time::Duration;

use palisade_devices::agent::{Agent, Surroundings};
use palisade_devices::{Command, Device, PowerState};
use tokio::time::Instant;

use crate::{Place, Yes, is_installed, parameters, refused, search_path};

async fn dummy(place: &Place, plain: &[(&str, &str)]) -> Result<Agent, palisade_devices::Failure> {
    let file = std::env::split_paths(&search_path()).map(|at| at.join("fence_dummy")).find(|file| file.is_file());
    let code = fs::read_to_string(file.unwrap()).unwrap();
    let status = place.path().join("status").display().to_string();
    place.program("fence_dummy", &code.replace("/tmp/fence_dummy.status", &status));
    let mut path = place.path().as_os_str().to_owned();
    path.push(":");
    path.push(search_path());
    let around = Surroundings { path, authorities: None };
    Agent::find("fence_dummy", &parameters(plain, &[]), &around, Instant::now() + Duration::from_secs(40)).await
}

#[tokio::test]
async fn what_the_file_says_is_what_is_read() {
    if !is_installed("fence_dummy", "fence-agents") {
        return;
    }
    let place = Place::new("dummy");
    place.write("status", "on");
    let agent = dummy(&place, &[]).await.unwrap();
    assert_eq!(agent.state("").await, Ok(PowerState::On));
    assert!(agent.tell("", Command::Off, &Yes).await.unwrap().sent);
    assert_eq!((place.read("status").as_str(), agent.state("").await), ("off", Ok(PowerState::Off)));
    // What the agent itself does not understand is not off.
    place.write("status", "half");
    assert!(agent.state("").await.is_err());
}

#[tokio::test]
async fn a_file_of_somebodys_choice_is_refused() {
    if !is_installed("fence_dummy", "fence-agents") {
        return;
    }
    let place = Place::new("dummy-file");
    let why = refused(dummy(&place, &[("status_file", "/etc/passwd")]).await.map(|_| ()));
    assert!(why.contains("`status_file` may not be set"), "{why}");
}
