//! Sessions that a Redfish service makes: closed at the service itself, and the token never shown.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::redfish_session(bytes));
