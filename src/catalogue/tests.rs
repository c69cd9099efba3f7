//! The references resolve, each MUST is checked, and the text is as expected.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "expect-test writes them so"
)]

use std::collections::BTreeSet;
use std::path::Path;

use expect_test::{Expect, expect};

use super::*;
use crate::case::load;
use crate::history::ExpectationFile;
use crate::model::faults;
use crate::outcome::{area, is_invariant};
use crate::verdicts::builtin_files;

fn catalogue() -> Catalogue {
    let cases = load::embedded().expect("the cases are valid");
    let requirements = load::requirements(None).expect("the requirements are valid");
    let defects = load::defects().expect("the defects are valid");
    Catalogue::new(cases, requirements, defects)
}

#[test]
fn no_reference_dangles() {
    let catalogue = catalogue();
    let dangling: Vec<_> = catalogue.dangling().collect();
    assert!(dangling.is_empty(), "no such requirement: {dangling:?}");
    let ids: BTreeSet<&str> = catalogue.checkers().map(|checker| checker.id).collect();
    for defect in &catalogue.defects {
        for id in defect.noticed_by.iter().chain(&defect.also_shown_in) {
            assert!(ids.contains(id.as_str()), "{} names {id}", defect.name);
        }
    }
}

#[test]
fn each_defect_has_a_hook_and_each_hook_a_defect() {
    let catalogue = catalogue();
    let defects: Vec<&str> = catalogue
        .defects
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let hooks: BTreeSet<&str> = faults().map(|hook| hook.name).collect();
    assert_eq!(hooks.len(), faults().count(), "two hooks have one name");
    let unhooked: Vec<_> = defects
        .iter()
        .filter(|name| !hooks.contains(*name))
        .collect();
    assert!(
        unhooked.is_empty(),
        "no hook in src/model/defects: {unhooked:?}"
    );
    let unknown: Vec<_> = hooks
        .iter()
        .filter(|name| !defects.contains(name))
        .collect();
    assert!(unknown.is_empty(), "not in cases/defects.yaml: {unknown:?}");
}

/// Cases in `noticed-by` are not repeated in the description.
#[test]
fn a_defect_names_each_case_once() {
    for defect in &catalogue().defects {
        let mut named = BTreeSet::new();
        for id in defect.noticed_by.iter().chain(&defect.also_shown_in) {
            assert!(named.insert(id), "{} names {id} twice", defect.name);
        }
        let is_case = |id: &String| !is_invariant(id);
        assert!(defect.also_shown_in.iter().all(is_case), "{}", defect.name);
    }
}

#[test]
fn each_case_and_invariant_checks_a_requirement() {
    let catalogue = catalogue();
    let idle: Vec<_> = catalogue
        .checkers()
        .filter(|checker| checker.requirements.is_empty())
        .map(|checker| checker.id.to_owned())
        .collect();
    assert!(idle.is_empty(), "without a requirement: {idle:?}");
}

/// In each profile, each MUST is checked as one, or `later` gives the reason why not.
#[test]
fn each_requirement_case_and_invariant_belongs_to_one_guarantee() {
    let catalogue = catalogue();
    let scopes = || Guarantee::ALL.map(Guarantee::scope).into_iter();
    let requirements = catalogue.requirements.iter().map(|it| it.id.as_str());
    let listed = scopes().flat_map(|scope| scope.requirements);
    assert_eq!(sorted(listed.copied()), sorted(requirements));
    let listed = sorted(scopes().flat_map(|scope| scope.areas).copied());
    let areas = catalogue.cases.iter().map(|case| area(&case.name));
    let areas: BTreeSet<&str> = areas.collect();
    assert!(listed.iter().all(|area| areas.contains(area)), "{listed:?}");
    assert!(listed.is_sorted_by(|a, b| a < b), "twice: {listed:?}");
    for checker in catalogue.checkers() {
        assert!(checker.guarantee().is_some(), "{}", checker.id);
    }
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

#[test]
fn each_must_is_checked_or_says_why_not() {
    let catalogue = catalogue();
    let unchecked = catalogue.unchecked();
    let forgotten: Vec<_> = unchecked
        .filter(|(requirement, _)| requirement.later.is_none())
        .map(|(requirement, profile)| format!("{} in {profile}", requirement.id))
        .collect();
    assert!(forgotten.is_empty(), "nothing checks {forgotten:?}");
}

/// Requirements that are checked have no `later`.
#[test]
fn later_stands_only_where_a_must_is_unchecked() {
    let catalogue = catalogue();
    let unchecked: BTreeSet<&str> = catalogue
        .unchecked()
        .map(|(requirement, _)| requirement.id.as_str())
        .collect();
    let stale: Vec<&str> = catalogue
        .requirements
        .iter()
        .filter(|requirement| requirement.later.is_some())
        .map(|requirement| requirement.id.as_str())
        .filter(|id| !unchecked.contains(id))
        .collect();
    assert!(stale.is_empty(), "checked by now: {stale:?}");
}

#[test]
fn the_expectation_files_are_all_there() {
    let runtimes = catalogue().expectations.len();
    assert_eq!(runtimes, builtin_files().len());
    assert!(runtimes > 0);
}

/// A catalogue of one case without references.
fn small() -> Catalogue {
    let case = "id: ORD-99
title: A sandbox runs.
why: >-
  Nobody can do anything in one
  that does not.
sources: [cri-o/cri-o#1]
requirements: [X1, X2]
tier: full
tags: [slow]
levels: {cache: must, hint: should}
exclusive: true
steps:
  - sandbox: {as: pod}
expect:
  - includes: {of: pod, in-order: [started]}
";
    let case = crate::case::parse(Path::new("order/runs.yaml"), case).expect("it is right");
    let requirement = Requirement {
        id: "X1".to_owned(),
        sentence: "Sandboxes run.".to_owned(),
        sources: vec!["KEP-3386".to_owned()],
        breaks: "Nothing runs.".to_owned(),
        levels: case.levels,
        later: Some("observers are not asked".to_owned()),
    };
    let known = "runtime: a runtime
known:
  - {case: ORD-99, reason: it does not, link: https://example.org, sometimes: true}
";
    let file = ExpectationFile {
        path: "known.yaml".to_owned(),
        text: known.to_owned(),
    };
    let known = Known::parse(&file).expect("it is right");
    Catalogue {
        expectations: vec![known],
        ..Catalogue::new(vec![case], vec![requirement], Vec::new())
    }
}

#[track_caller]
fn check(id: &str, expect: &Expect) {
    expect.assert_eq(&small().explain(id, 100).expect("it exists"));
}

#[test]
fn a_case_is_explained() {
    check(
        "ORD-99",
        &expect![[r#"
            ORD-99 order::runs
              A sandbox runs.

            why it matters
              Nobody can do anything in one that does not.

            levels
              cache must, hint should; tier full; proves Ordered; tags slow; exclusive

            requirements
              - X1 Sandboxes run.
              - X2 (there is no such requirement)

            sources
              - cri-o/cri-o#1

            definition
              exclusive: true
              steps:
                - sandbox: {as: pod}
              expect:
                - includes: {of: pod, in-order: [started]}

            known to fail on
              - a runtime, sometimes: it does not (https://example.org)
        "#]],
    );
}

#[test]
fn a_requirement_is_explained() {
    check(
        "X1",
        &expect![[r#"
        X1
          Sandboxes run.

        if violated
          Nothing runs.

        levels
          cache must, hint should

        sources
          - KEP-3386

        checked by
          - ORD-99 A sandbox runs. (cache must, hint should)

        not checked in full yet
          observers are not asked
    "#]],
    );
}

#[test]
fn what_breaks_an_invariant_and_who_is_reported() {
    let text = catalogue().explain("INV-15", 100).expect("it exists");
    for part in [
        "\nlevels\n  cache must, hint should; judged on",
        "\nrequirements\n  - R15 ",
        "\ndefects that it notices\n  - own-status-missing: ",
        "\nknown to fail on\n  - containerd <2.0, sometimes: ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_defect_is_explained_with_how_to_see_it() {
    let text = catalogue()
        .explain("drop-every-ninth", 100)
        .expect("it exists");
    for part in [
        "drop-every-ninth\n  Every ninth event ",
        "\nsimilar to\n  containerd/containerd#9652",
        "\nrequirements\n  - R5 ",
        "\nnoticed by\n  - CMP-01 ",
        "\nreproduce with\n  cri-event-conformance --runtime-endpoint model --defect drop-every-ninth",
        " ENDPOINT --inject drop-every-ninth --tier full CMP-01 REC-05 SCL-02\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn capital_letters_and_names_do_not_matter() {
    let catalogue = catalogue();
    for (one, other) in [
        ("FLR-02", "flr-02"),
        ("INV-15", "Invariant::Containers-In-Snapshot"),
        ("R22", "r22"),
        ("drop-stopped", "DROP-STOPPED"),
    ] {
        assert_eq!(catalogue.explain(one, 100), catalogue.explain(other, 100));
    }
}

#[test]
fn what_does_not_exist_is_reported_with_what_may_be_meant() {
    let text = |id: &str| {
        catalogue()
            .explain(id, 100)
            .expect_err("it does not")
            .to_string()
    };
    let unknown = |id, help| format!("there is nothing of the name `{id}` to explain; {help}");
    assert_eq!(text("inv-1"), unknown("inv-1", "did you mean `INV-01`?"));
    assert_eq!(
        text("drop-stoped"),
        unknown("drop-stoped", "did you mean `drop-stopped`?")
    );
    assert_eq!(
        text("nonsense"),
        unknown("nonsense", "`--list` and `defects` list all")
    );
}

#[test]
fn the_pages_name_all_and_link_only_each_other() {
    let catalogue = catalogue();
    let pages = catalogue.pages();
    let files: BTreeSet<&str> = pages.iter().map(|page| page.file.as_str()).collect();
    assert_eq!(files.len(), pages.len(), "two pages have one name");
    let links = |text: &str| -> BTreeSet<String> {
        let ends = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        ends.filter(|to| !to.starts_with("https://"))
            .map(str::to_owned)
            .collect()
    };
    for page in &pages {
        let links = links(&page.text);
        let dangling: Vec<_> = links
            .iter()
            .filter(|to| !files.contains(to.as_str()))
            .collect();
        assert!(dangling.is_empty(), "{}: {dangling:?}", page.file);
    }
    let summary = pages.last().unwrap();
    assert_eq!(links(&summary.text).len(), pages.len() - 1);
    let checked = links(&pages.iter().find(|page| page.file == "R6.md").unwrap().text);
    assert!(checked.contains("INV-11.md"), "{checked:?}");
}
