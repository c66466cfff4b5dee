//! Datagrams of somebody who is not the BMC: made up, changed, or recorded earlier.

use std::sync::{Arc, Mutex};

use palisade_devices::{Command, Device, PowerState};

use crate::bmc::Bmc;
use crate::network::{IN_SESSION, Lossy, RAKP_2, RAKP_4, Way};
use crate::{Yes, device, unknown};

#[tokio::test(start_paused = true)]
async fn an_answer_without_encryption_or_code_is_none() {
    for flags in [0x00, 0x40, 0x80] {
        let network = Lossy::new(Bmc { power: false, ..Bmc::default() }, move |passing| {
            let mut bytes = passing.bytes.to_vec();
            if (passing.way, passing.kind) == (Way::FromBmc, IN_SESSION) {
                bytes[5] = flags;
            }
            vec![bytes]
        });
        unknown(device(&network).state("").await);
    }
}

/// A plain reply, rightly numbered and summed up, as IPMI 1.5 and as RMCP+ would send it.
#[tokio::test(start_paused = true)]
async fn a_plain_answer_to_an_encrypted_question_is_none() {
    let network = Lossy::new(Bmc::default(), |passing| {
        if (passing.way, passing.kind) != (Way::FromBmc, IN_SESSION) || passing.nth == 1 {
            return vec![passing.bytes.to_vec()];
        }
        // Get Chassis Status, request 2, done, off.
        let said = [0x81, 0x04, 0x7b, 0x20, 0x08, 0x01, 0x00, 0x00, 0x00, 0x00, 0xd7];
        let old = [&[6, 0, 0xff, 7, 0][..], &[0; 8], &[11], &said].concat();
        let session = &passing.bytes[6..10];
        let new = [&[6, 0, 0xff, 7, 6, 0][..], session, &[9, 0, 0, 0], &[11, 0], &said].concat();
        vec![old, new]
    });
    unknown(device(&network).state("").await);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_an_earlier_session_is_none() {
    let recorded: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let tape = Arc::clone(&recorded);
    let network = Lossy::new(Bmc { power: false, ..Bmc::default() }, move |passing| {
        if (passing.way, passing.kind) != (Way::FromBmc, IN_SESSION) {
            return vec![passing.bytes.to_vec()];
        }
        let mut tape = tape.lock().unwrap();
        match passing.nth {
            1..=3 => {
                tape.push(passing.bytes.to_vec());
                vec![passing.bytes.to_vec()]
            }
            4 => vec![passing.bytes.to_vec()],
            // With the number of the session as it is now, too.
            _ => {
                let renamed = |bytes: &Vec<u8>| {
                    let mut bytes = bytes.clone();
                    bytes[6..10].copy_from_slice(&passing.bytes[6..10]);
                    bytes
                };
                tape.iter().cloned().chain(tape.iter().map(renamed)).collect()
            }
        }
    });
    assert_eq!(device(&network).state("").await, Ok(PowerState::Off));
    network.bmc.lock().unwrap().power = true;
    unknown(device(&network).state("").await);
    assert_eq!(recorded.lock().unwrap().len(), 3);
}

/// The answer to the privilege says "done" just as well as the one to the command would.
#[tokio::test(start_paused = true)]
async fn an_answer_to_something_else_in_the_same_session_is_none() {
    let mut tape = None;
    let network = Lossy::new(Bmc::default(), move |passing| match (passing.way, passing.kind, passing.nth) {
        (Way::FromBmc, IN_SESSION, 1) => {
            tape = Some(passing.bytes.to_vec());
            vec![passing.bytes.to_vec()]
        }
        (Way::FromBmc, IN_SESSION, _) => tape.iter().cloned().collect(),
        _ => vec![passing.bytes.to_vec()],
    });
    unknown(device(&network).command("", Command::Off, &Yes::always()).await);
}

#[tokio::test(start_paused = true)]
async fn a_forged_step_of_the_login_does_not_keep_the_right_one_out() {
    for kind in [RAKP_2, RAKP_4] {
        let network = Lossy::new(Bmc::default(), move |passing| {
            if (passing.way, passing.kind) != (Way::FromBmc, kind) {
                return vec![passing.bytes.to_vec()];
            }
            let mut forged = passing.bytes.to_vec();
            forged[24..].fill(0x5a);
            vec![forged, passing.bytes.to_vec()]
        });
        assert_eq!(device(&network).state("").await, Ok(PowerState::On), "{kind:#04x}");
    }
}

#[tokio::test(start_paused = true)]
async fn nonsense_in_between_is_passed_over() {
    let network = Lossy::new(Bmc::default(), |passing| {
        let bytes = passing.bytes.to_vec();
        let cut = bytes[..bytes.len() / 2].to_vec();
        vec![vec![], vec![6], vec![6, 0, 0xff, 7], vec![0xff; 300], cut, [&bytes[..], &[0; 7]].concat(), bytes]
    });
    assert_eq!(device(&network).command("", Command::Off, &Yes::always()).await, Ok(()));
    assert!(!network.bmc.lock().unwrap().power);
}
