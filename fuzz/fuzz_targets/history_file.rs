//! Reads a recorded history, judges its cases by the definitions that it carries, and tells it.
//! Nothing may panic, and what was read must be written and read again as the same.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use cri_event_conformance::case::parse;
use cri_event_conformance::history::{Body, Entry, codec};
use cri_event_conformance_fuzz::judging::{self, assert_survives_encoding, judge_and_tell};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let decoded = codec::decode(bytes);
    if let Some(fault) = &decoded.fault {
        assert!(!fault.to_string().is_empty());
    }
    assert_survives_encoding(&decoded.entries);
    let entries: Vec<Arc<Entry>> = decoded.entries.into_iter().map(Arc::new).collect();
    for entry in &entries {
        if let Body::CaseBegan {
            case: run,
            id,
            definition,
            ..
        } = &entry.body
        {
            let known = judging::case(id);
            let path = format!("{}.yaml", known.name.replace("::", "/"));
            let recorded = parse(Path::new(&path), definition);
            judge_and_tell(recorded.as_ref().unwrap_or(known), *run, &entries);
        }
    }
});
