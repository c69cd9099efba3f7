//! `JUnit` documents, parsed by another parser.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};
use roxmltree::{Document, Node};

use super::{Property, attribute, cdata, complete, message, write, xml_text};
use crate::golden::assert_file;
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
    assert_file("fixtures/reports/junit.xml", &pretty);
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
    assert_eq!(failure.attribute("type"), Some("refuted-wait"));
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
    let is_fault = |node: &Node<'_, '_>| node.attribute("name") == Some("fault");
    let faults = document.descendants().filter(is_fault);
    let faults: Vec<_> = faults.filter_map(|node| node.attribute("value")).collect();
    let clean = "red  ]]> <b>&amp;\"' ¶ next \\u{202e}🦀".repeat(3);
    assert_eq!(faults, [&*clean, "]]]>]]>"]);
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
fn a_message_has_no_ids() {
    let mut outcome = failed();
    let id = "3f2a9c81d0e4b765".repeat(4);
    for (subject, expected) in [
        (format!("c ({id}) in ORD-01"), "c in ORD-01: it"),
        (format!("c ({id})"), "c: it"),
        ("c (of them)".to_owned(), "c (of them): it"),
    ] {
        outcome.violations = vec![violation("it")];
        outcome.violations[0].subject = subject;
        assert_eq!(message(&outcome), format!("broke Current: {expected}"));
    }
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

#[track_caller]
fn check(document: &str, properties: &[Property], expect: &str) {
    let mut out = Vec::new();
    complete(document.as_bytes(), 3, properties, &mut out).expect("well-formed");
    assert_eq!(String::from_utf8_lossy(&out), expect);
}

#[test]
fn a_suite_has_its_properties_and_no_attribute_that_the_schemas_lack() {
    check(
        "<testsuites><testsuite id=\"0\" name=\"s\" package=\"p\" hostname=\"h\">\
         <testcase name=\"a\"/><testcase name=\"b\"><skipped type=\"t\" message=\"&lt;m> &amp;&quot;\"/>\
         </testcase></testsuite></testsuites>",
        &[
            Property::new("passed", 1),
            Property::new("<\n\u{1b}[1m\"", 0),
        ],
        "<testsuites><testsuite name=\"s\" skipped=\"3\"><properties>\
         <property name=\"passed\" value=\"1\"/><property name=\"&lt;\n\u{1b}[1m&quot;\" value=\"0\"/>\
         </properties><testcase name=\"a\"/><testcase name=\"b\"><skipped message=\"&lt;m> &amp;&quot;\"/>\
         </testcase></testsuite></testsuites>",
    );
}

#[test]
fn all_else_stays_as_it_was() {
    let document = "<?xml version=\"1.0\" encoding=\"utf-8\"?><testcase name=\"&lt;a> &amp;&quot;\">\
                    <failure message=\"&gt;\"><![CDATA[<testcase>\n  ]]]]><![CDATA[>&amp;]]></failure>\
                    </testcase>\n";
    check(document, &[], document);
}

/// As the schemas of the xUnit plugin and of Surefire demand.
#[test]
fn elements_have_the_children_and_attributes_that_jenkins_and_surefire_know() {
    let empty = RunReport {
        outcomes: Vec::new(),
        ..fixture()
    };
    for report in [fixture(), empty] {
        let xml = render(&report);
        let document = Document::parse(&xml).expect("well-formed");
        for node in document.descendants().filter(Node::is_element) {
            let (children, attributes): (&[&str], &[&str]) = match node.tag_name().name() {
                "testsuites" => (&["testsuite"], &[]),
                "testsuite" => (
                    &["properties", "testcase"],
                    &[
                        "name",
                        "tests",
                        "errors",
                        "failures",
                        "timestamp",
                        "time",
                        "skipped",
                    ],
                ),
                "properties" => (&["property"], &[]),
                "property" => (&[], &["name", "value"]),
                "testcase" => (
                    &["failure", "skipped", "error", "system-out"],
                    &["name", "time", "classname"],
                ),
                "failure" | "error" => (&[], &["type", "message"]),
                "skipped" => (&[], &["message"]),
                "system-out" => (&[], &[]),
                name => panic!("{name}"),
            };
            let found: Vec<_> = node.attributes().map(|it| it.name()).collect();
            assert_eq!(found, attributes);
            // In this order.
            let places = node.children().filter(Node::is_element);
            let places: Vec<_> = places
                .map(|it| children.iter().position(|name| it.has_tag_name(*name)))
                .collect();
            assert!(places.iter().all(Option::is_some), "{node:?}");
            assert!(places.is_sorted(), "{node:?}");
            if let Some(time) = node.attribute("time") {
                let decimals = time.split_once('.').map_or(0, |(_, rest)| rest.len());
                assert!(decimals <= 3, "{time}");
            }
        }
    }
}

#[test]
fn what_is_no_xml_is_refused() {
    let completed = complete(b"<testsuites></testcase>", 0, &[], Vec::new());
    assert!(completed.is_err());
}

#[track_caller]
fn check_text(text: &str, expect: &str) {
    assert_eq!(xml_text(text), expect);
}

#[test]
fn what_xml_forbids_is_dropped() {
    check_text("a\u{0}b\u{1}c\u{b}d\u{7f}e\u{fffe}f\u{ffff}g", "abcdefg");
    check_text(
        "tab\t, feed\n, return\r, both\r\n.",
        "tab\t, feed\n, return\n, both\n.",
    );
    check_text("🦀 \u{fffd} ü", "🦀 \u{fffd} ü");
}

#[test]
fn escape_sequences_leave_nothing_behind() {
    check_text("\u{1b}[1;31mred\u{1b}[0m", "red");
    check_text("\u{9b}31mred", "red");
    check_text("\u{1b}]0;title\u{7}text", "text");
    check_text("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
    check_text("\u{1b}]no end\nnext", "\nnext");
    check_text("\u{1b}(Btext\u{1b}", "Btext");
    check_text("\u{1b}[12\nnext", "\nnext");
    check_text("\u{1b}ünext", "ünext");
}

#[test]
fn what_turns_the_reading_direction_is_shown() {
    check_text("a\u{202e}b\u{2066}c", r"a\u{202e}b\u{2066}c");
}

#[test]
fn an_attribute_is_one_line() {
    assert_eq!(attribute("one\r\ntwo\n"), "one ¶ two");
}

#[test]
fn a_section_ends_only_where_it_should() {
    assert_eq!(cdata("a]]>b]]"), "a]]]]><![CDATA[>b]]");
}

#[test]
fn a_message_has_no_numbers_and_no_ids() {
    let message = |subject: &str| {
        let mut report = fixture();
        report.outcomes = vec![failed()];
        report.outcomes[0].broken_in = vec!["STP-06".into()];
        report.outcomes[0].violations[0].subject = subject.to_owned();
        let xml = render(&report);
        let document = Document::parse(&xml).expect("well-formed");
        let failure = element(&document, "ORD-01 order::four-events-in-order", "failure");
        failure.attribute("message").expect("it has one").to_owned()
    };
    let expected = "broke Current: c: CREATED, STOPPED, STARTED";
    assert_eq!(message("c (3f2a9c81d0e4b)"), expected);
    assert_eq!(message("c#16 (3f2a9c81d0e4b) in STP-06"), expected);
    let other = "broke Current: c in STP-07: CREATED, STOPPED, STARTED";
    assert_eq!(message("c#2 in STP-07"), other);
}
