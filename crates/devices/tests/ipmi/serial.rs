//! The serial number: read where it can be, and never in the way of a fence.

use std::time::Duration;

use palisade_devices::{Command, Device, Identity};

use crate::bmc::Bmc;
use crate::inventory::Inventory;
use crate::network::Lossy;
use crate::{Yes, device};

const UUID: &str = "4c1d7e02-93aa-4fcb-b1c0-0cc47a123456";

fn of(inventory: &Inventory) -> Bmc {
    Bmc { fru: inventory.bytes(), ..Bmc::default() }
}

/// What is known of the machine behind this BMC, whose GUID has to be there in any case.
async fn serial(bmc: Bmc) -> Option<String> {
    let identity = device(&Lossy::good(bmc)).with_serial().identity("").await.unwrap();
    assert_eq!(identity.uuid.as_deref(), Some(UUID));
    identity.serial
}

#[tokio::test(start_paused = true)]
async fn the_products_serial_number_counts_before_the_chassis_and_the_boards() {
    let mut inventory = Inventory::of_a_server();
    assert_eq!(serial(of(&inventory)).await.as_deref(), Some("S-0815"));
    inventory.product = vec!["ACME", "Pizzabox"];
    assert_eq!(serial(of(&inventory)).await.as_deref(), Some("C-4711"));
    inventory.chassis = vec![];
    assert_eq!(serial(of(&inventory)).await.as_deref(), Some("B-1234"));
    inventory.board = vec![];
    assert_eq!(serial(of(&inventory)).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_gives_little_at_once_or_counts_in_words_is_read_all_the_same() {
    let inventory = Inventory::of_a_server();
    for piece in [255, 31, 16] {
        assert_eq!(serial(Bmc { fru_piece: piece, ..of(&inventory) }).await.as_deref(), Some("S-0815"), "{piece}");
    }
    assert_eq!(serial(Bmc { fru_words: true, ..of(&inventory) }).await.as_deref(), Some("S-0815"));
    assert_eq!(serial(Bmc { fru_piece: 8, ..of(&inventory) }).await, None, "less than anybody gives");
}

#[tokio::test(start_paused = true)]
async fn a_broken_inventory_is_not_known_and_no_error() {
    let whole = Inventory::of_a_server().bytes();
    for byte in 0..whole.len() {
        let mut spoilt = whole.clone();
        spoilt[byte] ^= 0x40;
        let known = serial(Bmc { fru: spoilt, ..Bmc::default() }).await;
        let elsewhere = ["C-4711", "B-1234", "S-0815"];
        assert!(known.as_deref().is_none_or(|known| elsewhere.contains(&known)), "byte {byte}: {known:?}");
    }
    for cut in [0, 1, 7, 8, 20, whole.len() - 1] {
        let _ = serial(Bmc { fru: whole[..cut].to_vec(), ..Bmc::default() }).await;
    }
    assert_eq!(serial(Bmc { fru: vec![0xff; 256], ..Bmc::default() }).await, None);
}

/// Five seconds, and the machine is switched off all the same.
#[tokio::test(start_paused = true)]
async fn a_bmc_that_is_silent_about_its_inventory_costs_seconds_and_no_fence() {
    let bmc = Bmc { fru_mute: true, ..of(&Inventory::of_a_server()) };
    let network = Lossy::good(bmc);
    let device = device(&network).with_serial();
    let began = tokio::time::Instant::now();
    let identity = device.identity("").await;
    assert_eq!(identity, Ok(Identity { uuid: Some(UUID.to_owned()), serial: None }));
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
    assert_eq!(device.command("", Command::Off, &Yes::always()).await, Ok(()));
    assert_eq!(network.bmc.lock().unwrap().open_sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn nobody_reads_an_inventory_who_does_not_compare_it() {
    let network = Lossy::good(of(&Inventory::of_a_server()));
    assert_eq!(device(&network).identity("").await.unwrap().serial, None);
    assert!(!network.bmc.lock().unwrap().record.contains(&"fru"));
}
