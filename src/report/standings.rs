//! The verdict on a runtime as text: a row for each profile, and the guarantees.

use std::fmt::{self, Write};

use super::printable::cut;
use super::text::{REASON, Text};
use crate::outcome::{Conformance, Guarantee, Keeping, RunReport, Standing};

/// The sentence about a run of a part of its tier.
pub(super) const LEFT_OUT: &str = "Cases were left out, so that no profile is more than partial.";

/// The columns of a row.
const ROW: usize = 75;

/// A row, or three lines on a narrow terminal, for each profile for which the runtime was judged.
/// `open` counts skipped, inconclusive and undecided claims.
pub(super) fn write_standings(text: &mut Text, report: &RunReport) -> fmt::Result {
    let is_wide = text.fits(ROW);
    text.out.push('\n');
    if is_wide {
        writeln!(text, "{:>50}{:>22}", "MUST", "SHOULD")?;
        writeln!(
            text,
            "{:<10}{:<28}{:>5}{:>7}{:>6}{:>6}{:>6}{:>7}",
            "profile", "verdict", "kept", "broken", "known", "open", "kept", "broken"
        )?;
    }
    for standing in report.standings() {
        let [kept, broken, known, open, advised, ignored] = standing.counts();
        if !is_wide {
            let verdict = words(&standing, report);
            text.line(&format!("{}: {verdict}", standing.profile), 2);
            let musts = format!("{kept} kept, {broken} broken, {known} known, {open} open");
            text.line(&format!("  MUST    {musts}"), 10);
            text.line(&format!("  SHOULD  {advised} kept, {ignored} broken"), 10);
            continue;
        }
        writeln!(
            text,
            "{:<10}{:<28}{:>5}{:>7}{:>6}{:>6}{:>6}{:>7}",
            standing.profile.to_string(),
            words(&standing, report),
            kept,
            broken,
            known,
            open,
            advised,
            ignored,
        )?;
    }
    write_guarantees(text, report)
}

/// A row for each guarantee, a column for each profile, and a line to quote for each profile;
/// nothing if cases were left out, or most are open. A profile for which nothing
/// was checked has no column.
fn write_guarantees(text: &mut Text, report: &RunReport) -> fmt::Result {
    if report.partial {
        text.line(LEFT_OUT, 2);
        return Ok(());
    }
    if report.is_mostly_open() {
        text.line("Most cases are open, so that no guarantee is shown.", 2);
        return Ok(());
    }
    let mut standings = report.standings();
    standings.retain(is_tried);
    if standings.is_empty() {
        return Ok(());
    }
    write!(text, "\n{:<12}", "guarantee")?;
    for standing in &standings {
        write!(text, "{:<9}", standing.profile.to_string())?;
    }
    text.out.truncate(text.out.trim_end().len());
    for guarantee in Guarantee::ALL {
        write!(text, "\n{guarantee:<12}")?;
        for standing in &standings {
            write!(text, "{:<9}", standing.guarantees[&guarantee])?;
        }
        text.out.truncate(text.out.trim_end().len());
    }
    text.out.push('\n');
    for quoted in quotable(report) {
        text.line(&quoted, 2);
    }
    Ok(())
}

/// `containerd 2.1.9 keeps 9 of 12 guarantees for hint; breaks Recoverable` for each profile; none
/// if cases were left out or most are open, and of a watch.
pub(super) fn quotable(report: &RunReport) -> Vec<String> {
    let is_whole = !report.partial && !report.is_mostly_open();
    if !is_whole || report.watch.is_some() || report.undecided().is_some() {
        return Vec::new();
    }
    let runtime = &report.info.runtime;
    let (name, version) = (
        cut(&runtime.runtime_name, REASON),
        cut(&runtime.runtime_version, REASON),
    );
    let standings = report.standings().into_iter();
    standings
        .filter(is_tried)
        .map(|standing| format!("{name} {version} {}", standing.in_one_line()))
        .collect()
}

/// Whether a guarantee was checked for the profile.
pub(super) fn is_tried(standing: &Standing) -> bool {
    let mut kept = standing.guarantees.values();
    kept.any(|kept| *kept != Keeping::Open)
}

/// The verdict on a profile. A watch checks too little for `conformant`.
pub(super) fn words(standing: &Standing, report: &RunReport) -> String {
    let known = standing.musts.known;
    match standing.verdict {
        Conformance::Conformant if report.watch.is_some() => "nothing broken".to_owned(),
        Conformance::KnownFailures if report.watch.is_some() => {
            format!("nothing broken but {known} known")
        }
        Conformance::KnownFailures if report.partial || standing.musts.open() > 0 => {
            format!("partial but for {known} known")
        }
        Conformance::KnownFailures => format!("conformant but for {known} known"),
        verdict => plain_words(verdict),
    }
}

/// The words for a verdict without known counts.
pub(super) fn plain_words(verdict: Conformance) -> String {
    match verdict {
        Conformance::Error => "undecided".to_owned(),
        verdict => verdict.to_string(),
    }
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Text, quotable, write_standings};
    use crate::outcome::{Outcome, Verdict};
    use crate::report::fixture::{failed, fixture, outcome};

    fn check(verdicts: &[Verdict], is_partial: bool, expected: &Expect) {
        let mut report = fixture();
        report.faults.clear();
        report.partial = is_partial;
        let outcomes = verdicts.iter();
        let outcomes = outcomes.map(|verdict| outcome("ORD-01", "order::four-events", *verdict));
        report.outcomes = outcomes.collect();
        let mut text = Text::new(100);
        write_standings(&mut text, &report).unwrap();
        let text = text.out;
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
        let cache = text.lines().find(|line| line.starts_with("cache"));
        let words: Vec<_> = cache.unwrap().split_whitespace().collect();
        expected.assert_eq(&words.join(" "));
    }

    #[test]
    fn what_is_known_is_not_called_non_conformant() {
        let known = [Verdict::Pass, Verdict::Known, Verdict::Known];
        check(
            &known,
            false,
            &expect!["cache conformant but for 2 known 1 0 2 0 0 0"],
        );
        check(
            &known,
            true,
            &expect!["cache partial but for 2 known 1 0 2 0 0 0"],
        );
        let with_skips = [&known[..], &[Verdict::Skip]].concat();
        check(
            &with_skips,
            false,
            &expect!["cache partial but for 2 known 1 0 2 1 0 0"],
        );
    }

    #[test]
    fn a_narrow_terminal_has_lines_in_place_of_columns() {
        let mut text = Text::new(40);
        write_standings(&mut text, &fixture()).unwrap();
        let cache: Vec<_> = text.out.lines().skip(1).take(4).collect();
        expect![[r#"
            cache: non-conformant
              MUST    3 kept, 1 broken, 1 known, 3
                      open
              SHOULD  0 kept, 1 broken"#]]
        .assert_eq(&cache.join("\n"));
        let is_long = |line: &&str| line.chars().count() > 40;
        assert_eq!(text.out.lines().find(is_long), None);
    }

    #[test]
    fn a_guarantee_is_kept_by_passes_and_broken_by_findings() {
        let mut report = fixture();
        report.faults.clear();
        let pass = |id: &str, name: &str| outcome(id, name, Verdict::Pass);
        let race = Outcome {
            verdict: Verdict::Known,
            race: true,
            ..failed()
        };
        report.outcomes = vec![
            pass("ORD-01", "order::it"),
            pass("CMP-01", "completeness::it"),
        ];
        let quoted = |report: &_| quotable(report)[0].clone();
        assert_eq!(
            quoted(&report),
            "containerd 2.1.9 keeps 2 of 2 guarantees for cache"
        );
        report.outcomes.push(race);
        assert_eq!(
            quoted(&report),
            "containerd 2.1.9 keeps 2 of 3 guarantees for cache; races in Current"
        );
        report.outcomes.push(failed());
        assert_eq!(
            quoted(&report),
            "containerd 2.1.9 keeps 2 of 3 guarantees for cache; breaks Current"
        );
        report.partial = true;
        assert!(quotable(&report).is_empty());
    }

    #[test]
    fn what_is_not_known_or_not_decided_outweighs_what_is() {
        let known = [Verdict::Pass, Verdict::Known];
        check(
            &[&known[..], &[Verdict::Fail]].concat(),
            false,
            &expect!["cache non-conformant 1 1 1 0 0 0"],
        );
        check(
            &[&known[..], &[Verdict::Error]].concat(),
            false,
            &expect!["cache undecided 1 0 1 1 0 0"],
        );
    }
}
