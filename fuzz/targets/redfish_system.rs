//! Lists of systems, and systems: only `Off` is off, and a plug never leads out of its place.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::redfish_system(bytes));
