//! The report that CI systems read: `JUnit` XML.
//!
//! One `testsuite`, named after the runtime, holds one `testcase` per outcome: `classname` is
//! `cri-event-conformance.<area>`, which Jenkins shows as a package and its class, and `name` is
//! the outcome's id and name with its repetition, as everywhere else; GitLab tells tests apart by
//! both. The verdicts become:
//!
//! | verdict         | element   | `type`                                     |
//! |-----------------|-----------|--------------------------------------------|
//! | pass            | none      |                                            |
//! | fail            | `failure` | ids of the broken rules                    |
//! | unexpected pass | `failure` | `unexpected-pass`: the list of known failures is out of date |
//! | error           | `error`   | `undecided`                                |
//! | skip            | `skipped` | `skip`                                     |
//! | inconclusive    | `skipped` | `inconclusive`                             |
//! | known           | `skipped` | `known`                                    |
//!
//! The suite's properties are the verdicts in the profiles, such as `cache.verdict`, and the counts
//! behind them, such as `cache.must.passed`. The properties of a test case are its `id`, its
//! `verdict` and, where there are any, `kinds`, the kinds of its findings, and `broken-in`, the ids
//! of the cases whose histories break an invariant, each separated by spaces.
//! [`super::Failed`] reads these.
//!
//! `message` is one line; everything else stands in the element's text, or in `system-out` where
//! the element has none. All text goes through `report::xml`, so that no runtime can make the
//! document ill-formed.

use std::fmt::Display;
use std::io::{self, Write};

use crate::outcome::{Outcome, RunReport, Standing, Verdict, Violation};

use super::calendar::timestamp;
use super::text::{cause, failure_in_full};
use super::xml::Element;

const SUITE: &str = "cri-event-conformance";

/// The property of a test case with the id of its case or invariant.
pub(super) const ID: &str = "id";

/// The property with its verdict, as a JSON report has it.
pub(super) const VERDICT: &str = "verdict";

/// The property with the ids of the cases whose histories break an invariant.
pub(super) const BROKEN_IN: &str = "broken-in";

/// Writes the report as a whole XML document.
///
/// # Errors
///
/// Only those of the writer.
pub fn write(report: &RunReport, mut out: impl Write) -> io::Result<()> {
    let suites = Element::new("testsuites").child(suite(report));
    writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>{suites}")
}

fn suite(report: &RunReport) -> Element {
    let runtime = &report.info.runtime;
    let name = format!("{} {}", runtime.runtime_name, runtime.runtime_version);
    let failures = report.count(Verdict::Fail) + report.count(Verdict::UnexpectedPass);
    let time: f64 = report.outcomes.iter().map(time).sum();
    let about = format!(
        "run {}\nsuite {}\nendpoint {}\nimage {}\n",
        report.info.run, report.info.suite, report.info.endpoint, report.image,
    );
    let suite = Element::new("testsuite")
        .attribute("id", 0)
        .attribute("name", name)
        .attribute("package", SUITE)
        .attribute("tests", report.outcomes.len())
        .attribute("errors", report.count(Verdict::Error))
        .attribute("failures", failures)
        .attribute("hostname", "localhost")
        .attribute("timestamp", timestamp(report.began))
        .attribute("time", time)
        .child(properties_of_profiles(report))
        .children(report.outcomes.iter().map(test_case))
        .child(Element::new("system-out").text(&about));
    if report.faults.is_empty() {
        suite
    } else {
        suite.child(Element::new("system-err").text(&report.faults.join("\n")))
    }
}

fn properties_of_profiles(report: &RunReport) -> Element {
    let properties = report.standings().into_iter().flat_map(|standing| {
        let Standing {
            profile,
            verdict,
            musts,
            shoulds,
            ..
        } = standing;
        let values: [(&str, &dyn Display); 9] = [
            ("verdict", &verdict),
            ("must.passed", &musts.passed),
            ("must.failed", &musts.failed),
            ("must.known", &musts.known),
            ("must.skipped", &musts.skipped),
            ("must.inconclusive", &musts.inconclusive),
            ("must.undecided", &musts.undecided),
            ("should.kept", &shoulds.kept),
            ("should.broken", &shoulds.broken),
        ];
        values.map(|(name, value)| property(&format!("{profile}.{name}"), value))
    });
    Element::new("properties").children(properties)
}

fn property(name: &str, value: impl Display) -> Element {
    Element::new("property")
        .attribute("name", name)
        .attribute("value", value)
}

fn test_case(outcome: &Outcome) -> Element {
    let case = Element::new("testcase")
        .attribute("name", format!("{} {}", outcome.id, outcome.label()))
        .attribute("time", time(outcome))
        .attribute("classname", format!("{SUITE}.{}", outcome.area()))
        .child(properties(outcome));
    match result(outcome) {
        Some(result) => case.child(result),
        None => case,
    }
    .children(output(outcome))
}

fn properties(outcome: &Outcome) -> Element {
    let broken_in = outcome.broken_in.join(" ");
    let broken_in = (!broken_in.is_empty()).then(|| property(BROKEN_IN, broken_in));
    let kinds = kinds(outcome);
    let kinds = (!kinds.is_empty()).then(|| property("kinds", kinds));
    Element::new("properties")
        .child(property(ID, &outcome.id))
        .child(property(VERDICT, outcome.verdict.key()))
        .children(kinds)
        .children(broken_in)
}

/// The kinds of the findings that convict, each once, in order of discovery.
fn kinds(outcome: &Outcome) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for violation in &outcome.violations {
        let key = violation.mismatch.kind.key();
        if !kinds.contains(&key) {
            kinds.push(key);
        }
    }
    kinds.join(" ")
}

/// The element that says how the case ended; none if it passed.
fn result(outcome: &Outcome) -> Option<Element> {
    let element = |name, type_: &str, message: &str| {
        Element::new(name)
            .attribute("type", type_)
            .attribute("message", message)
    };
    let fault = |name, type_: &str, message: &str| {
        element(name, type_, message).text(&failure_in_full(outcome))
    };
    let skipped = |type_: &str| element("skipped", type_, &format!("{type_}: {}", cause(outcome)));
    match outcome.verdict {
        Verdict::Pass => None,
        Verdict::Fail => {
            let rules = rules(&outcome.violations);
            Some(fault("failure", &rules, &cause(outcome)))
        }
        Verdict::UnexpectedPass => {
            let message = format!("passed, though listed as failing: {}", cause(outcome));
            Some(fault("failure", outcome.verdict.key(), &message))
        }
        Verdict::Error => Some(fault("error", "undecided", &cause(outcome))),
        Verdict::Skip | Verdict::Inconclusive | Verdict::Known => {
            Some(skipped(outcome.verdict.key()))
        }
    }
}

/// What is to be said of a case whose element has no text.
fn output(outcome: &Outcome) -> Option<Element> {
    let has_text = match outcome.verdict {
        Verdict::Fail | Verdict::UnexpectedPass | Verdict::Error => true,
        Verdict::Pass | Verdict::Skip | Verdict::Inconclusive | Verdict::Known => false,
    };
    let is_empty =
        outcome.violations.is_empty() && outcome.advice.is_empty() && outcome.leftovers.is_empty();
    (!has_text && !is_empty).then(|| Element::new("system-out").text(&failure_in_full(outcome)))
}

/// How long the case took, in seconds.
fn time(outcome: &Outcome) -> f64 {
    outcome.duration.as_secs_f64()
}

/// The ids of the broken rules, each once, in order of discovery.
fn rules(violations: &[Violation]) -> String {
    let mut rules: Vec<&str> = Vec::new();
    for violation in violations {
        if !rules.contains(&violation.rule.as_str()) {
            rules.push(&violation.rule);
        }
    }
    rules.join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect_file;
    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};
    use roxmltree::{Document, Node};

    use super::write;
    use crate::outcome::{Outcome, RunReport, Verdict};
    use crate::report::fixture::{AWKWARD, failed, fixture, outcome, violation};

    fn render(report: &RunReport) -> String {
        let mut bytes = Vec::new();
        write(report, &mut bytes).expect("a vector takes everything");
        String::from_utf8(bytes).expect("XML is written as UTF-8")
    }

    fn count(document: &Document<'_>, tag: &str) -> usize {
        let is_tag = |node: &Node<'_, '_>| node.has_tag_name(tag);
        document.descendants().filter(is_tag).count()
    }

    fn element<'a>(document: &'a Document<'_>, case: &str, tag: &str) -> Node<'a, 'a> {
        let named = |node: &Node<'_, '_>| node.attribute("name") == Some(case);
        let case = document
            .descendants()
            .find(named)
            .expect("the case is listed");
        let tagged = |node: &Node<'_, '_>| node.has_tag_name(tag);
        case.children().find(tagged).expect("it has the element")
    }

    fn text(node: Node<'_, '_>) -> String {
        node.children().filter_map(|child| child.text()).collect()
    }

    #[test]
    fn the_report_is_as_it_was() {
        let pretty = render(&fixture()).replace("><test", ">\n<test");
        expect_file!["../../fixtures/reports/junit.xml"].assert_eq(&pretty);
    }

    #[test]
    fn every_verdict_becomes_its_element() {
        let xml = render(&fixture());
        let document = Document::parse(&xml).expect("well-formed");
        let suite = document
            .root_element()
            .first_element_child()
            .expect("a suite");
        assert_eq!(suite.attribute("name"), Some("containerd 2.1.9"));
        assert_eq!(suite.attribute("tests"), Some("8"));
        assert_eq!(suite.attribute("failures"), Some("2"));
        assert_eq!(suite.attribute("errors"), Some("1"));
        assert_eq!(suite.attribute("timestamp"), Some("2026-11-20T16:52:40Z"));
        let properties = suite.first_element_child().expect("properties");
        assert!(properties.has_tag_name("properties"));
        let verdict = properties.first_element_child().expect("a property");
        assert_eq!(verdict.attribute("name"), Some("cache.verdict"));
        assert_eq!(verdict.attribute("value"), Some("non-conformant"));
        assert_eq!(count(&document, "testcase"), 8);
        assert_eq!(count(&document, "skipped"), 3);
        let failure = element(&document, "ORD-01 order::four-events-in-order", "failure");
        assert_eq!(failure.attribute("type"), Some("ORD-01 INV-02"));
        let known = element(
            &document,
            "SBX-04 sandbox::deleted-tells-the-pod",
            "skipped",
        );
        assert_eq!(known.attribute("message"), Some("known: containerd#12418"));
        let pass = element(
            &document,
            "ORD-02 order::started-before-stopped#2",
            "failure",
        );
        assert_eq!(pass.attribute("type"), Some("unexpected-pass"));
    }

    #[test]
    fn awkward_text_arrives_whole() {
        let xml = render(&fixture());
        let document = Document::parse(&xml).expect("well-formed");
        let failure = element(&document, "ORD-01 order::four-events-in-order", "failure");
        let body = text(failure);
        assert!(
            body.contains(r#"]]> <b>&amp;"'\r\nnext\u{fffe} \u{202e}🦀"#),
            "{body}"
        );
        assert!(
            body.contains(">    #10     +0.150  event   STOPPED c"),
            "{body}"
        );
        let error = element(&document, "STP-02 stop::stop-grace-is-kept", "error");
        let message = error.attribute("message").expect("a message");
        assert!(message.contains("]]> <b>&amp;\"'"), "{message}");
    }

    #[test]
    fn raw_text_of_a_runtime_cannot_break_the_document() {
        let mut report = fixture();
        AWKWARD.clone_into(&mut report.info.runtime.runtime_name);
        AWKWARD.clone_into(&mut report.info.endpoint);
        report.outcomes[0].name = AWKWARD.into();
        report.faults = vec![AWKWARD.repeat(3), "]]]>]]>".to_owned()];
        let xml = render(&report);
        let document = Document::parse(&xml).expect("well-formed");
        let is_fault = |node: &Node<'_, '_>| node.has_tag_name("system-err");
        let faults = document
            .descendants()
            .find(is_fault)
            .expect("faults are told");
        let clean = "red  ]]> <b>&amp;\"'\nnext \\u{202e}🦀".repeat(3);
        assert_eq!(text(faults), format!("{clean}\n]]]>]]>"));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn no_text_at_all_can_break_the_document(chars in vec(any::<char>(), 0..40)) {
            let text: String = chars.into_iter().collect();
            let mut report = fixture();
            report.info.runtime.runtime_name.clone_from(&text);
            report.outcomes.truncate(1);
            report.outcomes[0].name = text.as_str().into();
            report.faults = vec![text];
            let xml = render(&report);
            prop_assert!(Document::parse(&xml).is_ok(), "{}", xml);
        }
    }

    #[test]
    fn ten_thousand_cases_are_all_there() {
        let mut report = fixture();
        report.outcomes = (0..10_000)
            .map(|number| Outcome {
                repetition: Some(number),
                duration: Duration::from_secs(u64::MAX / 4),
                violations: vec![violation(AWKWARD)],
                ..outcome("ORD-01", "order::many", Verdict::Fail)
            })
            .collect();
        let xml = render(&report);
        let document = Document::parse(&xml).expect("well-formed");
        assert_eq!(count(&document, "failure"), 10_000);
    }

    #[test]
    fn all_violations_of_a_case_are_told() {
        let mut report = fixture();
        report.outcomes = vec![failed()];
        report.outcomes[0].violations = (0..40)
            .map(|nth| violation(&format!("of many, {nth}")))
            .collect();
        let xml = render(&report);
        assert_eq!(xml.matches("  actual    of many").count(), 40);
    }
}
