//! Off, on, state and identity, where everything arrives.

use palisade_devices::ipmi::{Ciphers, GuidOrder, Ipmi, Suite};
use palisade_devices::{Command, Device, Identity, PowerState};

use crate::bmc::Bmc;
use crate::network::{IN_SESSION, Lossy, Way};
use crate::{Yes, device, login, refused, unknown};

#[tokio::test(start_paused = true)]
async fn each_suite_switches_and_reads() {
    for suite in [Suite::Three, Suite::Seventeen] {
        let network = Lossy::good(Bmc::default());
        let login = login().with_ciphers(Ciphers::Only(suite));
        let device = Ipmi::new(std::sync::Arc::new(network.clone()), login);
        assert_eq!(device.state("").await, Ok(PowerState::On));
        assert_eq!(device.command("", Command::Off, &Yes::always()).await, Ok(()));
        assert_eq!(device.state("").await, Ok(PowerState::Off));
        assert_eq!(device.command("", Command::On, &Yes::always()).await, Ok(()));
        assert_eq!(device.state("").await, Ok(PowerState::On));
        let bmc = network.bmc.lock().unwrap();
        let all = ["status", "close", "off", "close", "status", "close", "on", "close", "status", "close"];
        assert_eq!((&bmc.record[..], bmc.open_sessions()), (&all[..], 0), "suite {suite}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_machine_is_told_by_the_guid_of_the_system() {
    let network = Lossy::good(Bmc::default());
    let uuid = Some("4c1d7e02-93aa-4fcb-b1c0-0cc47a123456".to_owned());
    assert_eq!(device(&network).identity("").await, Ok(Identity { uuid, serial: None }));
    let turned = device(&network).with_guid_order(GuidOrder::Smbios).identity("").await.unwrap();
    assert_eq!(turned.uuid.as_deref(), Some("027e1d4c-aa93-cb4f-b1c0-0cc47a123456"));
    network.bmc.lock().unwrap().no_guid = true;
    assert_eq!(device(&network).identity("").await, Ok(Identity::default()));
}

#[tokio::test(start_paused = true)]
async fn a_plug_that_a_bmc_does_not_have_is_refused_before_anything_is_sent() {
    let network = Lossy::good(Bmc::default());
    let said = refused(device(&network).command("3", Command::Off, &Yes::always()).await);
    assert!(said.contains("a BMC is in one machine, and `plug` names \"3\""), "{said}");
    refused(device(&network).state("3").await);
    assert_eq!(network.passed(Way::ToBmc, crate::network::BEFORE), 0);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_too_short_says_nothing() {
    let network = Lossy::good(Bmc { power: false, short_status: true, ..Bmc::default() });
    let said = unknown(device(&network).state("").await);
    assert!(said.contains("bmc-1:623: the state of the power: the answer has 1 bytes"), "{said}");
}

async fn off_with(codes: &[u8], power: bool) -> (Result<(), palisade_devices::Failure>, Lossy) {
    let network = Lossy::good(Bmc { codes: codes.to_vec(), power, ..Bmc::default() });
    let answer = device(&network).command("", Command::Off, &Yes::always()).await;
    assert_eq!(network.bmc.lock().unwrap().open_sessions(), 0, "the session is still open");
    (answer, network)
}

#[tokio::test(start_paused = true)]
async fn a_code_that_says_no_is_a_refusal_with_words() {
    for (code, words) in [
        (0xd4, "this user may not do that; give it the privilege OPERATOR"),
        (0xd5, "in the state that the machine is in"),
        (0xd6, "switched off; allow it in its settings"),
        (0xc1, "does not know this command"),
    ] {
        let (answer, network) = off_with(&[code], true).await;
        let said = refused(answer);
        assert!(said.starts_with("bmc-1:623: power off: ") && said.contains(words), "{said}");
        assert!(said.contains(&format!("{code:#04x}")) && !network.bmc.lock().unwrap().record.contains(&"off"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_code_that_leaves_it_open_is_unknown() {
    for code in [0xff, 0xc3, 0xce, 0xcf, 0xd1, 0x7e, 0x80] {
        unknown(off_with(&[code], true).await.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_refuses_to_switch_off_what_is_off_has_as_good_as_taken_it() {
    assert_eq!(off_with(&[0xd5], false).await.0, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_busy_bmc_is_asked_again_and_not_for_ever() {
    let (answer, network) = off_with(&[0xc0, 0xc0], true).await;
    assert_eq!(answer, Ok(()));
    assert_eq!(network.bmc.lock().unwrap().record, ["off", "close"]);
    let (answer, network) = off_with(&[0xc0; 9], true).await;
    assert!(unknown(answer).contains("busy, and stayed so"));
    // Privilege, three times the command, goodbye.
    assert_eq!(network.passed(Way::ToBmc, IN_SESSION), 5);
}
