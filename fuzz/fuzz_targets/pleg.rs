//! Feeds both PLEGs with whatever a recorded history holds. Nothing may panic.

#![no_main]

use cri_event_conformance::history::codec;
use cri_event_conformance::pleg::Features;
use cri_event_conformance_fuzz::plegs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let entries = codec::decode(bytes).entries;
    plegs::follow(Features::Generic, &entries);
    plegs::follow(Features::EventedInUse, &entries);
});
