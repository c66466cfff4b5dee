//! fence_ipmilan, as it is shipped, against a BMC that others wrote.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use palisade_devices::agent::Agent;
use palisade_devices::{Command, Device, Identity, PowerState};

use crate::bmc::{Bmc, told};
use crate::{Yes, agent, gone, is_installed, unknown};

/// Long, for a machine that is busy.
const LONG: Duration = Duration::from_secs(40);

async fn ipmilan(bmc: &Bmc) -> Agent {
    agent("fence_ipmilan", &bmc.told("s3cret"), LONG).await.unwrap()
}

#[tokio::test]
async fn off_and_on_reach_the_machine() {
    let Some(bmc) = Bmc::start("power").await else { return };
    let agent = ipmilan(&bmc).await;
    assert_eq!(agent.state("").await, Ok(PowerState::On));
    assert_eq!(agent.identity("").await, Ok(Identity::default()));
    let told = agent.tell("", Command::Off, &Yes).await.unwrap();
    assert!(told.sent && told.said == "Success: Powered OFF", "{told:?}");
    assert_eq!((bmc.power().as_str(), agent.state("").await), ("0", Ok(PowerState::Off)));
    assert_eq!(agent.command("", Command::On, &Yes).await, Ok(()));
    assert_eq!((bmc.power().as_str(), agent.state("").await), ("1", Ok(PowerState::On)));
    assert_eq!(bmc.sets(), ["set power 0", "set power 1"]);
}

#[tokio::test]
async fn a_bmc_that_only_says_yes_is_not_called_off() {
    let Some(bmc) = Bmc::start("stuck").await else { return };
    bmc.mode("stuck");
    let agent = ipmilan(&bmc).await;
    let why = unknown(agent.tell("", Command::Off, &Yes).await);
    assert!(why.contains("did not do it in the agent's time"), "{why}");
    assert_eq!((bmc.power().as_str(), agent.state("").await), ("1", Ok(PowerState::On)));
}

#[tokio::test]
async fn a_command_that_the_machine_rejects_is_unknown() {
    let Some(bmc) = Bmc::start("reject").await else { return };
    bmc.mode("reject");
    let agent = ipmilan(&bmc).await;
    unknown(agent.tell("", Command::Off, &Yes).await);
    assert_eq!((bmc.power().as_str(), agent.state("").await), ("1", Ok(PowerState::On)));
}

#[tokio::test]
async fn a_machine_that_takes_its_time_is_waited_for() {
    let Some(bmc) = Bmc::start("slow").await else { return };
    bmc.mode("slow");
    let agent = ipmilan(&bmc).await;
    assert!(agent.tell("", Command::Off, &Yes).await.unwrap().sent);
    assert_eq!((bmc.power().as_str(), agent.state("").await), ("0", Ok(PowerState::Off)));
}

#[tokio::test]
async fn a_wrong_password_reaches_nothing_and_is_not_shown() {
    let Some(bmc) = Bmc::start("login").await else { return };
    let agent = agent("fence_ipmilan", &bmc.told("wr0ng-p4ssword"), LONG).await.unwrap();
    let why = unknown(agent.tell("", Command::Off, &Yes).await);
    assert!(why.contains("wrong password") && !why.contains("wr0ng-p4ssword"), "{why}");
    unknown(agent.state("").await);
    assert_eq!((bmc.power().as_str(), bmc.sets().len()), ("1", 0));
}

/// Killed, fence_ipmilan alone would leave its ipmitool behind.
#[tokio::test]
async fn an_agent_that_is_killed_leaves_no_ipmitool_behind() {
    if !is_installed("fence_ipmilan", "fence-agents") || !is_installed("ipmitool", "ipmitool") {
        return;
    }
    // It takes what is sent to it, and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let agent = agent("fence_ipmilan", &told(port, "s3cret"), Duration::from_secs(4)).await.unwrap();
    let off = agent.tell("", Command::Off, &Yes);
    let watch = async {
        for _ in 0..200 {
            if !tools(port).is_empty() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    };
    let (off, seen) = tokio::join!(off, watch);
    let why = unknown(off);
    assert!(why.contains("time was over"), "{why}");
    assert!(seen, "ipmitool was never there");
    assert!(gone(|| tools(port).is_empty()).await, "{:?}", tools(port));
}

/// The processes that talk to this port.
fn tools(port: u16) -> Vec<String> {
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains("ipmitool") && line.contains(&format!("-p {port} "))).collect()
}

#[tokio::test]
async fn a_plug_or_a_typo_is_refused_before_the_bmc_is_asked() {
    if !is_installed("fence_ipmilan", "fence-agents") {
        return;
    }
    let mut told = told(9, "s3cret");
    let one = agent("fence_ipmilan", &told, LONG).await.unwrap();
    assert!(crate::refused(one.state("3").await).contains("would ignore the plug"));
    told.plain.insert("ciphr".to_owned(), "17".to_owned());
    let why = agent("fence_ipmilan", &told, LONG).await.err().unwrap().to_string();
    assert!(why.contains("knows no parameter `ciphr`") && why.contains("cipher, "), "{why}");
}
