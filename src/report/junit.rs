//! The report that CI systems read: `JUnit` XML.
//!
//! One `testsuite` has one `testcase` per outcome: `classname` is `cri-event-conformance.<area>`,
//! which Jenkins shows as a package and its class, and `name` is the outcome's id and name with its
//! repetition, as everywhere else; GitLab identifies tests by both. The suite's name is the same
//! for all runtimes, since `TestGrid` identifies a test by it and by `name`. The verdicts become:
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
//! A run without outcomes has one test case, `run`, an `error` with the reason.
//!
//! The suite's properties are the `runtime`, its `version`, where they are known its `handler` and
//! its `cgroup-driver`, the verdicts in the profiles, such as `cache.verdict`, and their counts,
//! such as `cache.must.passed`. The properties of a test case are its `id`, its `verdict`, its
//! `level`, the ids of its `requirements` and, where there are any, `kinds`, the kinds of its
//! findings, and `broken-in`, the ids of the cases whose histories break an invariant; ids and
//! kinds are separated by spaces. [`super::Failed`] reads these.
//!
//! `message` is one line; everything else is in the element's text, or in `system-out` if the
//! element has none. All text goes through `report::xml`, so that no runtime can make the document
//! ill-formed. The `junit-report` crate writes the document; it has no properties, so `properties`
//! inserts them into its output.

use std::fmt::Display;
use std::io::{self, Write};
use std::iter;

use junit_report::{Duration, Report, TestCase, TestResult, TestSuite};

use crate::history::CgroupDriver;
use crate::outcome::{Outcome, RunReport, Standing, Verdict, Violation};

use super::calendar::utc;
use super::properties::{self, Property};
use super::text::{cause, failure_in_full};
use super::xml::{attribute, cdata};

const SUITE: &str = "cri-event-conformance";

/// The property of a test case with the id of its case or invariant.
pub(super) const ID: &str = "id";

/// The property with its verdict, as a JSON report has it.
pub(super) const VERDICT: &str = "verdict";

/// The property with the ids of the cases whose histories break an invariant.
pub(super) const BROKEN_IN: &str = "broken-in";

/// Writes the report as a whole XML document.
pub fn write(report: &RunReport, mut out: impl Write) -> io::Result<()> {
    let mut document = Report::new();
    document.add_testsuite(suite(report));
    // Into memory first: the crate would wrap the writer's errors, and hide a broken pipe.
    let mut xml = Vec::new();
    document.write_xml(&mut xml).map_err(io::Error::other)?;
    let of_cases = report.outcomes.iter().map(properties_of_case);
    // A run without outcomes has a test case that is none.
    let lists = iter::once(properties_of_suite(report)).chain(of_cases);
    let lists = lists.chain([Vec::new()]);
    properties::insert(&xml, lists, &mut out)?;
    writeln!(out)
}

/// Writes the report of a run that did not begin: one undecided test case with the reason.
pub fn write_undecided(reason: &str, out: impl Write) -> io::Result<()> {
    let mut suite = TestSuite::new(SUITE);
    suite.testcases.push(undecided(reason));
    let mut document = Report::new();
    document.add_testsuite(suite);
    document.write_xml(out).map_err(io::Error::other)
}

/// The test case of a run without outcomes.
fn undecided(reason: &str) -> TestCase {
    let mut case = TestCase::error("run", Duration::ZERO, "undecided", &attribute(reason));
    case.classname = Some(SUITE.to_owned());
    case
}

fn suite(report: &RunReport) -> TestSuite {
    let about = format!(
        "run {}\nsuite {}\nendpoint {}\nimage {}\n",
        report.info.run, report.info.suite, report.info.endpoint, report.image,
    );
    let mut suite = TestSuite::new(SUITE);
    SUITE.clone_into(&mut suite.package);
    suite.timestamp = utc(report.began);
    suite.testcases = report.outcomes.iter().map(test_case).collect();
    if report.outcomes.is_empty() {
        suite.testcases.push(undecided(&report.faults.join("\n")));
    }
    suite.system_out = Some(cdata(&about));
    if !report.faults.is_empty() {
        suite.system_err = Some(cdata(&report.faults.join("\n")));
    }
    suite
}

/// The runtime, the verdicts in the profiles, and their counts.
fn properties_of_suite(report: &RunReport) -> Vec<Property> {
    let info = &report.info;
    let handler = info.oci.as_ref().map(|oci| oci.handler.as_str());
    let mut properties = vec![
        Property::new("runtime", &info.runtime.runtime_name),
        Property::new("version", &info.runtime.runtime_version),
    ];
    properties.extend(handler.map(|handler| Property::new("handler", handler)));
    let driver = info.cgroup_driver.map(CgroupDriver::name);
    properties.extend(driver.map(|driver| Property::new("cgroup-driver", driver)));
    let undecided = report.undecided();
    properties.extend(undecided.map(|reason| Property::new("undecided", reason)));
    let standings = report.standings().into_iter().flat_map(|standing| {
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
        values.map(|(name, value)| Property::new(format!("{profile}.{name}"), value))
    });
    properties.extend(standings);
    properties
}

fn test_case(outcome: &Outcome) -> TestCase {
    TestCase {
        name: attribute(&format!("{} {}", outcome.id, outcome.label())),
        time: time(outcome),
        result: result(outcome),
        classname: Some(attribute(&format!("{SUITE}.{}", outcome.area()))),
        filepath: None,
        system_out: output(outcome),
        system_err: None,
    }
}

fn properties_of_case(outcome: &Outcome) -> Vec<Property> {
    let mut properties = vec![
        Property::new(ID, &outcome.id),
        Property::new(VERDICT, outcome.verdict.key()),
        Property::new("level", outcome.levels),
    ];
    if !outcome.requirements.is_empty() {
        let requirements = outcome.requirements.join(" ");
        properties.push(Property::new("requirements", requirements));
    }
    let kinds = kinds(outcome);
    if !kinds.is_empty() {
        properties.push(Property::new("kinds", kinds));
    }
    if !outcome.broken_in.is_empty() {
        properties.push(Property::new(BROKEN_IN, outcome.broken_in.join(" ")));
    }
    properties
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

fn result(outcome: &Outcome) -> TestResult {
    let skipped = |type_: &str| TestResult::SkippedWithCause {
        type_: type_.to_owned(),
        message: attribute(&format!("{type_}: {}", cause(outcome))),
        cause: None,
    };
    let failure = |type_: &str, message: &str| TestResult::Failure {
        type_: attribute(type_),
        message: attribute(message),
        cause: Some(cdata(&failure_in_full(outcome))),
    };
    match outcome.verdict {
        Verdict::Pass => TestResult::Success,
        Verdict::Fail => failure(&rules(&outcome.violations), &cause(outcome)),
        Verdict::UnexpectedPass => {
            let message = format!("passed, though listed as failing: {}", cause(outcome));
            failure(outcome.verdict.key(), &message)
        }
        Verdict::Error => TestResult::Error {
            type_: "undecided".to_owned(),
            message: attribute(&cause(outcome)),
            cause: Some(cdata(&failure_in_full(outcome))),
        },
        Verdict::Skip | Verdict::Inconclusive | Verdict::Known => skipped(outcome.verdict.key()),
    }
}

/// The text about a case whose element has no text of its own.
fn output(outcome: &Outcome) -> Option<String> {
    let has_text = match outcome.verdict {
        Verdict::Fail | Verdict::UnexpectedPass | Verdict::Error => true,
        Verdict::Pass | Verdict::Skip | Verdict::Inconclusive | Verdict::Known => false,
    };
    let is_empty =
        outcome.violations.is_empty() && outcome.advice.is_empty() && outcome.leftovers.is_empty();
    (!has_text && !is_empty).then(|| cdata(&failure_in_full(outcome)))
}

/// The duration of the case; zero if it would overflow the sum in `junit-report`.
fn time(outcome: &Outcome) -> Duration {
    Duration::try_from(outcome.duration)
        .ok()
        .filter(|time| *time < Duration::weeks(1_000))
        .unwrap_or_default()
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
        assert_eq!(suite.attribute("name"), Some("cri-event-conformance"));
        assert_eq!(suite.attribute("tests"), Some("8"));
        assert_eq!(suite.attribute("failures"), Some("2"));
        assert_eq!(suite.attribute("errors"), Some("1"));
        assert_eq!(suite.attribute("timestamp"), Some("2026-11-20T16:52:40Z"));
        let properties = suite.first_element_child().expect("properties");
        assert!(properties.has_tag_name("properties"));
        let value = |name| {
            let mut all = properties.children();
            let found = all.find(|property| property.attribute("name") == Some(name));
            found.and_then(|property| property.attribute("value"))
        };
        assert_eq!(value("runtime"), Some("containerd"));
        assert_eq!(value("version"), Some("2.1.9"));
        assert_eq!(value("cache.verdict"), Some("non-conformant"));
        assert_eq!(count(&document, "testcase"), 8);
        assert_eq!(count(&document, "skipped"), 3);
        let failure = element(&document, "ORD-01 order::four-events-in-order", "failure");
        assert_eq!(failure.attribute("type"), Some("ORD-01 INV-02"));
        let known = element(
            &document,
            "SBX-04 sandbox::deleted-names-the-pod",
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
            .expect("faults are reported");
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
    fn all_violations_of_a_case_are_reported() {
        let mut report = fixture();
        report.outcomes = vec![failed()];
        report.outcomes[0].violations = (0..40)
            .map(|nth| violation(&format!("of many, {nth}")))
            .collect();
        let xml = render(&report);
        assert_eq!(xml.matches("  actual    of many").count(), 40);
    }
}
