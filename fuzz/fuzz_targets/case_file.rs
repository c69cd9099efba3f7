//! Reads a case file.

#![no_main]

use cri_event_conformance_fuzz::targets;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if targets::case_file(bytes) {
        Corpus::Keep
    } else {
        Corpus::Reject
    }
});
