//! Lets a runtime answer and send any bytes as the CRI's messages, over gRPC. The client has to make
//! a history of it, and of that everything that can be made of one, without a panic, in time and in
//! bounded memory. Served to another client, all of it has to arrive as the same.

#![no_main]

use std::sync::Arc;

use cri_event_conformance::history::Entry;
use cri_event_conformance::pleg::Features;
use cri_event_conformance_fuzz::conversation::Conversation;
use cri_event_conformance_fuzz::judging::{assert_survives_encoding, judge_and_tell};
use cri_event_conformance_fuzz::plegs;
use cri_event_conformance_fuzz::serving::assert_survives_serving;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|conversation: Conversation| {
    let (case, run, entries) = conversation.history();
    assert_survives_encoding(&entries);
    assert_survives_serving(&conversation, &entries);
    plegs::follow(Features::Generic, &entries);
    plegs::follow(Features::EventedInUse, &entries);
    let entries: Vec<Arc<Entry>> = entries.into_iter().map(Arc::new).collect();
    judge_and_tell(case, run, &entries);
});
