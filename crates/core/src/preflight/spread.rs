//! Preflight / spread: when a device is asked.
//!
//! Promise: a device's second within its interval follows from its names. No dice are rolled, so the same cluster is asked in the
//! same order again; and devices are dealt out over the whole interval, however alike their names are.

use crate::time::{Span, Tick};

/// The first repetition after a failure. No interval is shorter either.
pub(super) const FIRST: Span = Span::secs(30);

/// The interval as it is kept.
pub(super) fn kept(interval: Span) -> Span {
    interval.max(FIRST)
}

/// The next second of its own after `after`, for a device of this number.
pub(super) fn slot(number: u64, interval: Span, after: Tick) -> Tick {
    let interval = kept(interval).as_millis();
    let own = number % interval;
    let rounds = after.as_millis().saturating_sub(own) / interval;
    let at = own.saturating_add(rounds.saturating_mul(interval));
    let at = if at > after.as_millis() { at } else { at.saturating_add(interval) };
    Tick::at_millis(at)
}

/// How long to wait after so many failures in a row.
pub(super) fn wait(failures: u32, interval: Span) -> Span {
    let doubled = FIRST.times(1 << failures.saturating_sub(1).min(16));
    doubled.min(kept(interval))
}

/// A number for a text, the same in every process. FNV-1a, and a last stir: its upper bits know little of the last letters.
pub(super) fn hash(text: &str) -> u64 {
    let plain = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |so_far, byte| (so_far ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let stirred = (plain ^ (plain >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    stirred ^ (stirred >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_with_names_alike_are_dealt_out_over_the_interval() {
        let mut minutes = [0_u32; 10];
        for node in 0..5_000 {
            let at = slot(hash(&format!("worker-{node:04}/bmc")), Span::mins(10), Tick::START);
            minutes[usize::try_from((at.as_millis() - 1) / 60_000).unwrap()] += 1;
        }
        assert_eq!(minutes.iter().sum::<u32>(), 5_000);
        assert!(minutes.iter().all(|count| (400..600).contains(count)), "{minutes:?}");
    }

    #[test]
    fn a_device_has_one_second_of_its_own_in_each_interval() {
        let ten = Span::mins(10);
        let first = slot(12_345, ten, Tick::START);
        assert_eq!(first, Tick::at_millis(12_345));
        assert_eq!(slot(12_345, ten, first), first + ten);
        assert_eq!(slot(12_345, ten, first + Span::mins(5)), first + ten);
        assert_eq!(slot(12_345, ten, Tick::START + Span::mins(60)), Tick::at_millis(12_345 + 3_600_000));
    }

    #[test]
    fn a_device_that_fails_is_asked_sooner_and_then_more_slowly_up_to_its_interval() {
        let waits: Vec<u64> = (1..=7).map(|failures| wait(failures, Span::mins(10)).as_millis() / 1_000).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(wait(u32::MAX, Span::mins(10)), Span::mins(10));
        assert_eq!(wait(1, Span::secs(1)), FIRST, "nobody is asked every second");
    }
}
