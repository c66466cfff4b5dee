//! Everything at once, by seeds: whatever the network does, nobody hears what is not so.

use palisade_devices::{Command, Device, Failure, PowerState};

use crate::bmc::Bmc;
use crate::network::Lossy;
use crate::{Yes, device};

/// Small, repeatable, and good enough for dice.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn spoilt(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        match self.roll(4) {
            0 => bytes.truncate(usize::try_from(self.roll(bytes.len() as u64)).unwrap()),
            1 => bytes.extend((0..self.roll(40)).map(|byte| u8::try_from(byte).unwrap())),
            _ => {
                for _ in 0..=self.roll(3) {
                    let at = usize::try_from(self.roll(bytes.len() as u64)).unwrap();
                    bytes[at] ^= 1 << self.roll(8);
                }
            }
        }
        bytes
    }
}

/// A network that loses, doubles, spoils and holds back one in `odds` each, and throws old datagrams in.
fn bad(seed: u64, bmc: Bmc, odds: u64) -> Lossy {
    let mut dice = Dice(seed);
    let mut old: Vec<Vec<u8>> = Vec::new();
    Lossy::new(bmc, move |passing| {
        let bytes = passing.bytes.to_vec();
        old.push(bytes.clone());
        let mut out = match dice.roll(odds) {
            0 => vec![],
            1 => vec![bytes.clone(); 2],
            2 => vec![dice.spoilt(&bytes)],
            3 => vec![dice.spoilt(&bytes), bytes],
            _ => vec![bytes],
        };
        if dice.roll(odds) == 0 {
            let any = usize::try_from(dice.roll(old.len() as u64)).unwrap();
            out.insert(0, old[any].clone());
        }
        out
    })
}

#[tokio::test(start_paused = true)]
async fn no_seed_finds_a_lie() {
    let (mut done, mut refused, mut unknown) = (0, 0, 0);
    for seed in 0..600 {
        let power = seed % 2 == 0;
        let network = bad(seed, Bmc { power, ..Bmc::default() }, 5 + seed % 11);
        let device = device(&network);
        let (command, word) = if power { (Command::Off, "off") } else { (Command::On, "on") };
        let answer = device.command("", command, &Yes::always()).await;
        let happened = network.bmc.lock().unwrap().record.contains(&word);
        match &answer {
            Ok(()) => assert!(happened, "seed {seed}: taken, and never arrived"),
            Err(Failure::Refused(why)) => assert!(!happened, "seed {seed}: done, and called refused: {why}"),
            Err(Failure::Unknown(_)) => {}
        }
        match answer {
            Ok(()) => done += 1,
            Err(Failure::Refused(_)) => refused += 1,
            Err(Failure::Unknown(_)) => unknown += 1,
        }
        let truth = if network.bmc.lock().unwrap().power { PowerState::On } else { PowerState::Off };
        if let Ok(state) = device.state("").await {
            assert_eq!(state, truth, "seed {seed}");
        }
    }
    // If nothing got through, or everything, nothing was tried.
    assert!(done > 100 && unknown + refused > 10, "{done} done, {refused} refused, {unknown} unknown");
}
