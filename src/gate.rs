//! A gate: one verdict on one or more reports, by a policy.
//!
//! A [`Policy`] states the requirements of a roll-out or a pipeline. Each requirement is a rule
//! that passes, fails, or is undecided; the gate fails if one fails, and passes if all pass.
//! Performs no file I/O: the reports are data. See `ci/policies/README.md`.

mod policy;
mod series;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::io;
use std::time::Duration;

use policy::{Forbidden, LatencyLimits, Required, Skips, Watched};

use crate::case::{Tier, did_you_mean, load};
use crate::outcome::{Profile, Verdict, WatchTotals, is_invariant};
use crate::report::{CaseOutcome, Document, Markdown, NamedReport, Rate, cut, junit, span};

pub use policy::{Policy, schema};

/// Whether a rule, or all of them, are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    Pass,
    /// The reports do not decide it: they have no such verdict, or too few repetitions.
    CannotTell,
    Fail,
}

/// The result of one policy rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub rule: String,
    pub ruling: Ruling,
    pub required: String,
    pub found: String,
}

/// The results of all rules of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The rules, in the order of the policy.
    pub rows: Vec<Row>,
}

/// The maximum length of a finding, in characters.
const FOUND: usize = 400;

/// The reason why reports cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// A run is given twice, and would count twice.
    #[error("{0} and {1} are reports on the same run; give each once")]
    Repeated(String, String),
    /// The policy has a name that neither the suite nor a report has.
    #[error("`skips`: there is no case or area `{0}`{1}")]
    UnknownName(String, String),
    #[error("the policy has `baseline`; give reports to compare with as --baseline REPORT...")]
    NoBaseline,
    #[error("--baseline needs `baseline: {{alpha: 0.05}}` in the policy")]
    NoComparison,
}

/// Judges reports by a policy, optionally in comparison with a baseline.
pub fn judge(
    policy: &Policy,
    reports: &[NamedReport],
    baseline: &[NamedReport],
) -> Result<Gate, Unusable> {
    let mut runs = BTreeMap::new();
    for NamedReport { name, report } in reports.iter().chain(baseline) {
        if let Some(other) = runs.insert(&report.run, name) {
            return Err(Unusable::Repeated(other.clone(), name.clone()));
        }
    }
    match (&policy.baseline, baseline) {
        (Some(_), []) => return Err(Unusable::NoBaseline),
        (None, [_, ..]) => return Err(Unusable::NoComparison),
        _ => {}
    }
    if let Some(unknown) = policy
        .skips
        .as_ref()
        .and_then(|it| unknown_name(it, reports))
    {
        return Err(unknown);
    }
    let mut rows = vec![decided(reports)];
    let is_altered = |it: &&[NamedReport]| it.iter().any(|it| it.report.injected().is_some());
    rows.extend(
        [reports, baseline]
            .into_iter()
            .filter(is_altered)
            .map(unaltered),
    );
    let profiles = policy.profiles.iter();
    rows.extend(profiles.map(|(profile, required)| conformance(reports, *profile, *required)));
    rows.extend(policy.tier.map(|least| tier(reports, least)));
    if let Some(max) = policy.max_known {
        rows.extend([known(reports, max), expired(reports)]);
    }
    if let Some(skips) = &policy.skips {
        rows.extend(skipped(reports, skips));
    }
    if let Some(limits) = &policy.watch {
        rows.extend(watched(reports, limits));
    }
    for limits in &policy.latencies {
        rows.extend(latencies(reports, limits));
    }
    if let Some(flakes) = &policy.flakes {
        rows.extend(series::flakes(reports, flakes));
    }
    let forbidden = policy.forbidden_versions.iter();
    rows.extend(forbidden.map(|forbidden| version(reports, forbidden)));
    if let Some(compared) = &policy.baseline {
        rows.extend(series::worse(reports, baseline, compared));
    }
    Ok(Gate { rows })
}

impl Gate {
    pub fn ruling(&self) -> Ruling {
        let rulings = self.rows.iter().map(|row| row.ruling);
        rulings.max().unwrap_or(Ruling::CannotTell)
    }

    /// A line for each rule, and the verdict.
    pub fn text(&self) -> String {
        let widest = |width: fn(&Row) -> usize| self.rows.iter().map(width).max().unwrap_or(0);
        let rule = widest(|row| row.rule.chars().count());
        let required = widest(|row| row.required.chars().count());
        let mut text = String::new();
        for row in &self.rows {
            let (ruling, found) = (row.ruling.to_string(), cut(&row.found, FOUND));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{ruling:<11}  {:<rule$}  {:<required$}  {found}",
                row.rule, row.required
            );
        }
        let _ = writeln!(text, "gate: {}", self.ruling());
        text
    }

    /// The ruling, and that of each rule.
    pub fn json(&self) -> serde_json::Value {
        let rules = self.rows.iter().map(|row| {
            serde_json::json!({
                "rule": row.rule,
                "verdict": row.ruling.to_string(),
                "required": row.required,
                "found": row.found,
            })
        });
        serde_json::json!({
            "verdict": self.ruling().to_string(),
            "rules": rules.collect::<Vec<_>>(),
        })
    }

    /// `JUnit` XML: a test case for each rule.
    pub fn write_junit(&self, out: impl io::Write) -> io::Result<()> {
        let rules = self.rows.iter().map(|row| {
            let fault = match row.ruling {
                Ruling::Pass => None,
                Ruling::CannotTell => Some("undecided"),
                Ruling::Fail => Some("fail"),
            };
            let why = || format!("required: {}; found: {}", row.required, row.found);
            (row.rule.clone(), fault.map(|fault| (fault, why())))
        });
        junit::write_rules(rules, out)
    }

    pub fn markdown(&self) -> String {
        let mut page = Markdown::default();
        page.heading(3, &format!("Gate: {}", self.ruling()));
        let rows = self.rows.iter().map(|row| {
            let ruling = row.ruling.to_string();
            let (rule, required) = (row.rule.clone(), row.required.clone());
            vec![ruling, rule, required, row.found.clone()]
        });
        page.table(&["verdict", "rule", "required", "found"], rows);
        page.into_text()
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::CannotTell => "cannot tell",
            Self::Fail => "fail",
        })
    }
}

/// The row of a rule with a result for each report: it shows the worst.
fn row(
    rule: impl Into<String>,
    required: impl Into<String>,
    reports: &[NamedReport],
    look: impl Fn(&Document) -> (Ruling, String),
) -> Row {
    let mut found = reports.iter().map(|input| (look(&input.report), input));
    let first = found.next().expect("the command line requires a report");
    let ((ruling, said), worst) =
        found.fold(
            first,
            |worst, next| {
                if next.0.0 > worst.0.0 { next } else { worst }
            },
        );
    let found = if reports.len() > 1 && ruling != Ruling::Pass {
        format!("{}: {said}", worst.name)
    } else {
        said
    };
    Row {
        rule: rule.into(),
        required: required.into(),
        ruling,
        found,
    }
}

/// The rule that a runtime without decided cases passes no gate.
fn decided(reports: &[NamedReport]) -> Row {
    row("decided", "not nothing", reports, |report| {
        let rate = Rate::of(report.outcomes.iter().map(|outcome| outcome.verdict));
        let is_open = |outcome: &CaseOutcome| {
            matches!(outcome.verdict, Verdict::Error | Verdict::Inconclusive)
        };
        let ruling = match rate.decided {
            0 if report.outcomes.iter().any(is_open) => Ruling::CannotTell,
            0 => Ruling::Fail,
            _ => Ruling::Pass,
        };
        let (decided, all) = (rate.decided, report.outcomes.len());
        (ruling, format!("{decided} of {all} outcomes"))
    })
}

/// The rule that a run with injected defects decides nothing about the runtime.
fn unaltered(reports: &[NamedReport]) -> Row {
    let required = "no injected defect";
    row("runtime", required, reports, |report| {
        match report.injected() {
            Some(defects) => (Ruling::CannotTell, format!("a relay injected {defects}")),
            None => (Ruling::Pass, "none".to_owned()),
        }
    })
}

fn conformance(reports: &[NamedReport], profile: Profile, required: Required) -> Row {
    let rule = format!("profile {profile}");
    row(rule, required.name(), reports, |report| {
        let Some(standing) = report.standing(profile) else {
            return (Ruling::CannotTell, "not judged for it".to_owned());
        };
        let ruling = match required.is_met_by(standing.verdict) {
            Some(true) => Ruling::Pass,
            Some(false) => Ruling::Fail,
            None => Ruling::CannotTell,
        };
        let broken = if standing.broken.is_empty() {
            String::new()
        } else {
            format!(", {}", listed(&standing.broken))
        };
        let failed = report.outcomes.iter();
        let mut failed = failed.filter(|it| it.verdict == Verdict::Fail);
        let hint = if standing.musts.failed > 0 && failed.all(|it| it.hint.is_some()) {
            "; all are known: run with --expectations builtin"
        } else {
            ""
        };
        (ruling, format!("{}{broken}{hint}", standing.verdict))
    })
}

/// The rule that a run had all cases of a tier.
fn tier(reports: &[NamedReport], least: Tier) -> Row {
    row("tier", format!("at least {least}"), reports, |report| {
        if report.watch.is_some() {
            return (Ruling::CannotTell, "a watch runs no cases".to_owned());
        }
        // A run without a tier selected all cases.
        let tier = report.tier.as_deref().unwrap_or("full");
        let ruling = match serde_json::from_value::<Tier>(tier.into()) {
            Ok(tier) if tier >= least && !report.partial => Ruling::Pass,
            _ => Ruling::Fail,
        };
        let part = if report.partial { "a part of " } else { "" };
        (ruling, format!("{part}{tier}"))
    })
}

fn known(reports: &[NamedReport], max: usize) -> Row {
    row("known", format!("at most {max}"), reports, |report| {
        let known = ids(report, |outcome| outcome.verdict == Verdict::Known);
        (at_most(known.len(), max), counted(&known))
    })
}

fn expired(reports: &[NamedReport]) -> Row {
    row("expired", "none", reports, |report| {
        let expired: BTreeSet<&str> = report.expired.iter().map(String::as_str).collect();
        (at_most(expired.len(), 0), counted(&expired))
    })
}

fn skipped(reports: &[NamedReport], skips: &Skips) -> Vec<Row> {
    let is_skipped = |outcome: &CaseOutcome| outcome.verdict == Verdict::Skip;
    let max = skips.max.map(|max| {
        row("skipped", format!("at most {max}"), reports, |report| {
            let skipped = ids(report, |it| is_skipped(it) && !is_invariant(&it.id));
            (at_most(skipped.len(), max), counted(&skipped))
        })
    });
    let never = skips.never.iter().map(|wanted| {
        row(format!("skipped {wanted}"), "none", reports, |report| {
            if report.watch.is_some() {
                return (Ruling::CannotTell, "a watch runs no cases".to_owned());
            }
            let all = ids(report, |outcome| is_of(outcome, wanted));
            let skipped = ids(report, |outcome| {
                is_of(outcome, wanted) && is_skipped(outcome) && !skips.except.contains(&outcome.id)
            });
            if all.is_empty() {
                return (Ruling::Fail, "not in the report".to_owned());
            }
            (at_most(skipped.len(), 0), counted(&skipped))
        })
    });
    max.into_iter().chain(never).collect()
}

/// A name in `skips` that is neither that of a built-in case or area nor in a report.
fn unknown_name(skips: &Skips, reports: &[NamedReport]) -> Option<Unusable> {
    let cases = load::embedded().expect("a test reads the built-in cases");
    let built_in = cases.iter().map(|it| (&*it.id, &*it.name));
    let outcomes = reports.iter().flat_map(|it| &it.report.outcomes);
    let both = built_in.chain(outcomes.map(|it| (&*it.id, &*it.name)));
    let known = both.flat_map(|(id, name)| [id, name.split_once("::").map_or(name, |it| it.0)]);
    let known: BTreeSet<&str> = known.collect();
    let mut names = skips.never.iter().chain(&skips.except);
    let unknown = names.find(|name| !known.contains(name.as_str()))?;
    let hint = did_you_mean(unknown, known.into_iter());
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    Some(Unusable::UnknownName(unknown.clone(), hint))
}

fn watched(reports: &[NamedReport], limits: &Watched) -> Vec<Row> {
    let look = |rule: &str, required: String, seen: &dyn Fn(&WatchTotals) -> (Ruling, u64)| {
        row(rule, required, reports, |report| match &report.watch {
            Some(watch) => {
                let (ruling, found) = seen(watch);
                (ruling, found.to_string())
            }
            None => (Ruling::CannotTell, "a run, no watch".to_owned()),
        })
    };
    let least = limits.min_containers;
    let containers = look("watch containers", format!("at least {least}"), &|watch| {
        // A longer watch may see more.
        let ruling = at_most(least, watch.containers).min(Ruling::CannotTell);
        (ruling, watch.containers)
    });
    let outages = limits.max_outages.map(|max| {
        look("watch outages", format!("at most {max}"), &|watch| {
            (at_most(watch.outages, max), watch.outages)
        })
    });
    [containers].into_iter().chain(outages).collect()
}

/// Whether an outcome has this id or belongs to this area.
fn is_of(outcome: &CaseOutcome, wanted: &str) -> bool {
    let area = outcome.name.split_once("::").map(|(area, _)| area);
    outcome.id == wanted || area == Some(wanted)
}

fn latencies(reports: &[NamedReport], limits: &LatencyLimits) -> Vec<Row> {
    let limited = limits
        .limits()
        .filter_map(|(word, limit)| Some((word, limit?)));
    let rows = limited.map(|(word, limit)| {
        let rule = format!("{} {word}", limits.limit);
        row(
            rule,
            format!("at most {}", span(limit)),
            reports,
            |report| {
                let all = report.latencies.iter();
                let all = all.filter(|latency| latency.limit == limits.limit);
                let measured: Option<Vec<f64>> = all
                    .map(|latency| match word {
                        "p50" => latency.p50_ms,
                        "p99" => latency.p99_ms,
                        _ => Some(latency.worst_ms),
                    })
                    .collect();
                let longest = measured.and_then(|all| all.into_iter().reduce(f64::max));
                let Some(ms) = longest else {
                    return (Ruling::CannotTell, "not measured".to_owned());
                };
                let took = Duration::from_secs_f64(ms.clamp(0.0, 1e12) / 1e3);
                (at_most(took, limit), span(took))
            },
        )
    });
    rows.collect()
}

fn version(reports: &[NamedReport], forbidden: &Forbidden) -> Row {
    let Forbidden {
        runtime,
        version,
        reason,
    } = forbidden;
    let refused = format!("not {}", version.as_ref());
    row(format!("version {runtime}"), refused, reports, |report| {
        let found = format!("{} {}", report.runtime.name, report.runtime.version);
        if report.runtime.name != *runtime {
            return (Ruling::Pass, found);
        }
        match version.include(&report.runtime.version) {
            Some(false) => (Ruling::Pass, found),
            Some(true) => (Ruling::Fail, format!("{found}: {reason}")),
            None => (Ruling::CannotTell, found),
        }
    })
}

fn at_most<T: PartialOrd + Copy>(found: T, max: T) -> Ruling {
    if found <= max {
        Ruling::Pass
    } else {
        Ruling::Fail
    }
}

/// The distinct ids of these outcomes.
fn ids(report: &Document, which: impl Fn(&CaseOutcome) -> bool) -> BTreeSet<&str> {
    let outcomes = report.outcomes.iter().filter(|outcome| which(outcome));
    outcomes.map(|outcome| &*outcome.id).collect()
}

/// The number of ids, and the ids.
fn counted(ids: &BTreeSet<&str>) -> String {
    match ids.len() {
        0 => "none".to_owned(),
        count => format!("{count}: {}", listed(ids)),
    }
}

/// A list of ids, truncated.
fn listed<T: AsRef<str>>(ids: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 12;
    let ids: Vec<T> = ids.into_iter().collect();
    let shown: Vec<&str> = ids.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match ids.len().saturating_sub(SHOWN) {
        0 => shown.join(" "),
        more => format!("{} and {more} more", shown.join(" ")),
    }
}
