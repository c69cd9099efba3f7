//! `ci/expectations/KINDS.md` lists each kind of finding and its sources. The built-in expectation
//! files name only kinds that their cases and invariants can have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use cri_event_conformance::testing::case::load;
use cri_event_conformance::testing::checks::{Check, Claim};
use cri_event_conformance::testing::oracle::INVARIANTS;
use cri_event_conformance::testing::outcome::Kind;
use cri_event_conformance::testing::verdicts::{Known, builtin_files, kinds_by_id};
use serde_yaml::with::singleton_map_recursive;

use crate::golden::assert_file;

/// The sources of each kind: invariants by their ids, checks by their words, and every case. A
/// check is queried as used in the cases; the rule named by a check `invariant` is not repeated
/// there.
fn finders() -> BTreeMap<Kind, BTreeSet<String>> {
    let mut finders = BTreeMap::<Kind, BTreeSet<String>>::new();
    let mut add = |kinds: Vec<Kind>, finder: &str| {
        for kind in kinds {
            finders.entry(kind).or_default().insert(finder.to_owned());
        }
    };
    for rule in INVARIANTS {
        add(rule.kinds.to_vec(), rule.id);
    }
    let cases = load::embedded().expect("the cases are valid");
    let no_such_rule = serde_yaml::Deserializer::from_str("invariant: {of: c, rule: INV-99}");
    let no_such_rule = singleton_map_recursive::deserialize(no_such_rule).expect("a check");
    let expected = cases.iter().flat_map(|case| &case.expect);
    let checks = expected.map(|expectation| &expectation.check);
    let own = checks.filter(|check| !matches!(check, Check::Invariant(_)));
    for check in own.chain([&no_such_rule]) {
        add(check.kinds(), &format!("`{}`", check.word()));
    }
    let without_checks = Claim {
        expectations: &[],
        ..cases[0].claim()
    };
    add(without_checks.kinds().into_iter().collect(), "any case");
    finders
}

/// A kind without a source is a leftover; a finding of an undeclared kind fails a debug assertion.
#[test]
fn each_kind_of_finding_is_found_by_a_rule_a_check_or_a_step() {
    let finders = finders();
    let mut text = String::from(
        "# Kinds of findings\n\nThe keys that `finding` of an expectation file can name, and what \
         can find them: invariants, checks of\ncases, or any case whose steps wait in vain or make \
         nothing.\n\n| kind | what it means | found by |\n|---|---|---|\n",
    );
    for kind in Kind::ALL {
        let by = finders
            .get(kind)
            .unwrap_or_else(|| panic!("nothing finds `{kind}`"));
        let by: Vec<&str> = by.iter().map(String::as_str).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{kind}` | {} | {} |",
            kind.meaning(),
            by.join(", ")
        );
    }
    assert_file("ci/expectations/KINDS.md", &text);
}

#[test]
fn built_in_expectations_name_findings_that_their_cases_can_have() {
    let cases = load::embedded().expect("the cases are valid");
    let kinds = kinds_by_id(&cases);
    for file in builtin_files() {
        let known = Known::parse(&file).expect("it is right");
        assert_eq!(known.impossible_finding(&kinds), None, "{}", file.path);
    }
}
