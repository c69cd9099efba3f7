//! Judges what a runtime may say, however wrong: the oracle, both PLEGs and every report have to
//! take it without a panic, in time and in bounded memory.

#![no_main]

use std::sync::Arc;

use cri_event_conformance::history::Entry;
use cri_event_conformance::pleg::Features;
use cri_event_conformance_fuzz::judging::{assert_survives_encoding, judge_and_tell};
use cri_event_conformance_fuzz::plegs;
use cri_event_conformance_fuzz::script::Script;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: Script| {
    let (case, run, entries) = script.history();
    assert_survives_encoding(&entries);
    plegs::follow(Features::Generic, &entries);
    plegs::follow(Features::EventedInUse, &entries);
    let entries: Vec<Arc<Entry>> = entries.into_iter().map(Arc::new).collect();
    judge_and_tell(case, run, &entries);
});
