//! Datagrams of IPMI, before a session and in one: any bytes can be read, and what we sealed is what is opened.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::ipmi_packet(bytes));
