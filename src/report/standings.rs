//! The verdicts in the profiles, as a table of fewer than 80 columns.

use std::fmt::{self, Write};

use crate::outcome::{Conformance, RunReport, Standing};

/// A row for each profile for which the runtime was judged. `open` counts skipped, inconclusive and
/// undecided claims.
pub(super) fn write_standings(text: &mut String, report: &RunReport) -> fmt::Result {
    writeln!(text, "\n{:>50}{:>22}", "MUST", "SHOULD")?;
    writeln!(
        text,
        "{:<10}{:<28}{:>5}{:>7}{:>6}{:>6}{:>6}{:>7}",
        "profile", "verdict", "kept", "broken", "known", "open", "kept", "broken"
    )?;
    for standing in report.standings() {
        let [kept, broken, known, open, advised, ignored] = standing.counts();
        writeln!(
            text,
            "{:<10}{:<28}{:>5}{:>7}{:>6}{:>6}{:>6}{:>7}",
            standing.profile.to_string(),
            words(&standing, report.partial),
            kept,
            broken,
            known,
            open,
            advised,
            ignored,
        )?;
    }
    if report.partial {
        writeln!(
            text,
            "Cases were left out, so that no profile is more than partial."
        )?;
    }
    Ok(())
}

pub(super) fn words(standing: &Standing, is_partial: bool) -> String {
    let known = standing.musts.known;
    match standing.verdict {
        Conformance::KnownFailures if is_partial || standing.musts.open() > 0 => {
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
mod tests {
    use expect_test::{Expect, expect};

    use super::write_standings;
    use crate::outcome::Verdict;
    use crate::report::fixture::{fixture, outcome};

    fn check(verdicts: &[Verdict], is_partial: bool, expected: &Expect) {
        let mut report = fixture();
        report.faults.clear();
        report.partial = is_partial;
        let outcomes = verdicts.iter();
        let outcomes = outcomes.map(|verdict| outcome("ORD-01", "order::four-events", *verdict));
        report.outcomes = outcomes.collect();
        let mut text = String::new();
        write_standings(&mut text, &report).unwrap();
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
