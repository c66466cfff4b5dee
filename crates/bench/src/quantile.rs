//! Quantile: what most, and what nearly all, of a series stay below.

use std::time::Duration;

/// The value that this share of the series does not exceed, in milliseconds; nothing of an empty series.
pub(crate) fn millis(series: &mut [Duration], share: f64) -> Option<f64> {
    series.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a rank")]
    let rank = (series.len() as f64 * share).ceil() as usize;
    series.get(rank.max(1) - 1).map(|value| value.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_are_below_the_median_and_one_in_a_hundred_above_the_last() {
        let mut series: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(millis(&mut series, 0.5), Some(100.0));
        assert_eq!(millis(&mut series, 0.99), Some(198.0));
        assert_eq!(millis(&mut series, 1.0), Some(200.0));
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(millis(&mut [], 0.5), None);
    }
}
