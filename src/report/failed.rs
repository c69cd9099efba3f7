//! What a report of ours, read again, says has failed.

use std::collections::BTreeSet;

use roxmltree::{Document, Node};
use serde::Deserialize;

use super::json::FORMAT;
use super::text::BROKEN_IN;
use crate::outcome::Verdict;

/// What to run again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// The cases, by id, or by name from an older report: those that failed or were not decided,
    /// and those in which an invariant was broken.
    pub cases: BTreeSet<String>,
    /// An invariant is broken, and the report does not tell in which case.
    pub anywhere: bool,
}

#[derive(Deserialize)]
#[serde(expecting = "an object of a JSON report")]
struct JsonReport {
    format: u32,
    outcomes: Vec<JsonOutcome>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object of a JSON report")]
struct JsonOutcome {
    id: String,
    name: String,
    verdict: Verdict,
    #[serde(default)]
    broken_in: Vec<String>,
}

impl Failed {
    /// Reads a JSON or `JUnit` report that this suite wrote.
    ///
    /// # Errors
    /// If it is neither: why.
    pub fn read(report: &str) -> Result<Self, String> {
        if report.trim_start().starts_with('<') {
            Self::of_junit(report)
        } else {
            Self::of_json(report)
        }
    }

    fn of_json(report: &str) -> Result<Self, String> {
        let report: JsonReport = serde_json::from_str(report)
            .map_err(|fault| format!("it is no JSON or JUnit report of this suite: {fault}"))?;
        if report.format != FORMAT {
            return Err(format!("it is of format {}, not {FORMAT}", report.format));
        }
        let mut failed = Self::default();
        for outcome in report.outcomes {
            if let Verdict::Fail | Verdict::UnexpectedPass | Verdict::Error = outcome.verdict {
                failed.add(&outcome.name, outcome.id, outcome.broken_in);
            }
        }
        Ok(failed)
    }

    fn of_junit(report: &str) -> Result<Self, String> {
        let document = Document::parse(report).map_err(|fault| format!("it is no XML: {fault}"))?;
        if !document.root_element().has_tag_name("testsuites") {
            return Err("it is no JUnit report of this suite".to_owned());
        }
        let mut failed = Self::default();
        let cases = document.descendants();
        for case in cases.filter(|node| node.has_tag_name("testcase")) {
            let is_fault =
                |node: &Node<'_, '_>| node.has_tag_name("failure") || node.has_tag_name("error");
            let Some(fault) = case.children().find(is_fault) else {
                continue;
            };
            let name = case.attribute("name").unwrap_or_default();
            // Repetitions are one case.
            let name = name.split('#').next().unwrap_or_default();
            // Older reports have no id.
            let (id, name) = name.split_once(' ').unwrap_or((name, name));
            let text: String = fault.children().filter_map(|node| node.text()).collect();
            failed.add(name, id.to_owned(), broken_in(&text));
        }
        Ok(failed)
    }

    fn add(&mut self, name: &str, case: String, broken_in: Vec<String>) {
        if !name.starts_with("invariant::") {
            self.cases.insert(case);
        } else if broken_in.is_empty() {
            self.anywhere = true;
        } else {
            self.cases.extend(broken_in);
        }
    }
}

/// The ids behind `broken in: `, on that line and those that are indented below it.
fn broken_in(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    let first = lines.find_map(|line| line.strip_prefix(BROKEN_IN)?.strip_prefix(": "));
    let more = lines.take_while(|line| line.starts_with("  "));
    let ids = first
        .into_iter()
        .chain(more)
        .flat_map(str::split_whitespace);
    ids.map(str::to_owned).collect()
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
    fn a_junit_report_of_old_has_names_alone() {
        let report = "<testsuites><testsuite><testcase name=\"order::one#2\"><error/></testcase>\
                      </testsuite></testsuites>";
        let read = Failed::read(report).expect("it is a report");
        assert!(read.cases.iter().eq(["order::one"]), "{read:?}");
    }

    #[test]
    fn what_is_no_report_is_told() {
        for (text, told) in [
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
            assert!(fault.contains(told), "{fault}");
        }
    }
}
