//! The permit is asked before every datagram that switches, and before no other.

use palisade_devices::{Command, Device};

use crate::bmc::Bmc;
use crate::network::{IN_SESSION, Lossy, Way};
use crate::{Yes, device, refused, unknown};

#[tokio::test(start_paused = true)]
async fn it_is_asked_once_for_one_command() {
    let network = Lossy::good(Bmc::default());
    let permit = Yes::always();
    assert_eq!(device(&network).command("", Command::Off, &permit).await, Ok(()));
    assert_eq!(permit.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_late_is_not_sent() {
    let network = Lossy::good(Bmc::default());
    let said = refused(device(&network).command("", Command::Off, &Yes::times(0)).await);
    assert!(said.contains("the fence was taken back"), "{said}");
    // The privilege and the goodbye.
    assert_eq!(network.passed(Way::ToBmc, IN_SESSION), 2);
    let bmc = network.bmc.lock().unwrap();
    assert!(bmc.power && bmc.record == ["close"]);
}

#[tokio::test(start_paused = true)]
async fn what_has_become_too_late_is_not_repeated_and_not_called_undone() {
    let network = Lossy::new(Bmc::default(), |passing| {
        let lost = (passing.way, passing.kind) == (Way::FromBmc, IN_SESSION) && passing.nth == 2;
        if lost { vec![] } else { vec![passing.bytes.to_vec()] }
    });
    let said = unknown(device(&network).command("", Command::Off, &Yes::times(1)).await);
    let words = "power off was sent once and not answered; it may not be repeated: the fence was taken back";
    assert!(said.contains(words), "{said}");
    assert_eq!(network.bmc.lock().unwrap().record, ["off", "close"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_bmc_is_asked_again_only_with_permission() {
    let network = Lossy::good(Bmc { codes: vec![0xc0], ..Bmc::default() });
    let permit = Yes::times(1);
    let said = refused(device(&network).command("", Command::Off, &permit).await);
    assert!(said.contains("the fence was taken back"), "{said}");
    assert!(network.bmc.lock().unwrap().power);
    assert_eq!(permit.asked(), 2);
}
