//! The rules of a policy on the failure rate of each case, over all reports.

use std::collections::BTreeMap;

use super::policy::{Baseline, Flakes, Share};
use super::{Row, Ruling, listed};
use crate::outcome::{Verdict, is_invariant};
use crate::report::{NamedReport, Rate, by_id};
use crate::statistics::{IMPOSSIBLE, Series, corrected, is_significant, p_value_of_all};

/// The rates of the cases and invariants, by id; each report judges an invariant once.
fn rates(reports: &[NamedReport]) -> BTreeMap<&str, Rate> {
    let outcomes = reports.iter().flat_map(|input| &input.report.outcomes);
    let tested = by_id(outcomes.filter(|outcome| outcome.verdict != Verdict::Skip));
    tested.into_iter().map(|(id, it)| (id, it.rate)).collect()
}

/// The rows on the number of repetitions and on the rates of failures.
pub(super) fn flakes(reports: &[NamedReport], flakes: &Flakes) -> Vec<Row> {
    let mut rates = rates(reports);
    rates.retain(|id, _| !is_invariant(id));
    let least = flakes.min_repetitions;
    let enough = (least > 0).then(|| repetitions(&rates, least));
    let rate = flakes.max_rate.map(|max| flake_rate(&rates, max));
    enough.into_iter().chain(rate).collect()
}

fn repetitions(rates: &BTreeMap<&str, Rate>, least: usize) -> Row {
    let too_few = rates.iter().filter(|(_, rate)| rate.decided < least);
    let too_few: Vec<String> = too_few
        .map(|(id, rate)| format!("{id} ({})", rate.decided))
        .collect();
    let (ruling, found) = match rates.values().map(|rate| rate.decided).min() {
        Some(fewest) if too_few.is_empty() => (Ruling::Pass, format!("at least {fewest}")),
        _ => (
            Ruling::CannotTell,
            format!("fewer of {} cases: {}", too_few.len(), listed(too_few)),
        ),
    };
    Row {
        rule: "repetitions".to_owned(),
        required: format!("at least {least}"),
        ruling,
        found,
    }
}

fn flake_rate(rates: &BTreeMap<&str, Rate>, max: Share) -> Row {
    let mut findings: Vec<(Ruling, f64, String)> = Vec::new();
    for (id, rate) in rates {
        let failed = rate.failed - rate.known;
        let bound = Rate { failed, ..*rate }.highest();
        let observed = share(failed, rate.decided);
        let ruling = if observed > max.get() {
            Ruling::Fail
        } else if bound > max.get() {
            Ruling::CannotTell
        } else {
            Ruling::Pass
        };
        let (percent, of) = (percent(bound), rate.decided);
        let found = format!("{id} {failed} of {of}, up to {percent}");
        findings.push((ruling, bound, found));
    }
    let order = |one: &(Ruling, f64, String), other: &(Ruling, f64, String)| {
        (other.0.cmp(&one.0)).then(other.1.total_cmp(&one.1))
    };
    findings.sort_by(order);
    let ruling = findings.first().map_or(Ruling::CannotTell, |(it, ..)| *it);
    let same = findings.iter().filter(|(it, ..)| *it == ruling);
    let found: Vec<&str> = same.map(|(.., found)| &**found).collect();
    let found = match ruling {
        Ruling::Pass => found.first().map_or_else(String::new, ToString::to_string),
        Ruling::Fail | Ruling::CannotTell => series_of(&found),
    };
    Row {
        rule: "flakes".to_owned(),
        required: format!("at most {}", percent(max.get())),
        ruling,
        found,
    }
}

/// The rows on failure rates that exceed the baseline: of any case, and of all together.
pub(super) fn worse(
    reports: &[NamedReport],
    baseline: &[NamedReport],
    compared: &Baseline,
) -> [Row; 2] {
    let alpha = compared.alpha.get();
    let (before, after) = (rates(baseline), rates(reports));
    let both = after.into_iter().filter_map(|(id, after)| {
        let before = before.get(id)?;
        let series = Series {
            before: (before.failed, before.decided),
            after: (after.failed, after.decided),
        };
        (before.decided > 0 && after.decided > 0).then_some((id, series))
    });
    let both: Vec<(&str, Series)> = both.collect();
    let all: Vec<Series> = both.iter().map(|(_, series)| *series).collect();
    let level = corrected(alpha, &all);
    let worse = both
        .iter()
        .filter(|(_, series)| is_significant(series.p_value(), level));
    let worse: Vec<String> = worse
        .map(|(id, series)| compared_rates(id, *series, series.p_value()))
        .collect();
    let short = all
        .iter()
        .filter(|series| !can_tell(**series, level))
        .count();
    let (ruling, found) = if !worse.is_empty() {
        let worse: Vec<&str> = worse.iter().map(String::as_str).collect();
        (Ruling::Fail, series_of(&worse))
    } else if short == all.len() {
        let found = format!("too few repetitions of all {short} cases in common");
        (Ruling::CannotTell, found)
    } else {
        let found = format!("none of {}, {short} with too few repetitions", all.len());
        (Ruling::Pass, found)
    };
    let of_cases = Row {
        rule: "worse than baseline".to_owned(),
        required: format!("no case, alpha {alpha}"),
        ruling,
        found,
    };
    [of_cases, worse_in_all(&all, level, alpha)]
}

fn worse_in_all(all: &[Series], level: f64, alpha: f64) -> Row {
    let sum = |side: fn(&Series) -> (usize, usize)| {
        let sides = all.iter().map(side);
        sides.fold((0, 0), |sum, side| (sum.0 + side.0, sum.1 + side.1))
    };
    let together = Series {
        before: sum(|series| series.before),
        after: sum(|series| series.after),
    };
    let p = p_value_of_all(all);
    let ruling = if is_significant(p, level) {
        Ruling::Fail
    } else if all.is_empty() {
        Ruling::CannotTell
    } else {
        Ruling::Pass
    };
    Row {
        rule: "worse than baseline".to_owned(),
        required: format!("not in all, alpha {alpha}"),
        ruling,
        found: compared_rates("failed", together, p),
    }
}

/// Whether the series are long enough to detect a case that always passed and now always fails.
fn can_tell(series: Series, level: f64) -> bool {
    let clear = Series {
        before: (0, series.before.1),
        after: (series.after.1, series.after.1),
    };
    is_significant(clear.p_value(), level)
}

fn compared_rates(what: &str, series: Series, p: f64) -> String {
    let Series { before, after } = series;
    let p = if p < IMPOSSIBLE {
        format!("p < {IMPOSSIBLE:e}")
    } else {
        format!("p = {p:.2e}")
    };
    format!(
        "{what} {} of {}, was {} of {}, {p}",
        after.0, after.1, before.0, before.1
    )
}

/// A list of findings, truncated.
fn series_of(found: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = found[..found.len().min(SHOWN)].join("; ");
    match found.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn share(part: usize, of: usize) -> f64 {
    let number = |count| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if of == 0 {
        0.0
    } else {
        number(part) / number(of)
    }
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1e3).round() / 10.0)
}
