//! Annotations of a GitHub workflow: commands that a step prints, which GitHub shows beside a pull
//! request. See <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>.

use super::page::with_verdict;
use super::printable::printable;
use super::text::cause;
use crate::outcome::{RunReport, Verdict};

/// An error for each case and invariant that failed unexpectedly, or that passed and is listed as
/// failing; one line each. Otherwise one with the reason for exit code 3, if any.
pub fn annotations(report: &RunReport) -> String {
    let new = [Verdict::Fail, Verdict::UnexpectedPass];
    let new = new.map(|verdict| with_verdict(report, verdict));
    let lines = new.into_iter().flatten().map(|(outcome, rate)| {
        let title = format!("{} {}", outcome.id, outcome.name);
        let often = if rate.is_of_several() {
            format!(", failed {rate} times")
        } else {
            String::new()
        };
        let kind = outcome.violations.first();
        let kind = kind.map_or_else(String::new, |first| format!("{}: ", first.mismatch.kind));
        let message = format!("{kind}{}{often}", cause(outcome));
        format!("::error title={}::{}\n", property(&title), data(&message))
    });
    let undecided = report.undecided();
    let undecided = undecided.map(|reason| format!("::error title=exit code 3::{reason}\n"));
    lines.chain(undecided).collect()
}

/// Output in which GitHub interprets no line as a command, independent of a runtime's text; `token`
/// must be unpredictable.
pub fn without_commands(output: &str, token: &str) -> String {
    [&stop(token), output, &resume(token)].concat()
}

/// The line that disables commands.
pub fn stop(token: &str) -> String {
    format!("::stop-commands::{token}\n")
}

/// The line that enables them again.
pub fn resume(token: &str) -> String {
    format!("::{token}::\n")
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    let text = printable(text);
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::report::fixture::{AWKWARD, failed, fixture, outcome, violation};

    fn annotated(outcomes: Vec<Outcome>) -> String {
        annotations(&RunReport {
            outcomes,
            ..fixture()
        })
    }

    #[test]
    fn each_new_failure_is_one_annotation() {
        let all = annotations(&fixture());
        let titles: Vec<_> = all.lines().map(|line| line.split("::").nth(1)).collect();
        assert_eq!(
            titles,
            [
                Some("error title=ORD-01 order%3A%3Afour-events-in-order"),
                Some("error title=ORD-02 order%3A%3Astarted-before-stopped"),
            ]
        );
        let old = Verdict::ALL.into_iter();
        let old = old.filter(|it| !matches!(it, Verdict::Fail | Verdict::UnexpectedPass));
        let old = old.map(|verdict| outcome("ORD-01", "order::one", verdict));
        let undecided = "::error title=exit code 3::not all is decided\n";
        assert_eq!(annotated(old.collect()), undecided);
    }

    #[test]
    fn a_repeated_failure_is_one_annotation() {
        let passed = outcome("ORD-01", "order::four-events-in-order", Verdict::Pass);
        let text = annotated(vec![failed(), passed, failed()]);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.ends_with(", failed 2 of 3 times\n"), "{text}");
    }

    #[test]
    fn nothing_of_a_runtime_ends_a_property_or_a_line() {
        for text in [AWKWARD, "50%, a:b,c\r\n::error title=x::y", "%0A%3A"] {
            let mut outcome = failed();
            outcome.name = text.into();
            outcome.violations = vec![violation(text)];
            let all = annotated(vec![outcome]);
            assert_eq!(all.lines().count(), 1, "{all}");
            let (head, message) = all["::".len()..].split_once("::").unwrap();
            let title = head.strip_prefix("error title=").unwrap();
            assert!(!title.contains([',', ':', '\u{1b}']), "{all}");
            let escapes = message.matches('%').count();
            assert_eq!(message.matches("%25").count(), escapes, "{all}");
        }
    }

    #[test]
    fn a_percent_sign_arrives_as_one() {
        assert_eq!(data("100%\r\n"), r"100%25\r\n");
        assert_eq!(property("a::b, 5%"), "a%3A%3Ab%2C 5%25");
    }
}
