//! The closing lines of a run: plain text of a terminal's width where words allow it. The
//! paths of written files are added by the code that writes them.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::causes::{Group, by_cause, ids};
use super::printable::{cut, printable, short_ids, span};
use super::standings::write_standings;
use super::text::{REASON, Text, cause, whole_cause, word};
use crate::history::MODEL;
use crate::outcome::{Limit, Outcome, REMOVED, RunReport, Verdict};

/// The maximum number of lines of one kind, such as failed outcomes.
const LISTED: usize = 50;

/// The length of a line about skipped cases, in characters, if their ids leave room for a reason.
/// The reasons are whole where nothing ran, in a verbose summary, and in the reports.
const LINE: usize = 96;

/// The number of reasons for skipped cases up to which the summary has each; the list of cases and
/// the reports have all.
const REASONS: usize = 3;

/// The closing lines of a run: the selection, the count of each verdict, and the outcomes that need
/// a look, by cause; if it is verbose, one by one. Wrapped for a terminal with these columns.
pub fn summary(report: &RunReport, verbose: bool, columns: usize) -> String {
    let mut text = Text::new(columns);
    let _ = write_summary(&mut text, report, verbose);
    text.out
}

fn write_summary(text: &mut Text, report: &RunReport, verbose: bool) -> fmt::Result {
    let runtime = &report.info.runtime;
    let head = format!(
        "{} {} at {}, run {}",
        cut(&runtime.runtime_name, REASON),
        cut(&runtime.runtime_version, REASON),
        cut(&report.info.endpoint, REASON),
        report.info.run,
    );
    text.line(&head, 2);
    text.line(&counts(report), 2);
    for verdict in [
        Verdict::Fail,
        Verdict::UnexpectedPass,
        Verdict::Error,
        Verdict::Inconclusive,
        Verdict::Known,
        Verdict::Skip,
    ] {
        listed(text, with_verdict(report, verdict, verbose).into_iter());
    }
    if let Some(known) = known_of_the_runtime(report) {
        text.line(&format!("  {known}"), 4);
    }
    write_advice(text, report, verbose);
    let leftovers = report.outcomes.iter().flat_map(|outcome| {
        let label = outcome.label();
        let in_words = move |left: &String| match left.strip_prefix(REMOVED) {
            Some(left) => {
                format!("  {REMOVED}{}, of {label}", cut(&short_ids(left), REASON))
            }
            None => format!("  left over by {label}: {}", cut(left, REASON)),
        };
        outcome.leftovers.iter().map(in_words)
    });
    listed(text, leftovers);
    let faults = report.faults.iter();
    listed(
        text,
        faults.map(|fault| format!("  fault: {}", cut(fault, REASON))),
    );
    let notes = report.notes.iter();
    listed(
        text,
        notes.map(|note| format!("  note: {}", cut(note, REASON))),
    );
    if report.foreign_pods > 0 {
        let pods = counted(report.foreign_pods, "foreign pod", "foreign pods");
        writeln!(text, "  {pods} on the node, left alone")?;
    }
    write_standings(text, report)
}

/// The closing lines for outcomes with a verdict.
fn with_verdict(report: &RunReport, verdict: Verdict, verbose: bool) -> Vec<String> {
    let ran = report.outcomes.iter().any(|it| it.verdict != Verdict::Skip);
    let of_verdict = report.outcomes.iter().filter(|it| it.verdict == verdict);
    if verbose {
        return of_verdict.map(in_one_line).collect();
    }
    if verdict == Verdict::Known {
        return by_page(of_verdict.collect());
    }
    let groups = by_cause(of_verdict);
    if verdict == Verdict::Skip && ran && groups.len() > REASONS {
        let skipped: Vec<_> = groups
            .into_iter()
            .flat_map(|group| group.outcomes)
            .collect();
        return vec![format!(
            "  skipped: {} (--verbose shows why)",
            ids(&skipped)
        )];
    }
    groups.iter().map(|group| of_cause(group, ran)).collect()
}

/// The advice of passed and known outcomes: that of a failed one stands with its failure.
fn write_advice(text: &mut Text, report: &RunReport, verbose: bool) {
    let advised = report.outcomes.iter();
    let advised = advised.filter(|it| it.verdict != Verdict::Fail && !it.advice.is_empty());
    let advised: Vec<&Outcome> = advised.collect();
    if verbose {
        listed(text, advised.into_iter().flat_map(advice_in_one_line));
    } else if !advised.is_empty() {
        let ids = ids(&advised);
        text.line(&format!("  advice: {ids} (--verbose shows it)"), 4);
    }
}

/// The closing line for outcomes with one cause. Where nothing ran, the reason is whole.
fn of_cause(group: &Group<'_>, ran: bool) -> String {
    let first = group.outcomes[0];
    let Group { kind, outcomes } = group;
    let (word, ids) = (word(first.verdict), ids(outcomes));
    if first.verdict == Verdict::Skip {
        let start = format!("  {word}: {ids}: ");
        if !ran {
            return start + &whole_cause(first);
        }
        let room = LINE.saturating_sub(start.chars().count());
        return start + &cut(&cause(first), room.max(REASON / 4));
    }
    if outcomes.len() == 1 {
        return in_one_line(first);
    }
    let Some(kind) = kind else {
        return format!("  {word}: {ids}: {}", cause(first));
    };
    let known = outcomes.iter().filter(|outcome| outcome.hint.is_some());
    let known = match known.count() {
        0 => String::new(),
        count => format!(", {count} known"),
    };
    format!(
        "  {word}: {} with {kind}, which breaks {}{known}: {ids}",
        outcomes.len(),
        group.broken().join(", "),
    )
}

/// A closing line for the known failures of each page, or else with the same reason.
fn by_page(known: Vec<&Outcome>) -> Vec<String> {
    let mut pages: Vec<(String, Vec<&Outcome>)> = Vec::new();
    for outcome in known {
        let named: Vec<_> = outcome.pages.iter().map(|page| printable(page)).collect();
        let name = if named.is_empty() {
            cause(outcome)
        } else {
            named.join(" and ")
        };
        match pages.iter_mut().find(|(page, _)| *page == name) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => pages.push((name, vec![outcome])),
        }
    }
    let word = word(Verdict::Known);
    let lines = pages.into_iter();
    lines
        .map(|(page, outcomes)| format!("  {word}: {}: {page}", ids(&outcomes)))
        .collect()
}

/// The closing line for an outcome.
fn in_one_line(outcome: &Outcome) -> String {
    let (word, id, label) = (
        word(outcome.verdict),
        printable(&outcome.id),
        outcome.label(),
    );
    let cause = match outcome.verdict {
        // It says what to do.
        Verdict::Skip => whole_cause(outcome),
        _ => cause(outcome),
    };
    let known = outcome.hint.as_ref().map(|_| " (known)");
    format!(
        "  {word}: {id} {label}: {cause}{}",
        known.unwrap_or_default()
    )
}

/// How to accept failures that are known for the runtime, if there are any.
pub(super) fn known_of_the_runtime(report: &RunReport) -> Option<String> {
    let failed = report
        .outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Fail);
    let known = failed
        .clone()
        .filter(|outcome| outcome.hint.is_some())
        .count();
    let runtime = &report.info.runtime;
    (known > 0).then(|| {
        format!(
            "known of {} {}: {known} of {}; `--expectations builtin` accepts them",
            cut(&runtime.runtime_name, REASON),
            cut(&runtime.runtime_version, REASON),
            counted(failed.count(), "failure", "failures"),
        )
    })
}

/// The closing line for each piece of advice.
fn advice_in_one_line(outcome: &Outcome) -> impl Iterator<Item = String> {
    outcome.advice.iter().map(|advice| {
        let (id, label) = (printable(&outcome.id), outcome.label());
        let (expected, actual) = (
            cut(&short_ids(&advice.expected()), REASON),
            cut(&short_ids(&advice.actual()), REASON),
        );
        let subject = cut(&short_ids(&advice.subject), REASON);
        format!("  advice: {id} {label}: {subject}: should be {expected}, but {actual}")
    })
}

/// One paragraph each, up to a limit.
fn listed(text: &mut Text, items: impl Iterator<Item = String>) {
    let mut more = 0_usize;
    for (nth, item) in items.enumerate() {
        if nth < LISTED {
            text.line(&item, 4);
        } else {
            more += 1;
        }
    }
    if more > 0 {
        text.line(&format!("  … {more} more like these"), 4);
    }
}

/// The title of a page about the run.
pub(super) fn title(report: &RunReport) -> String {
    let runtime = &report.info.runtime;
    let (name, version) = (&runtime.runtime_name, &runtime.runtime_version);
    format!("Container events of {name} {version}")
}

/// `20 cases up to tier extended, run 40 times: 38 passed, 2 failed; 23 invariants: 23 passed, 0
/// failed; in 42.2 s`.
pub(super) fn counts(report: &RunReport) -> String {
    let (invariants, cases): (Vec<_>, Vec<_>) = report
        .outcomes
        .iter()
        .partition(|outcome| outcome.is_invariant());
    let names: BTreeSet<_> = cases.iter().map(|outcome| &outcome.name).collect();
    let repeated = if names.len() < cases.len() {
        format!(", run {} times", cases.len())
    } else {
        String::new()
    };
    let tier = report.tier.as_ref();
    let tier = tier.map_or_else(String::new, |tier| {
        format!(" up to tier {}", cut(tier, REASON))
    });
    let judged = if invariants.is_empty() {
        String::new()
    } else {
        let count = counted(invariants.len(), "invariant", "invariants");
        format!("{count}: {}; ", verdicts(&invariants))
    };
    if let Some(watch) = &report.watch {
        let events = counted(saturated(watch.events), "event", "events");
        let containers = counted(saturated(watch.containers), "container", "containers");
        let took = span(report.duration);
        let lag = lag(report).unwrap_or_default();
        return format!(
            "watch: {events}{lag}, {containers} of pods that changed; {judged}in {took}"
        );
    }
    // The model's clock is simulated.
    let simulated = match &*report.info.endpoint {
        MODEL => " of simulated time",
        _ => "",
    };
    format!(
        "{}{tier}{repeated}: {}; {judged}in {}{simulated}",
        counted(names.len(), "case", "cases"),
        verdicts(&cases),
        span(report.duration)
    )
}

/// ` (median lag 1.2 ms, p99 3.4 ms, at most 5 ms)` of the events of a watch.
fn lag(report: &RunReport) -> Option<String> {
    let mut latencies = report.latencies.iter();
    let lag = latencies.find(|found| found.latency.limit == Limit::EventLag)?;
    let [median, p99] = [lag.percentile(50)?, lag.percentile(99)?].map(span);
    let most = span(lag.latency.took);
    Some(format!(" (median lag {median}, p99 {p99}, at most {most})"))
}

fn saturated(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// `26 passed, 1 failed, 1 known to fail`: passes and failures always, other verdicts only if they
/// occur.
fn verdicts(outcomes: &[&Outcome]) -> String {
    let all = [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::UnexpectedPass,
        Verdict::Known,
        Verdict::Error,
        Verdict::Inconclusive,
        Verdict::Skip,
    ];
    let count = |verdict| {
        let outcomes = outcomes.iter();
        outcomes
            .filter(|outcome| outcome.verdict == verdict)
            .count()
    };
    let counts: Vec<_> = all
        .into_iter()
        .map(|verdict| (count(verdict), verdict))
        .filter(|(count, verdict)| *count > 0 || matches!(verdict, Verdict::Pass | Verdict::Fail))
        .map(|(count, verdict)| format!("{count} {}", word(verdict)))
        .collect();
    counts.join(", ")
}

/// A number and its noun, such as `1 pod` or `2 pods`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::expect;

    use super::summary;
    use crate::golden::assert_file;
    use crate::outcome::{Outcome, Verdict};
    use crate::report::fixture::{failed, fixture, outcome};

    #[test]
    fn the_summary_names_all_that_needs_a_look() {
        assert_file(
            "fixtures/reports/summary.txt",
            &summary(&fixture(), false, 100),
        );
    }

    #[test]
    fn a_good_run_is_summed_up_in_a_few_lines() {
        let mut report = fixture();
        report.outcomes = vec![outcome("ORD-01", "order::four-events", Verdict::Pass)];
        report.faults.clear();
        report.foreign_pods = 0;
        expect![[r#"
            containerd 2.1.9 at unix:///run/containerd/containerd.sock, run
              0f6a1c1e-3f0b-4b52-9a25-6f2f3c1d7e11
            1 case up to tier extended: 1 passed, 0 failed; in 9.170 s
              note: known.yaml: the entry of ORD-02 has expired on 2026-01-31

                                                          MUST                SHOULD
            profile   verdict                      kept broken known  open  kept broken
            cache     conformant                      1      0     0     0     0      0
            hint      not judged                      0      0     0     0     1      0
            observer  not judged                      0      0     0     0     0      0

            guarantee   cache
            Complete    –
            Once        –
            Ordered     kept
            Prompt      –
            Truthful    –
            Consistent  –
            Current     –
            Addressed   –
            Continuous  –
            Independent –
            Recoverable –
            Bounded     –
            containerd 2.1.9 keeps 1 of 1 guarantees for cache
        "#]]
        .assert_eq(&summary(&report, false, 100));
    }

    #[test]
    fn a_case_run_several_times_counts_once() {
        let mut report = fixture();
        report.outcomes = (1..4)
            .map(|repetition| Outcome {
                repetition: Some(repetition),
                ..outcome("ORD-01", "order::four-events", Verdict::Pass)
            })
            .collect();
        let summary = summary(&report, false, 100);
        assert!(
            summary.contains(
                "1 case up to tier extended, run 3 times: 3 passed, 0 failed; in 9.170 s"
            )
        );
    }

    #[test]
    fn a_node_where_all_fails_is_summed_up_on_a_screen() {
        let mut report = fixture();
        report.outcomes = vec![failed(); 10_000];
        let summary = summary(&report, false, 100);
        assert!(
            summary.contains("failed: 10000 with refuted-wait, which breaks Current: ORD-01\n"),
            "{summary}"
        );
        assert!(summary.lines().count() < 40, "{summary}");
        let verbose = super::summary(&report, true, 100);
        assert!(
            verbose.contains("\n  … 9950 more like these\n"),
            "{verbose}"
        );
        assert!(verbose.lines().count() < 140, "{verbose}");
    }

    #[test]
    fn a_subject_of_megabytes_is_cut() {
        let mut report = fixture();
        for outcome in &mut report.outcomes {
            for violation in outcome.violations.iter_mut().chain(&mut outcome.advice) {
                violation.subject = "c (an-id)".repeat(100_000);
            }
            outcome.reason = None;
        }
        assert!(summary(&report, false, 100).len() < 8_000);
    }

    #[test]
    fn a_shared_reason_is_shown_once() {
        let mut report = fixture();
        let skipped = |id: &str, reason: &str| Outcome {
            reason: Some(reason.to_owned()),
            ..outcome(id, "order::four-events", Verdict::Skip)
        };
        let undecided = |id: &str| Outcome {
            verdict: Verdict::Error,
            ..skipped(id, "not run: the runtime was lost")
        };
        report.outcomes = vec![undecided("ORD-04"), undecided("ORD-05")];
        let text = summary(&report, false, 100);
        assert!(
            text.contains("\n  undecided: ORD-04 ORD-05: not run: the runtime was lost\n"),
            "{text}"
        );
        report.outcomes = vec![
            skipped("ORD-01", "no events"),
            skipped("ORD-02", "no network"),
            skipped("ORD-03", "no events"),
            skipped("ORD-03", "no events"),
        ];
        let summary = summary(&report, false, 100);
        let skips = summary.lines().filter(|line| line.contains("skipped:"));
        let skips: Vec<_> = skips.collect();
        let alone = "  skipped: ORD-02: no network";
        assert_eq!(skips, ["  skipped: ORD-01 ORD-03: no events", alone]);
        report.outcomes = (0..1_000)
            .map(|nth| skipped(&format!("ORD-{nth}"), "no events"))
            .collect();
        let summary = super::summary(&report, false, 100);
        assert!(summary.contains("and 750 more: no events"), "{summary}");
        let long = "a long reason, and at its end what to do: allow it";
        report.outcomes = vec![skipped("ORD-01", &long.repeat(5))];
        let nothing_ran = super::summary(&report, false, 1_000);
        assert!(nothing_ran.contains("allow it\n"), "{nothing_ran}");
        report.outcomes.push(failed());
        let short = super::summary(&report, false, 100);
        let line = short.lines().find(|line| line.contains("skipped:"));
        assert!(line.is_some_and(|line| line.ends_with('…')), "{short}");
        let reasons = ["a", "b", "c"].map(|it| skipped(it, it));
        report.outcomes.extend(reasons);
        let many = super::summary(&report, false, 100);
        let ids = "\n  skipped: ORD-01 a b c (--verbose shows why)\n";
        assert!(many.contains(ids), "{many}");
        assert!(super::summary(&report, true, 1_000).contains("allow it\n"));
    }
}
