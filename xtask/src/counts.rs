//! How many tests ran: read from the closing lines of the runners, which are the only ones that know.

use std::ops::AddAssign;

/// Tests, or checks that count as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    pub(crate) const PASSED: Self = Self { passed: 1, failed: 0, skipped: 0 };
    pub(crate) const FAILED: Self = Self { passed: 0, failed: 1, skipped: 0 };
    pub(crate) const SKIPPED: Self = Self { passed: 0, failed: 0, skipped: 1 };

    /// What ran; a skipped test is not one of them.
    pub(crate) fn ran(self) -> u64 {
        self.passed + self.failed
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Adds up the closing lines in a stream that arrives in pieces of any size.
#[derive(Default)]
pub(crate) struct Counter {
    line: Vec<u8>,
    tally: Tally,
}

impl Counter {
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            if byte == b'\n' {
                self.close_line();
            } else {
                self.line.push(byte);
            }
        }
    }

    pub(crate) fn finish(mut self) -> Tally {
        self.close_line();
        self.tally
    }

    fn close_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        if let Some(tally) = closing_line(&line).or_else(|| seeds_line(&line)).or_else(|| lab_line(&line)) {
            self.tally += tally;
        }
        self.line.clear();
    }
}

/// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`, the last line of every cargo test binary.
fn closing_line(line: &str) -> Option<Tally> {
    let plain = without_colour(line);
    let (verdict, counts) = plain.trim().strip_prefix("test result: ")?.split_once(". ")?;
    if !matches!(verdict, "ok" | "FAILED") {
        return None;
    }
    let count = |word: &str| counts.split(';').find_map(|part| part.trim().strip_suffix(word)?.trim_end().parse().ok());
    Some(Tally { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored")? })
}

/// Reads `2000 seeds: 1999 passed, 1 failed; …`, the last line of `palisade sim --seeds`: each seed is a run of its own.
fn seeds_line(line: &str) -> Option<Tally> {
    let (seeds, counts) = line.trim().split_once(" seeds: ")?;
    let seeds: u64 = seeds.parse().ok()?;
    let count =
        |word: &str| counts.split([',', ';']).find_map(|part| part.trim().strip_suffix(word)?.trim_end().parse().ok());
    let tally = Tally { passed: count("passed")?, failed: count("failed")?, skipped: 0 };
    (tally.ran() == seeds).then_some(tally)
}

/// Reads `lab: 31 passed, 0 failed`, the closing line of `cargo xtask lab test`.
fn lab_line(line: &str) -> Option<Tally> {
    let (passed, failed) = line.trim().strip_prefix("lab: ")?.split_once(", ")?;
    let count = |text: &str, word: &str| text.strip_suffix(word)?.trim_end().parse().ok();
    Some(Tally { passed: count(passed, "passed")?, failed: count(failed, "failed")?, skipped: 0 })
}

/// Takes out the escape sequences that colour a terminal: `ESC [ … letter`, and the `ESC ( B` of a reset.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, text)| text);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(pieces: &[&str]) -> Tally {
        let mut counter = Counter::default();
        for piece in pieces {
            counter.feed(piece.as_bytes());
        }
        counter.finish()
    }

    #[test]
    fn every_binary_of_a_run_counts() {
        let tally = counted(&["\
running 2 tests
test a ... ok

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

test result: FAILED. 3 passed; 4 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.10s
"]);
        assert_eq!(tally, Tally { passed: 5, failed: 4, skipped: 1 });
        assert_eq!(tally.ran(), 9);
    }

    #[test]
    fn a_line_may_arrive_in_pieces_and_end_without_a_newline() {
        let tally = counted(&["test res", "ult: ok. 12 pas", "sed; 0 failed; 0 ignored"]);
        assert_eq!(tally, Tally { passed: 12, failed: 0, skipped: 0 });
    }

    #[test]
    fn colour_does_not_hide_the_verdict() {
        let tally = counted(&["test result: \u{1b}[32mok\u{1b}(B\u{1b}[m. 1 passed; 0 failed; 0 ignored\n"]);
        assert_eq!(tally, Tally::PASSED);
        let tally = counted(&["test result: \u{1b}[1;31mFAILED\u{1b}[0m. 0 passed; 1 failed; 0 ignored\n"]);
        assert_eq!(tally, Tally::FAILED);
    }

    #[test]
    fn seeds_count_one_by_one() {
        let tally = counted(&["2000 seeds: 1997 passed, 3 failed; 120 s, 1000 a minute, 500 a minute and job\n"]);
        assert_eq!(tally, Tally { passed: 1997, failed: 3, skipped: 0 });
        assert_eq!(seeds_line("10 seeds: 7 passed, 1 failed; 2 s"), None, "two seeds are nowhere");
        assert_eq!(seeds_line("all seeds: 1 passed, 0 failed"), None);
    }

    #[test]
    fn the_tests_of_the_lab_count_one_by_one() {
        assert_eq!(counted(&["\nlab: 29 passed, 2 failed\n"]), Tally { passed: 29, failed: 2, skipped: 0 });
        assert_eq!(lab_line("lab 3 is up: 4 machines"), None);
        assert_eq!(lab_line("lab: all passed, none failed"), None);
    }

    #[test]
    fn prose_about_results_is_not_a_result() {
        assert_eq!(closing_line("the test result: ok. 1 passed; 0 failed; 0 ignored"), None);
        assert_eq!(closing_line("test result: fine. 1 passed; 0 failed; 0 ignored"), None);
        assert_eq!(closing_line("test result: ok. nothing to count"), None);
        assert_eq!(closing_line(""), None);
    }
}
