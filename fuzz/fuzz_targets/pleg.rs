//! Feeds both PLEGs with a recorded history.

#![no_main]

use cri_event_conformance_fuzz::targets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| targets::pleg(bytes));
