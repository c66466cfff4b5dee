//! What a Redfish service says when it refuses: short, whatever it is.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::redfish_message(bytes));
