//! What the fuzz targets do with what they get.

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

/// Reads a case file: what is no case is refused with a reason, and what is one stays the same when
/// its own text is read again. Returns whether these bytes are text: nothing reads others.
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

/// Reads a recorded history, judges its cases by the definitions that it carries, and reports them.
/// What was read must be written and read again as the same.
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

/// Lets a runtime answer and send any bytes as the CRI's messages, over gRPC. The client has to make
/// a history of it, and of that everything that can be made of one, in time and in bounded memory.
/// Served to another client, all of it has to arrive as the same.
pub fn messages(conversation: &Conversation) {
    let (case, run, entries) = conversation.history();
    assert_survives_encoding(&entries);
    assert_survives_serving(conversation, &entries);
    follow(&entries);
    let entries: Vec<Arc<Entry>> = entries.into_iter().map(Arc::new).collect();
    judge_and_report(case, run, &entries);
}

/// Feeds both PLEGs with whatever a recorded history holds.
pub fn pleg(bytes: &[u8]) {
    follow(&decoded(bytes).entries);
}

/// Judges what a runtime may say, however wrong: the oracle, both PLEGs and every report have to
/// take it, in time and in bounded memory.
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

/// A history file, or, so that changes need not fit a checksum, entries without frames.
fn decoded(bytes: &[u8]) -> codec::Decoded {
    let framed = codec::decode_file(bytes);
    if framed.entries.is_empty() {
        return codec::decode(bytes);
    }
    framed
}
