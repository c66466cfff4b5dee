//! IPMI / window: which packets of a session have been heard already.
//!
//! Promise: no packet counts twice, and none that is so old that nobody remembers whether it did.

/// How far behind the newest a packet may be: more than may come out of order, as many as a word has bits.
const REMEMBERED: u32 = u64::BITS;

/// The sequence numbers that were heard.
#[derive(Debug, Default)]
pub(super) struct Window {
    newest: Option<u32>,
    /// Bit n: the newest less n was heard.
    heard: u64,
}

impl Window {
    /// Whether this number is new. Only for packets whose code fits: anyone can write a number.
    pub(super) fn is_new(&mut self, sequence: u32) -> bool {
        // Zero is for packets outside of a session.
        if sequence == 0 {
            return false;
        }
        let Some(newest) = self.newest else {
            (self.newest, self.heard) = (Some(sequence), 1);
            return true;
        };
        let ahead = sequence.wrapping_sub(newest);
        if ahead != 0 && ahead < 1 << 31 {
            self.heard = self.heard.checked_shl(ahead).unwrap_or(0) | 1;
            self.newest = Some(sequence);
            return true;
        }
        let behind = newest.wrapping_sub(sequence);
        let bit = 1_u64.checked_shl(behind).unwrap_or(0);
        let new = behind < REMEMBERED && self.heard & bit == 0;
        self.heard |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(sequences: &[u32]) -> Vec<bool> {
        let mut window = Window::default();
        sequences.iter().map(|sequence| window.is_new(*sequence)).collect()
    }

    #[test]
    fn each_number_counts_once_in_any_order() {
        assert_eq!(heard(&[1, 3, 2, 3, 2, 1, 4]), [true, true, true, false, false, false, true]);
        assert_eq!(heard(&[0, 5, 0]), [false, true, false]);
    }

    #[test]
    fn what_is_too_old_does_not_count() {
        assert_eq!(heard(&[100, 37, 36]), [true, true, false]);
        assert_eq!(heard(&[1, 1_000_000, 1]), [true, true, false]);
    }

    #[test]
    fn numbers_go_on_after_the_last_one() {
        assert_eq!(heard(&[u32::MAX, 1, u32::MAX, 2, 1]), [true, true, false, true, false]);
    }
}
