//! Judges what a runtime may say, however wrong.

#![no_main]

use cri_event_conformance_fuzz::script::Script;
use cri_event_conformance_fuzz::targets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: Script| targets::replies(&script));
