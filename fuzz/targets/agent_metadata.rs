//! What agents say of themselves.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::agent_metadata(bytes));
