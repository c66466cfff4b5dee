//! What a pod was told, and what it leaves behind.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::agent_report(bytes));
