//! Reads a case file. Nothing may panic: what is no case is told, and what is one stays the same
//! when its own text is read again.

#![no_main]

use std::path::Path;

use cri_event_conformance::case::{Diagnostics, parse};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Corpus::Reject; // Refused before anything reads it.
    };
    let path = Path::new("order/fuzzed.yaml");
    match parse(path, text) {
        Ok(case) => assert_eq!(parse(path, &case.definition), Ok(case)),
        Err(found) => {
            let told = Diagnostics::from_found(found).expect_err("a refusal has a reason");
            assert!(!told.render(false).is_empty());
            assert!(!told.render(true).is_empty());
        }
    }
    Corpus::Keep
});
