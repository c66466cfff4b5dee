//! The Redfish driver against sushy-emulator of sushy-tools: a service that others wrote, over TLS, with three systems.
//!
//! It applies a change of power after a random time of 1 to 11 s, as real BMCs do, so there are few of them in here. It takes a
//! password with each request, and has no sessions.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(clippy::disallowed_methods, reason = "a real process is waited for in real time")]

mod emulator;
mod python;

use std::time::{Duration, Instant};

use palisade_devices::redfish::{Login, Redfish};
use palisade_devices::{Command, Device, Failure, Late, Permit, PowerState};

use crate::emulator::{Emulator, uuid};

/// How long a change of power may take: the longest that it takes there, and a second to spare for each poll and whole second.
const AT_MOST: Duration = Duration::from_secs(15);

struct Always;

impl Permit for Always {
    fn may_send(&self) -> Result<(), Late> {
        Ok(())
    }
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    match answer {
        Err(Failure::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

/// Asks until the power is like this; every state on the way is one of the two.
async fn until(device: &Redfish, plug: &str, wanted: &PowerState) {
    let began = Instant::now();
    loop {
        let state = device.state(plug).await.unwrap();
        if state == *wanted {
            return;
        }
        assert!(matches!(state, PowerState::On | PowerState::Off), "{state:?}");
        assert!(began.elapsed() < AT_MOST, "still {state:?} after {AT_MOST:?}");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

#[tokio::test]
async fn off_is_told_and_seen_when_it_is_so_and_the_neighbours_stay_on() {
    let Some(emulator) = Emulator::start("power").await else { return };
    let device = emulator.device("s3cret");
    let two = uuid(2);
    assert_eq!(device.state(&two).await, Ok(PowerState::On));
    assert_eq!(device.command(&two, Command::Off, &Always).await, Ok(()));
    // A command is taken long before it is done: what it says right after is what it was.
    assert_eq!(device.state(&two).await, Ok(PowerState::On));
    until(&device, &two, &PowerState::Off).await;
    for neighbour in [uuid(1), uuid(3)] {
        assert_eq!(device.state(&neighbour).await, Ok(PowerState::On));
    }
    // Off once more: a service that takes it does no harm.
    assert_eq!(device.command(&two, Command::Off, &Always).await, Ok(()));
    assert_eq!(device.command(&two, Command::On, &Always).await, Ok(()));
    until(&device, &two, &PowerState::On).await;
}

#[tokio::test]
async fn a_system_is_found_by_its_id_or_its_path_and_never_by_guessing() {
    let Some(emulator) = Emulator::start("plug").await else { return };
    let device = emulator.device("s3cret");
    for plug in [uuid(3), format!("/redfish/v1/Systems/{}", uuid(3))] {
        let identity = device.identity(&plug).await.unwrap();
        assert_eq!(identity.uuid, Some(uuid(3)));
        assert_eq!(identity.serial, None, "it has none");
    }
    let why = refused(device.state("").await);
    assert!(why.contains("more than one system") && why.contains(&uuid(2)), "{why}");
    let why = refused(device.command("", Command::Off, &Always).await);
    assert!(why.contains("`plug` names none"), "{why}");
    // The name of a system leads to a redirect, which nobody follows with a password.
    let why = refused_or_unknown(device.state("node3").await);
    assert!(why.contains(&uuid(3)) && why.contains("nobody follows"), "{why}");
    let why = refused(device.command("nobody", Command::Off, &Always).await);
    assert!(why.contains("404") && why.contains("does `plug` name one of"), "{why}");
    for number in 1..=3 {
        assert_eq!(device.state(&uuid(number)).await, Ok(PowerState::On), "somebody was switched off by a guess");
    }
}

fn refused_or_unknown<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    answer.expect_err("nothing that could be used").to_string()
}

#[tokio::test]
async fn a_stranger_is_turned_away_and_does_not_try_twice() {
    let Some(emulator) = Emulator::start("login").await else { return };
    let why = refused(emulator.device("wr0ng").command(&uuid(1), Command::Off, &Always).await);
    assert!(why.contains("401") && why.contains("put the Secret right"), "{why}");
    assert!(!why.contains("wr0ng"), "{why}");
    // It offers Basic, so a session is not tried; and there is none to be had.
    assert!(!emulator.log().contains("/SessionService"), "{}", emulator.log());
    let why = refused_or_unknown(emulator.device("s3cret").with_login(Login::BySession).state(&uuid(1)).await);
    assert!(emulator.log().contains("/SessionService") && !why.contains("s3cret"), "{why}");
    assert_eq!(emulator.device("s3cret").state(&uuid(1)).await, Ok(PowerState::On));
}

#[tokio::test]
async fn a_certificate_that_nobody_vouched_for_is_told_nothing() {
    let Some(emulator) = Emulator::start("trust").await else { return };
    let why = refused_or_unknown(emulator.distrustful("s3cret").state(&uuid(1)).await);
    assert!(why.contains("certificate"), "{why}");
    assert_eq!(emulator.pinned("s3cret").state(&uuid(1)).await, Ok(PowerState::On));
}
