//! Lets a runtime answer and send any bytes as the CRI's messages.

#![no_main]

use cri_event_conformance_fuzz::conversation::Conversation;
use cri_event_conformance_fuzz::targets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|conversation: Conversation| targets::messages(&conversation));
