//! The six lies: each agent is first heard plainly, and says what is not so; then it is asked as Palisade asks it.
//!
//! The truth is the device's own record.

use std::time::Duration;

use palisade_devices::{Command, Device, PowerState};

use crate::bmc::Bmc;
use crate::pdu::{PATIENT, Pdu};
use crate::{Yes, agent, is_installed, parameters, plainly, refused};

/// Long, for a machine that is busy.
const LONG: Duration = Duration::from_mins(1);

const APC: &str = ".1.3.6.1.4.1.318.1.3.4.5";
const EATON: &str = ".1.3.6.1.4.1.534.6.6.6";

fn snmp<'a>(port: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut lines = vec![("ip", "127.0.0.1"), ("ipport", port), ("community", "private"), ("snmp_version", "2c")];
    lines.extend(more);
    lines.extend(PATIENT);
    lines
}

#[tokio::test]
async fn f1_two_outlets_of_an_apc_of_which_one_stays_on() {
    let Some(pdu) = Pdu::start("f1", APC).await else { return };
    let port = pdu.port.to_string();
    let (code, said) = plainly("fence_apc_snmp", &snmp(&port, &[("plug", "3,4"), ("action", "off")]));
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "Success: Powered OFF"),
        "the lie is gone: look whether the rule can go"
    );
    assert_eq!((pdu.outlet(3).as_str(), pdu.outlet(4).as_str()), ("off", "on"));

    let agent = agent("fence_apc_snmp", &pdu.told(), LONG).await.unwrap();
    assert!(refused(agent.tell("3,4", Command::Off, &Yes).await).contains("no single plug"));
    assert!(refused(agent.state("3,4").await).contains("no single plug"));
    assert_eq!(agent.state("4").await, Ok(PowerState::On));
    assert!(agent.tell("4", Command::Off, &Yes).await.unwrap().sent);
    assert_eq!((pdu.outlet(4).as_str(), agent.state("4").await), ("off", Ok(PowerState::Off)));
}

#[tokio::test]
async fn f2_an_outlet_that_does_not_exist_is_called_off() {
    let Some(pdu) = Pdu::start("f2", APC).await else { return };
    let port = pdu.port.to_string();
    let (code, said) = plainly("fence_apc_snmp", &snmp(&port, &[("plug", "9"), ("action", "off")]));
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "Success: Already OFF"),
        "the lie is gone: look whether the rule can go"
    );

    let agent = agent("fence_apc_snmp", &pdu.told(), LONG).await.unwrap();
    assert!(refused(agent.tell("9", Command::Off, &Yes).await).contains("the device has no plug \"9\""));
    assert!(refused(agent.state("9").await).contains("the device has no plug \"9\""));
    assert_eq!(agent.state("outlet3").await, Ok(PowerState::On), "a name is in the list, too");
}

#[tokio::test]
async fn f3_two_outlets_of_an_eaton_of_which_the_other_stays_on() {
    if !is_installed("fence_eaton_snmp", "fence-agents") {
        return;
    }
    let Some(pdu) = Pdu::start("f3", EATON).await else { return };
    let port = pdu.port.to_string();
    let (code, _) = plainly("fence_eaton_snmp", &snmp(&port, &[("plug", "3,4"), ("action", "off")]));
    assert_eq!(code, Some(0), "the lie is gone: look whether the rule can go");
    assert!([3, 4].iter().any(|outlet| pdu.outlet(*outlet) == "on"), "both are off");

    let agent = agent("fence_eaton_snmp", &pdu.told(), LONG).await.unwrap();
    assert!(refused(agent.tell("3,4", Command::Off, &Yes).await).contains("no single plug"));
}

#[tokio::test]
async fn f4_a_cycle_that_did_nothing_is_called_a_success() {
    let Some(bmc) = Bmc::start("f4").await else { return };
    bmc.mode("stuck");
    let port = bmc.port.to_string();
    let lines = [
        ("ip", "127.0.0.1"),
        ("ipport", &port),
        ("username", "fence"),
        ("password", "s3cret"),
        ("lanplus", "1"),
        ("cipher", "3"),
        ("method", "cycle"),
        ("action", "reboot"),
    ];
    let (code, said) = plainly("fence_ipmilan", &lines);
    assert_eq!((code, said.as_str()), (Some(0), "Success: Rebooted"), "the lie is gone: look whether the rule can go");
    assert_eq!(bmc.power(), "1");

    let mut told = bmc.told("s3cret");
    told.plain.insert("method".to_owned(), "cycle".to_owned());
    let why = refused(agent("fence_ipmilan", &told, LONG).await.map(|_| ()));
    assert!(why.contains("`method` may not be set"), "{why}");
}

#[tokio::test]
async fn f5_a_machine_in_the_middle_of_a_cycle_is_called_off() {
    let Some(bmc) = Bmc::start("f5").await else { return };
    let agent = agent("fence_ipmilan", &bmc.told("s3cret"), LONG).await.unwrap();
    // Somebody's power cycle: off now, on in a moment.
    bmc.switch("0");
    let port = bmc.port.to_string();
    let lines = [
        ("ip", "127.0.0.1"),
        ("ipport", &port),
        ("username", "fence"),
        ("password", "s3cret"),
        ("lanplus", "1"),
        ("cipher", "3"),
        ("action", "off"),
    ];
    let (code, said) = plainly("fence_ipmilan", &lines);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "Success: Already OFF"),
        "the lie is gone: look whether the rule can go"
    );

    let cycle = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        bmc.switch("1");
    };
    let (told, ()) = tokio::join!(agent.tell("", Command::Off, &Yes), cycle);
    assert!(told.unwrap().sent);
    assert_eq!(bmc.sets(), ["set power 0"]);
    assert_eq!((bmc.power().as_str(), agent.state("").await), ("0", Ok(PowerState::Off)));
}

#[tokio::test]
async fn f6_a_service_of_many_systems_is_not_guessed_at() {
    if !is_installed("fence_redfish", "fence-agents") {
        return;
    }
    let mut told = parameters(&[("ip", "127.0.0.1"), ("username", "fence")], &[("password", "s3cret")]);
    let why = refused(agent("fence_redfish", &told, LONG).await.map(|_| ()));
    assert!(why.contains("`systems_uri`") && why.contains("takes any of them"), "{why}");
    told.plain.insert("systems-uri".to_owned(), "/redfish/v1/Systems/1".to_owned());
    assert!(agent("fence_redfish", &told, LONG).await.is_ok());
}
