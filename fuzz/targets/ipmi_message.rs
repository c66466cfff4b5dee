//! Messages of IPMI: an answer is an answer to this request, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palisade_devices::fuzz::ipmi_message(bytes));
