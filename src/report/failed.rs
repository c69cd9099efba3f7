//! The failures in a report of this suite.

use std::collections::BTreeSet;

use roxmltree::Document;

use super::json::{self, ReadError};
use super::junit;
use crate::outcome::{Verdict, is_invariant};

/// The cases to run again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// The ids of the cases that failed or were not decided, and of those in which an invariant was
    /// broken.
    pub cases: BTreeSet<String>,
    /// An invariant is broken, and the report does not name the case.
    pub anywhere: bool,
}

impl Failed {
    /// Reads a JSON or `JUnit` report that this suite wrote.
    pub fn read(report: &str) -> Result<Self, String> {
        if report.trim_start().starts_with('<') {
            Self::of_junit(report)
        } else {
            Self::of_json(report)
        }
    }

    fn of_json(report: &str) -> Result<Self, String> {
        let report = json::read(report).map_err(|fault| match fault {
            ReadError::Malformed(_) => {
                format!("it is no JSON or JUnit report of this suite: {fault}")
            }
            ReadError::OtherFormat(_) => fault.to_string(),
        })?;
        let mut failed = Self::default();
        for outcome in &report.outcomes {
            let broken_in = outcome.broken_in.iter().map(String::as_str);
            failed.add(outcome.verdict, &outcome.id, broken_in);
        }
        Ok(failed)
    }

    fn of_junit(report: &str) -> Result<Self, String> {
        if junit::has_too_many_attributes(report) {
            return Err(format!(
                "an element has more than {} attributes: it is no report of this suite",
                junit::ATTRIBUTES
            ));
        }
        let document = Document::parse(report).map_err(|fault| format!("it is no XML: {fault}"))?;
        if !document.root_element().has_tag_name("testsuites") {
            return Err("it is no JUnit report of this suite".to_owned());
        }
        let mut failed = Self::default();
        let cases = document.descendants();
        for case in cases.filter(|node| node.has_tag_name("testcase")) {
            let output = case.children().find(|node| node.has_tag_name("system-out"));
            let output = output.and_then(|node| node.text()).unwrap_or_default();
            let properties = junit::properties(output);
            let lacks = |name| {
                format!(
                    "a test case has no property `{name}` that this suite writes; write the report \
                     anew with `check HISTORY --junit FILE`"
                )
            };
            let id = *properties.get(junit::ID).ok_or_else(|| lacks(junit::ID))?;
            let verdict = properties.get(junit::VERDICT);
            let verdict = Verdict::ALL
                .into_iter()
                .find(|it| verdict == Some(&it.key()));
            let verdict = verdict.ok_or_else(|| lacks(junit::VERDICT))?;
            let broken_in = properties
                .get(junit::BROKEN_IN)
                .copied()
                .unwrap_or_default();
            failed.add(verdict, id, broken_in.split_whitespace());
        }
        Ok(failed)
    }

    fn add<'a>(&mut self, verdict: Verdict, id: &str, broken_in: impl Iterator<Item = &'a str>) {
        let has_failed = match verdict {
            Verdict::Fail | Verdict::UnexpectedPass | Verdict::Error => true,
            Verdict::Pass | Verdict::Known | Verdict::Skip | Verdict::Inconclusive => false,
        };
        let mut broken_in = broken_in.map(str::to_owned).peekable();
        if !has_failed {
            return;
        }
        if !is_invariant(id) {
            self.cases.insert(id.to_owned());
        } else if broken_in.peek().is_none() {
            self.anywhere = true;
        } else {
            self.cases.extend(broken_in);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Outcome, RunReport};
    use crate::report::fixture::{failed, fixture, outcome};
    use crate::report::{json, junit};

    type Write = fn(&RunReport, &mut Vec<u8>) -> std::io::Result<()>;
    const WRITERS: [Write; 2] = [
        |report, out| json::write(report, out),
        |report, out| junit::write(report, out),
    ];

    #[track_caller]
    fn check(outcomes: Vec<Outcome>, cases: &[&str], anywhere: bool) {
        let report = RunReport {
            outcomes,
            ..fixture()
        };
        for write in WRITERS {
            let mut text = Vec::new();
            write(&report, &mut text).expect("a vector takes everything");
            let text = String::from_utf8(text).expect("it is UTF-8");
            let read = Failed::read(&text).expect("it is a report");
            assert_eq!(read.cases.iter().collect::<Vec<_>>(), cases, "{text}");
            assert_eq!(read.anywhere, anywhere);
        }
    }

    fn broken(cases: Vec<String>) -> Outcome {
        Outcome {
            broken_in: cases.into_iter().map(Into::into).collect(),
            id: "INV-02".into(),
            name: "invariant::a-rule".into(),
            ..failed()
        }
    }

    #[test]
    fn what_failed_and_what_was_not_decided_is_run_again() {
        let ids: &[&str] = &["ORD-01", "ORD-02", "STP-02"];
        check(fixture().outcomes, ids, false);
    }

    #[test]
    fn nothing_is_run_again_where_nothing_failed() {
        let passed = outcome("ORD-01", "order::one", Verdict::Pass);
        check(vec![passed], &[], false);
    }

    #[test]
    fn where_an_invariant_is_broken_is_run_again() {
        let some: &[&str] = &["EXT-01", "ORD-01"];
        let outcome = broken(some.iter().map(|&id| id.to_owned()).collect());
        check(vec![outcome], some, false);
        let many: Vec<String> = (10..60).map(|number| format!("ORD-{number}")).collect();
        let ids: Vec<&str> = many.iter().map(String::as_str).collect();
        check(vec![broken(many.clone())], &ids, false);
        check(vec![broken(Vec::new())], &[], true);
    }

    #[test]
    fn a_junit_report_without_properties_is_refused() {
        for (properties, lacking) in [("", "`id`"), ("[[PROPERTY|id=ORD-01]]\n", "`verdict`")] {
            let report = format!(
                "<testsuites><testsuite><testcase name=\"ORD-01 order::one\"><error/><system-out>\
                 {properties}</system-out></testcase></testsuite></testsuites>"
            );
            let fault = Failed::read(&report).expect_err("it is of an older version");
            let start = format!("a test case has no property {lacking}");
            assert!(fault.starts_with(&start), "{fault}");
        }
    }

    #[test]
    fn anything_but_a_report_is_refused() {
        for (text, expected) in [
            ("", "it is no JSON or JUnit report of this suite: EOF"),
            ("{}", "missing field `format`"),
            ("[1]", "it is no JSON or JUnit report"),
            ("7", "expected an object of a JSON report"),
            (
                "{\"format\": 9, \"outcomes\": []}",
                "it is of format 9, not 1",
            ),
            ("<testsuites>", "it is no XML"),
            ("<html></html>", "it is no JUnit report of this suite"),
        ] {
            let fault = Failed::read(text).expect_err("it is none");
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn an_element_with_very_many_attributes_is_rejected_at_once() {
        let name = |nth| [" a", &usize::to_string(&nth), "=''"].concat();
        let attributes = |count| (0..count).map(name).collect::<String>();
        let read = |count| Failed::read(&format!("<testsuites{}/>", attributes(count)));
        assert_eq!(read(junit::ATTRIBUTES), Ok(Failed::default()));
        assert!(
            read(junit::ATTRIBUTES + 1)
                .unwrap_err()
                .contains("attributes")
        );
        assert!(read(100_000).is_err());
    }
}
