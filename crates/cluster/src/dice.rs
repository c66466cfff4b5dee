//! Chance, from a seed: the same seed throws the same numbers.

use std::time::Duration;

/// A generator of its own for everybody who needs one, so that one more throw here moves nobody else there.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The dice of somebody with a name, in the run with that seed.
    pub fn new(seed: u64, whose: &str) -> Self {
        // FNV-1a spreads the name, splitmix the sum.
        let name = whose.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(seed ^ name)
    }

    /// Any number (splitmix64).
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below another; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.throw().checked_rem(limit).unwrap_or_default()
    }

    /// A time of so many milliseconds, from the first to the second.
    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to.saturating_sub(from) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_throws_the_same_and_another_name_something_else() {
        let throw = |seed, whose| {
            let mut dice = Dice::new(seed, whose);
            (0..4).map(|_| dice.throw()).collect::<Vec<_>>()
        };
        assert_eq!(throw(1, "n1"), throw(1, "n1"));
        assert_ne!(throw(1, "n1"), throw(2, "n1"));
        assert_ne!(throw(1, "n1"), throw(1, "n2"));
    }

    #[test]
    fn a_time_stays_in_its_bounds() {
        let mut dice = Dice::new(7, "t");
        let times: Vec<Duration> = (0..1000).map(|_| dice.millis(5, 9)).collect();
        assert_eq!(times.iter().min(), Some(&Duration::from_millis(5)));
        assert_eq!(times.iter().max(), Some(&Duration::from_millis(9)));
    }
}
