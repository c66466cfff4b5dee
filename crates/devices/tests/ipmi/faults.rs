//! Datagrams that are lost, doubled, late or spoilt.

use palisade_devices::{Command, Device, PowerState};

use crate::bmc::Bmc;
use crate::network::{BEFORE, IN_SESSION, Lossy, OPEN, OPENED, RAKP_1, RAKP_2, RAKP_3, RAKP_4, Way};
use crate::{Yes, device, refused, unknown};

/// Every datagram of an off: in a session it is the privilege, the command, and the goodbye.
const ALL: [(Way, u8, usize); 14] = [
    (Way::ToBmc, BEFORE, 1),
    (Way::FromBmc, BEFORE, 1),
    (Way::ToBmc, OPEN, 1),
    (Way::FromBmc, OPENED, 1),
    (Way::ToBmc, RAKP_1, 1),
    (Way::FromBmc, RAKP_2, 1),
    (Way::ToBmc, RAKP_3, 1),
    (Way::FromBmc, RAKP_4, 1),
    (Way::ToBmc, IN_SESSION, 1),
    (Way::FromBmc, IN_SESSION, 1),
    (Way::ToBmc, IN_SESSION, 2),
    (Way::FromBmc, IN_SESSION, 2),
    (Way::ToBmc, IN_SESSION, 3),
    (Way::FromBmc, IN_SESSION, 3),
];

/// An off while `fate` befalls one datagram.
async fn off_with(which: (Way, u8, usize), fate: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Lossy {
    let network = Lossy::new(Bmc::default(), move |passing| {
        if (passing.way, passing.kind, passing.nth) == which {
            return fate(passing.bytes);
        }
        vec![passing.bytes.to_vec()]
    });
    assert_eq!(device(&network).command("", Command::Off, &Yes::always()).await, Ok(()), "{which:?}");
    assert!(!network.bmc.lock().unwrap().power);
    network
}

#[tokio::test(start_paused = true)]
async fn any_one_datagram_may_be_lost() {
    for which in ALL {
        let network = off_with(which, |_| vec![]).await;
        assert_eq!(network.bmc.lock().unwrap().open_sessions(), 0, "{which:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn any_one_datagram_may_be_spoilt() {
    for which in ALL {
        // Every step ends in something that proves or sums up what was before. What comes before a session has a sum.
        off_with(which, |bytes| {
            let mut spoilt = bytes.to_vec();
            if let Some(last) = spoilt.last_mut() {
                *last ^= 0x01;
            }
            // The right one comes as well, only later: a proof that fails does not end the wait.
            vec![spoilt, bytes.to_vec()]
        })
        .await;
    }
    for which in ALL.into_iter().filter(|which| which.1 == IN_SESSION) {
        off_with(which, |bytes| vec![bytes.iter().map(|byte| byte ^ 0x10).collect()]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn any_datagram_may_come_twice() {
    let network = Lossy::new(Bmc::default(), |passing| vec![passing.bytes.to_vec(); 2]);
    assert_eq!(device(&network).command("", Command::Off, &Yes::always()).await, Ok(()));
    assert_eq!(device(&network).state("").await, Ok(PowerState::Off));
    let bmc = network.bmc.lock().unwrap();
    assert_eq!(bmc.record, ["off", "close", "status", "close"]);
}

/// Each answer comes only when the next one does, and behind it.
#[tokio::test(start_paused = true)]
async fn answers_may_come_late_and_out_of_order() {
    for kind in [BEFORE, OPENED, RAKP_2, RAKP_4, IN_SESSION] {
        let mut held: Option<Vec<u8>> = None;
        let network = Lossy::new(Bmc::default(), move |passing| {
            if (passing.way, passing.kind) != (Way::FromBmc, kind) {
                return vec![passing.bytes.to_vec()];
            }
            match held.take() {
                None => {
                    held = Some(passing.bytes.to_vec());
                    vec![]
                }
                Some(late) => vec![passing.bytes.to_vec(), late],
            }
        });
        assert_eq!(device(&network).state("").await, Ok(PowerState::On), "{kind:#04x}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_answers_are_all_lost_is_unknown() {
    let network = Lossy::new(Bmc::default(), |passing| {
        let lost = passing.way == Way::FromBmc && passing.kind == IN_SESSION && passing.nth > 1;
        if lost { vec![] } else { vec![passing.bytes.to_vec()] }
    });
    let permit = Yes::always();
    let said = unknown(device(&network).command("", Command::Off, &permit).await);
    assert!(said.contains("bmc-1:623: power off was sent 4 times and not answered"), "{said}");
    // It was done all the same, which is why nobody may say that it was not.
    let bmc = network.bmc.lock().unwrap();
    assert!(!bmc.power && bmc.record.starts_with(&["off", "off", "off", "off"]));
    assert_eq!((permit.asked(), bmc.open_sessions()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_never_arrives_is_unknown() {
    let network = Lossy::new(Bmc::default(), |passing| {
        let lost = passing.way == Way::ToBmc && passing.kind == IN_SESSION && passing.nth > 1;
        if lost { vec![] } else { vec![passing.bytes.to_vec()] }
    });
    unknown(device(&network).command("", Command::Off, &Yes::always()).await);
    assert!(network.bmc.lock().unwrap().power);
}

/// The first one was done, and its answer lost; the second one is refused: that is no refusal of the first.
#[tokio::test(start_paused = true)]
async fn a_refusal_after_an_answer_was_lost_is_unknown() {
    let bmc = Bmc { codes: vec![0x00, 0xd4], ..Bmc::default() };
    let network = Lossy::new(bmc, |passing| {
        let lost = (passing.way, passing.kind, passing.nth) == (Way::FromBmc, IN_SESSION, 2);
        if lost { vec![] } else { vec![passing.bytes.to_vec()] }
    });
    let said = unknown(device(&network).command("", Command::Off, &Yes::always()).await);
    assert!(said.contains("0xd4") && said.contains("what came of it nobody knows"), "{said}");
    assert!(!network.bmc.lock().unwrap().power);
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_refused_for_a_lost_answer_begins_anew() {
    // RAKP 4 is lost, and the one that comes for the repeated RAKP 3 refuses, as BMCs do that have moved on.
    let network = Lossy::new(Bmc::default(), |passing| match (passing.way, passing.kind, passing.nth) {
        (Way::FromBmc, RAKP_4, 1) => vec![],
        (Way::FromBmc, RAKP_4, 2) => {
            let mut refusal = passing.bytes.to_vec();
            refusal[17] = 0x02;
            vec![refusal]
        }
        _ => vec![passing.bytes.to_vec()],
    });
    assert_eq!(device(&network).state("").await, Ok(PowerState::On));
    assert_eq!(network.passed(Way::ToBmc, OPEN), 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_in_the_middle_leaves_no_session_behind() {
    let network = Lossy::new(Bmc::default(), |passing| {
        let lost = passing.way == Way::FromBmc && passing.kind == IN_SESSION && passing.nth > 1;
        if lost { vec![] } else { vec![passing.bytes.to_vec()] }
    });
    let device = device(&network);
    let soon = std::time::Duration::from_millis(1500);
    assert!(tokio::time::timeout(soon, device.state("")).await.is_err());
    let bmc = network.bmc.lock().unwrap();
    assert_eq!((bmc.open_sessions(), bmc.record.last()), (0, Some(&"close")));
}

#[tokio::test(start_paused = true)]
async fn a_call_has_an_end_even_if_each_step_takes_long() {
    let limits = palisade_devices::ipmi::Limits { whole: std::time::Duration::from_secs(5), ..Default::default() };
    let network = Lossy::new(Bmc::default(), |passing| {
        // Only every third of a kind arrives.
        if passing.nth % 3 == 0 { vec![passing.bytes.to_vec()] } else { vec![] }
    });
    let said = unknown(device(&network).within(limits).state("").await);
    assert!(said.contains("no end within 5s"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_found_out_on_a_bad_network_too() {
    let bmc = Bmc { password: "another".to_owned(), ..Bmc::default() };
    let network = Lossy::new(bmc, |passing| vec![passing.bytes.to_vec(); 2]);
    assert!(refused(device(&network).state("").await).contains("wrong password"));
}
