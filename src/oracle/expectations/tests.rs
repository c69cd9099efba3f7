//! For each check, histories on which it holds, is broken, or is still waiting.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

mod announced;
mod events;
mod statuses;
mod times;

use expect_test::Expect;
use serde_yaml::with::singleton_map_recursive;

use super::{check as broken, pending};
use crate::case::{Case, Check, Expectation, Tier};
use crate::oracle::script::{history, render};
use crate::outcome::{Level, Levels};

pub(in crate::oracle) fn case(level: Level, check: &str) -> Case {
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
        requirements: Vec::new(),
        tier: Tier::default(),
        tags: Vec::new(),
        needs: Vec::new(),
        exclusive: false,
        silent: false,
        provokes: None,
        steps: Vec::new(),
        expect: vec![Expectation { level, check }],
        definition: String::new(),
    }
}

/// What a check says of a script: what it waits for, and what is broken if nothing more comes.
#[track_caller]
fn says(check: &str, script: &str) -> String {
    let (case, history) = (case(Level::Must, check), history(script));
    let waits = pending(&case, &history).map(|awaited| format!("waits for {awaited}\n"));
    let broken = render(&broken(&case, &history));
    let said = waits.unwrap_or_default() + &broken;
    if said.is_empty() {
        "holds".to_owned()
    } else {
        said
    }
}

#[track_caller]
pub(in crate::oracle) fn check(check: &str, script: &str, expect: Expect) {
    expect.assert_eq(&says(check, script));
}
