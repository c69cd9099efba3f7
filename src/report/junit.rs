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
//! | fail            | `failure` | the kinds of its findings, such as `missing-stopped` |
//! | unexpected pass | `failure` | `unexpected-pass`: the list of known failures is out of date |
//! | error           | `error`   | `undecided`                                |
//! | skip            | `skipped` | none: the message begins with `skip`       |
//! | inconclusive    | `skipped` | none: it begins with `inconclusive`        |
//! | known           | `skipped` | none: it begins with `known`               |
//!
//! A run without outcomes has one test case, `run`, an `error` with the reason.
//!
//! The suite's properties are the `runtime`, its `version`, where they are known its `handler` and
//! its `cgroup-driver`, the verdicts in the profiles, such as `cache.verdict`, their counts, such
//! as `cache.must.passed`, the guarantees, such as `cache.Complete`, the `run`, the `suite`, the
//! `endpoint` and the `image`, and each `fault`. The properties of a test case are its `id`, its
//! `verdict`, its `level`, the ids of its `requirements` and, where there are any, `kinds`, the
//! kinds of its findings, `guarantees`, which these break, and `broken-in`, the ids of the cases
//! whose histories break an invariant; ids and kinds are separated by spaces. They are the first
//! lines of its `system-out`, each as `[[PROPERTY|name=value]]`: the schema of the xUnit plugin of
//! Jenkins and that of Maven Surefire 3, which each `testsuite` satisfies, have no properties of a
//! test case. [`super::Failed`] reads these.
//!
//! `message` is one line; everything else is in the element's text, or in `system-out` if the
//! element has none. All text passes through [`attribute`] or [`cdata`], so that no runtime can
//! make the document ill-formed. The `junit-report` crate writes the document, escapes markup in
//! attributes and nothing else, and has no properties: [`finish`] adds them to its output.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::str::Chars;

use junit_report::{Duration, Report, TestCase, TestResult, TestSuite};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, Writer};

use super::printable::{is_short_id, utc};
use super::text::{REASON, failure_in_full, first_violation, whole_cause};
use crate::escape::is_unprintable;
use crate::history::CgroupDriver;
use crate::outcome::{Keeping, Outcome, RunReport, Standing, Verdict};

const SUITE: &str = "cri-event-conformance";

/// The property of a test case with the id of its case or invariant.
pub(super) const ID: &str = "id";

/// The property with its verdict, as a JSON report has it.
pub(super) const VERDICT: &str = "verdict";

/// The property with the ids of the cases whose histories break an invariant.
pub(super) const BROKEN_IN: &str = "broken-in";

/// The beginning of a line with a property of a test case.
const PROPERTY: &str = "[[PROPERTY|";

/// The maximum number of attributes of an element; this suite writes nine at most.
pub(super) const ATTRIBUTES: usize = 100;

/// A property of a test suite or of a test case.
pub(super) struct Property {
    name: String,
    value: String,
}

/// Writes the report as a whole XML document.
pub fn write(report: &RunReport, mut out: impl Write) -> io::Result<()> {
    finish(suite(report), &properties_of_suite(report), &mut out)?;
    writeln!(out)
}

/// Writes the report of a run that did not begin: one undecided test case with the reason.
pub fn write_undecided(reason: &str, out: impl Write) -> io::Result<()> {
    let mut suite = TestSuite::new(SUITE);
    suite.testcases.push(undecided(reason));
    finish(suite, &[], out)
}

/// One rule of a policy: its name and, if it is not met, the type of the fault and the sentence
/// about it.
pub type Ruled = (String, Option<(&'static str, String)>);

/// Writes a test case for each rule of a policy; one that the reports do not decide is an error.
pub fn write_rules(rules: impl Iterator<Item = Ruled>, out: impl Write) -> io::Result<()> {
    let mut suite = TestSuite::new(&format!("{SUITE} gate"));
    suite.testcases = rules
        .map(|(rule, fault)| {
            let (rule, none) = (attribute(&rule), Duration::ZERO);
            let mut case = match fault {
                None => TestCase::success(&rule, none),
                Some((fail @ "fail", why)) => {
                    TestCase::failure(&rule, none, fail, &attribute(&why))
                }
                Some((undecided, why)) => TestCase::error(&rule, none, undecided, &attribute(&why)),
            };
            case.classname = Some(format!("{SUITE}.gate"));
            case
        })
        .collect();
    finish(suite, &[], out)
}

/// The test case of a run without outcomes.
fn undecided(reason: &str) -> TestCase {
    let mut case = TestCase::error("run", Duration::ZERO, "undecided", &attribute(reason));
    case.classname = Some(SUITE.to_owned());
    case
}

fn suite(report: &RunReport) -> TestSuite {
    let mut suite = TestSuite::new(SUITE);
    suite.timestamp = utc(report.began);
    suite.testcases = report.outcomes.iter().map(test_case).collect();
    if report.outcomes.is_empty() {
        suite.testcases.push(undecided(&report.faults.join("\n")));
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
    properties.extend(report.notes.iter().map(|note| Property::new("note", note)));
    let standings = report.standings().into_iter().flat_map(|standing| {
        let Standing {
            profile,
            verdict,
            musts,
            shoulds,
            guarantees,
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
        let values = values.map(|(name, value)| Property::new(format!("{profile}.{name}"), value));
        let guarantees = guarantees
            .into_iter()
            .filter(|(_, keeping)| *keeping != Keeping::Open);
        let guarantees = guarantees
            .map(move |(name, keeping)| Property::new(format!("{profile}.{name}"), keeping));
        values.into_iter().chain(guarantees)
    });
    properties.extend(standings);
    properties.extend([
        Property::new("run", &info.run),
        Property::new("suite", &info.suite),
        Property::new("endpoint", &info.endpoint),
        Property::new("image", &report.image),
    ]);
    let faults = report.faults.iter();
    properties.extend(faults.map(|fault| Property::new("fault", fault)));
    properties
}

fn test_case(outcome: &Outcome) -> TestCase {
    TestCase {
        name: attribute(&format!("{} {}", outcome.id, outcome.label())),
        time: time(outcome),
        result: result(outcome),
        classname: Some(attribute(&format!("{SUITE}.{}", outcome.area()))),
        filepath: None,
        system_out: Some(output(outcome)),
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
    if !outcome.violations.is_empty() {
        let broken = outcome.violations.iter();
        let guarantees = each_once(broken.map(|broken| outcome.breaks(broken).name()));
        properties.push(Property::new("guarantees", guarantees));
        properties.push(Property::new("kinds", kinds(outcome)));
    }
    if !outcome.broken_in.is_empty() {
        properties.push(Property::new(BROKEN_IN, outcome.broken_in.join(" ")));
    }
    properties
}

/// The cause without ids, numbers of containers and the case that breaks an invariant, so that the
/// message of one failure is the same in all runs.
fn message(outcome: &Outcome) -> String {
    let mut message = String::new();
    let violation = first_violation(outcome, REASON);
    let is_numbered = violation.is_some();
    let cause = violation.unwrap_or_else(|| whole_cause(outcome));
    let broken_in = outcome.broken_in.iter();
    let cause = broken_in.fold(cause, |cause, case| {
        cause.replace(&format!(" in {case}:"), ":")
    });
    for word in cause.split(' ') {
        let word = match word.split_once('#') {
            Some((name, number)) if is_numbered => {
                format!("{name}{}", number.trim_start_matches(char::is_numeric))
            }
            _ => word.to_owned(),
        };
        let id = word.strip_prefix('(').and_then(|word| word.split_once(')'));
        match id.filter(|(id, _)| is_short_id(id)) {
            Some((_, rest)) => message.push_str(rest),
            None if message.is_empty() => message.push_str(&word),
            None => message.extend([" ", &*word]),
        }
    }
    message
}

/// The kinds of the findings that convict, in order of discovery.
fn kinds(outcome: &Outcome) -> String {
    let broken = outcome.violations.iter();
    each_once(broken.map(|broken| broken.mismatch.kind.key()))
}

/// The words, each once, in the given order, separated by spaces.
fn each_once<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut seen = BTreeSet::new();
    let words = words.filter(|word| seen.insert(*word));
    words.collect::<Vec<_>>().join(" ")
}

fn result(outcome: &Outcome) -> TestResult {
    let skipped = |type_: &str| TestResult::SkippedWithCause {
        type_: type_.to_owned(),
        message: attribute(&format!("{type_}: {}", message(outcome))),
        cause: None,
    };
    let failure = |type_: &str, message: &str| TestResult::Failure {
        type_: attribute(type_),
        message: attribute(message),
        cause: Some(cdata(&failure_in_full(outcome))),
    };
    match outcome.verdict {
        Verdict::Pass => TestResult::Success,
        Verdict::Fail => failure(&kinds(outcome), &message(outcome)),
        Verdict::UnexpectedPass => {
            let text = format!("passed, though listed as failing: {}", message(outcome));
            failure(outcome.verdict.key(), &text)
        }
        Verdict::Error => TestResult::Error {
            type_: "undecided".to_owned(),
            message: attribute(&message(outcome)),
            cause: Some(cdata(&failure_in_full(outcome))),
        },
        Verdict::Skip | Verdict::Inconclusive | Verdict::Known => skipped(outcome.verdict.key()),
    }
}

/// The properties, and the text about a case whose element has no text of its own.
fn output(outcome: &Outcome) -> String {
    let mut output = String::new();
    for Property { name, value } in properties_of_case(outcome) {
        let _ = writeln!(output, "{PROPERTY}{name}={value}]]");
    }
    let has_text = match outcome.verdict {
        Verdict::Fail | Verdict::UnexpectedPass | Verdict::Error => true,
        Verdict::Pass | Verdict::Skip | Verdict::Inconclusive | Verdict::Known => false,
    };
    let is_empty =
        outcome.violations.is_empty() && outcome.advice.is_empty() && outcome.leftovers.is_empty();
    if !has_text && !is_empty {
        output.extend(["\n", &failure_in_full(outcome)]);
    }
    cdata(&output)
}

/// The properties of a test case by name: the first lines of its `system-out`.
pub(super) fn properties(output: &str) -> BTreeMap<&str, &str> {
    let lines = output.lines();
    let lines = lines.map_while(|line| line.strip_prefix(PROPERTY)?.strip_suffix("]]"));
    lines.filter_map(|line| line.split_once('=')).collect()
}

/// The duration of the case in milliseconds; zero if it would overflow the sum in `junit-report`.
fn time(outcome: &Outcome) -> Duration {
    let ms = i64::try_from(outcome.duration.as_millis()).ok();
    ms.map(Duration::milliseconds)
        .filter(|time| *time < Duration::weeks(1_000))
        .unwrap_or_default()
}

impl Property {
    pub(super) fn new(name: impl Into<String>, value: impl Display) -> Self {
        Self {
            name: name.into(),
            value: attribute(&value.to_string()),
        }
    }
}

/// Writes a document of this suite.
fn finish(suite: TestSuite, properties: &[Property], out: impl Write) -> io::Result<()> {
    let results = suite.testcases.iter().map(|case| &case.result);
    let skipped = results.filter(|result| matches!(result, TestResult::SkippedWithCause { .. }));
    let skipped = skipped.count();
    let mut document = Report::new();
    document.add_testsuite(suite);
    // Into memory first: the crate would wrap the writer's errors, and hide a broken pipe.
    let mut xml = Vec::new();
    document.write_xml(&mut xml).map_err(io::Error::other)?;
    complete(&xml, skipped, properties, out)
}

/// Writes the document to `out` event by event: the `testsuite` with the number of skipped test
/// cases and its properties, and each element without the attributes that the schemas lack.
fn complete(
    document: &[u8],
    skipped: usize,
    properties: &[Property],
    out: impl Write,
) -> io::Result<()> {
    let mut reader = Reader::from_reader(document);
    let mut writer = Writer::new(out);
    loop {
        match reader.read_event().map_err(io::Error::other)? {
            Event::Eof => return Ok(()),
            Event::Start(tag) if tag.name().as_ref() == b"testsuite" => {
                let mut tag = without(&tag, &["id", "package", "hostname"])?;
                tag.push_attribute(("skipped", &*skipped.to_string()));
                writer.write_event(Event::Start(tag))?;
                write_properties(&mut writer, properties)?;
            }
            Event::Empty(tag) if tag.name().as_ref() == b"skipped" => {
                writer.write_event(Event::Empty(without(&tag, &["type"])?))?;
            }
            other => writer.write_event(other)?,
        }
    }
}

/// The tag without the attributes of these names.
fn without(tag: &BytesStart<'_>, names: &[&str]) -> io::Result<BytesStart<'static>> {
    let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
    let mut kept = BytesStart::new(name);
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(io::Error::other)?;
        if !names
            .iter()
            .any(|name| name.as_bytes() == attribute.key.as_ref())
        {
            kept.push_attribute(attribute);
        }
    }
    Ok(kept)
}

/// Whether a report would take long to parse: the parser compares each attribute of an element with
/// all others.
pub(super) fn has_too_many_attributes(report: &str) -> bool {
    let mut reader = Reader::from_str(report);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                if tag
                    .attributes()
                    .with_checks(false)
                    .nth(ATTRIBUTES)
                    .is_some()
                {
                    return true;
                }
            }
            Ok(Event::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

fn write_properties(writer: &mut Writer<impl Write>, properties: &[Property]) -> io::Result<()> {
    let element = writer.create_element("properties");
    element.write_inner_content(|writer| {
        for Property { name, value } in properties {
            let attributes = [("name", name.as_str()), ("value", value.as_str())];
            let property = writer.create_element("property");
            property.with_attributes(attributes).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Text for an attribute: one line, because parsers replace line breaks there by spaces.
pub(super) fn attribute(text: &str) -> String {
    xml_text(text).trim_end().replace('\n', " ¶ ")
}

/// Text for a CDATA section, which `junit-report` uses for every element's text. A terminator in
/// the text is divided between two sections, so that a parser reads the text unchanged.
pub(super) fn cdata(text: &str) -> String {
    xml_text(text).replace("]]>", "]]]]><![CDATA[>")
}

/// The text without characters that XML 1.0 forbids even as character references, and without
/// terminal escape sequences, of which otherwise the printable half would remain. Line breaks
/// become `\n`.
fn xml_text(text: &str) -> String {
    let mut rest = text.chars();
    let mut kept = String::with_capacity(text.len());
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_csi(&mut rest),
            '\r' if rest.as_str().starts_with('\n') => {}
            '\r' => kept.push('\n'),
            '\t' | '\n' => kept.push(character),
            '\u{fffe}' | '\u{ffff}' => {}
            _ if character.is_control() => {}
            _ if is_unprintable(character) => kept.extend(character.escape_default()),
            _ => kept.push(character),
        }
    }
    kept
}

/// Skips the rest of an escape sequence. An unknown one counts as two characters.
fn skip_escape(rest: &mut Chars<'_>) {
    let kind = rest.clone().next();
    match kind {
        Some('[') => {
            rest.next();
            skip_csi(rest);
        }
        Some(']') => {
            rest.next();
            skip_osc(rest);
        }
        Some(' '..='~') => {
            rest.next();
        }
        _ => {}
    }
}

/// Skips parameters and the final character; other characters are kept.
fn skip_csi(rest: &mut Chars<'_>) {
    while let Some(' '..='~') = rest.clone().next() {
        if let Some('@'..='~') = rest.next() {
            return;
        }
    }
}

/// Skips a title or a link, up to BEL or ESC `\`; to the line's end if neither is found.
fn skip_osc(rest: &mut Chars<'_>) {
    while let Some(character) = rest.clone().next() {
        if character == '\n' {
            return;
        }
        rest.next();
        if character == '\u{7}' {
            return;
        }
        if character == '\u{1b}' {
            if rest.as_str().starts_with('\\') {
                rest.next();
            }
            return;
        }
    }
}
