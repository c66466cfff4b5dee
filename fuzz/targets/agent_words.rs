//! What agents write, and how they end: off is nothing but their very words for it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::agent_words(bytes));
