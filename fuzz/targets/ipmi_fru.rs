//! Inventories of machines: a serial number is text, or not known.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::ipmi_fru(bytes));
