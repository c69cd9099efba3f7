//! The actions of the fuzz targets on their inputs.

use std::path::Path;
use std::sync::Arc;

use cri_event_conformance::testing::case::{Diagnostics, parse};
use cri_event_conformance::testing::history::{Body, Entry, codec};
use cri_event_conformance::testing::pleg::Features;

use crate::conversation::Conversation;
use crate::judging::{self, assert_survives_encoding, judge_and_report};
use crate::plegs;
use crate::script::Script;
use crate::serving::assert_survives_serving;

/// Reads a case file: an invalid one is rejected with a reason, and a valid one is unchanged after
/// reading its own text again. Returns whether these bytes are text: nothing reads others.
pub fn case_file(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let path = Path::new("order/fuzzed.yaml");
    match parse(path, text) {
        Ok(case) => assert_eq!(parse(path, &case.definition), Ok(case)),
        Err(found) => {
            let diagnostics = Diagnostics::from_found(found).expect_err("a refusal has a reason");
            assert!(!diagnostics.render(false).is_empty());
            assert!(!diagnostics.render(true).is_empty());
        }
    }
    true
}

/// Reads a recorded history, judges its cases by their recorded definitions, and reports them. A
/// valid history must be unchanged after writing and reading it again.
pub fn history_file(bytes: &[u8]) {
    let decoded = decoded(bytes);
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
            judge_and_report(recorded.as_ref().unwrap_or(known), *run, &entries);
        }
    }
}

/// A runtime that answers and sends any bytes as the CRI's messages, over gRPC. The client must
/// record a history, which must be judged and reported, in time and in bounded memory. Served to
/// another client, it must arrive unchanged.
pub fn messages(conversation: &Conversation) {
    let (case, run, entries) = conversation.history();
    assert_survives_encoding(&entries);
    assert_survives_serving(conversation, &entries);
    follow(&entries);
    let entries: Vec<Arc<Entry>> = entries.into_iter().map(Arc::new).collect();
    judge_and_report(case, run, &entries);
}

/// Passes the content of a recorded history to both PLEGs.
pub fn pleg(bytes: &[u8]) {
    follow(&decoded(bytes).entries);
}

/// Judges any possible messages of a runtime: the oracle, both PLEGs and every report must process
/// them, in time and in bounded memory.
pub fn replies(script: &Script) {
    let (case, run, entries) = script.history();
    assert_survives_encoding(&entries);
    follow(&entries);
    let entries: Vec<Arc<Entry>> = entries.into_iter().map(Arc::new).collect();
    judge_and_report(case, run, &entries);
}

fn follow(entries: &[Entry]) {
    plegs::follow(Features::Generic, entries);
    plegs::follow(Features::EventedInUse, entries);
}

/// A history file, or entries without frames, so that mutations need not match a checksum.
fn decoded(bytes: &[u8]) -> codec::Decoded {
    let framed = codec::decode_file(bytes);
    if framed.entries.is_empty() {
        return codec::decode(bytes);
    }
    framed
}
