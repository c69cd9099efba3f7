//! Tests of a check: its findings on the history of a script.

use expect_test::Expect;
use serde_yaml::with::singleton_map_recursive;

use super::judge::{broken_expectations, pending};
use super::{Check, Expectation};
use crate::case::{Case, Tier};
use crate::oracle::Index;
use crate::oracle::script::{history, render};
use crate::outcome::{Level, Levels};

pub(crate) fn case(level: Level, check: &str) -> Case {
    let yaml = serde_yaml::Deserializer::from_str(check);
    let check: Check = singleton_map_recursive::deserialize(yaml).expect("a check");
    Case {
        name: "order::test".to_owned(),
        id: "ORD-01".to_owned(),
        title: "A test.".to_owned(),
        why: String::new(),
        sources: Vec::new(),
        levels: Levels {
            cache: Some(level),
            hint: Some(level),
            observer: None,
        },
        exempt: Vec::new(),
        requirements: Vec::new(),
        tier: Tier::default(),
        tags: Vec::new(),
        needs: Vec::new(),
        exclusive: false,
        silent: false,
        provokes: None,
        steps: Vec::new(),
        stalls_a_subscriber: false,
        expect: vec![Expectation { level, check }],
        definition: String::new(),
    }
}

/// The assessment of a script by a check: the awaited event, and the violations at the end.
#[track_caller]
pub(super) fn assessment(check: &str, script: &str) -> String {
    let (case, history) = (case(Level::Must, check), history(script));
    let (claim, index) = (case.claim(), Index::new(&history));
    let waits = pending(&claim, &index).map(|awaited| format!("waits for {awaited}\n"));
    let broken = render(&broken_expectations(&claim, &index));
    let found = waits.unwrap_or_default() + &broken;
    if found.is_empty() {
        "holds".to_owned()
    } else {
        found
    }
}

/// Compares the assessment of a script by a check with the expected one.
#[track_caller]
pub(super) fn check(check: &str, script: &str, expect: Expect) {
    expect.assert_eq(&assessment(check, script));
}
