//! Many reports side by side: a row for each case, a column for each report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::fleet::{DOCTORS, Nodes, Property, Slow, Slowest, Value};
use super::json::CaseOutcome;
use super::markdown::Markdown;
use super::printable::span;
use super::rate::Rate;
use super::summary::counted;
use crate::outcome::{Conformance, Limit, Profile, Verdict};

/// The verdicts of many reports on each case and invariant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    /// The number of reports.
    pub reports: usize,
    /// The properties of the nodes, in the order of the first report that has them.
    pub properties: Vec<Property>,
    pub latencies: BTreeMap<Limit, Slowest>,
    /// The groups of reports that agree.
    #[serde(rename = "groups")]
    pub columns: Vec<Column>,
    /// The cases and invariants, in the order of the first report that has them.
    #[serde(rename = "cases")]
    pub rows: Vec<Row>,
}

/// Reports that agree in all of these values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    #[serde(flatten)]
    pub nodes: Nodes,
    /// The runtime's name, version and injected defects, and as far as they are known its handler,
    /// its cgroup driver and the kernel.
    pub properties: Vec<String>,
    /// The verdict per profile.
    pub profiles: BTreeMap<Profile, Conformance>,
    /// The outcomes of the first report that have evidence.
    #[serde(skip)]
    pub evidence: Vec<CaseOutcome>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub id: String,
    pub name: String,
    /// The number of reports that fail it, of those that decide it.
    pub nodes: Rate,
    /// The upper bound of that rate.
    pub at_most: f64,
    /// The result of each group; `None` for reports without it.
    pub cells: Vec<Option<Cell>>,
}

/// The result of a case in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cell {
    /// The worst of its verdicts.
    pub verdict: Verdict,
    pub rate: Rate,
}

/// The meaning of the column with the rates over all reports.
pub(super) const RATE_MEANS: &str = "Failed: reports that fail it, of those that decide it, and the \
    upper bound of that rate at 95% confidence (Clopper and Pearson).";

impl Matrix {
    /// The maximum number of groups that a page shows.
    pub const SHOWN: usize = 20;

    /// The headers of the tables of properties and of latencies.
    pub(super) const DIFFERENCES: [&str; 2] = ["Property", "Reports"];
    pub(super) const SLOWEST: [&str; 3] = ["Latency", "Half at most", "Longest"];

    /// The groups that a page shows.
    pub(super) fn shown(&self) -> &[Column] {
        &self.columns[..self.columns.len().min(Self::SHOWN)]
    }

    pub(super) fn title(&self) -> String {
        let reports = counted(self.reports, "report", "reports");
        format!("Container events of {reports}")
    }

    /// `998 alike, 2 differ: node-3, node-7`, and the number of groups that are not shown. Empty if
    /// no two reports agree.
    pub(super) fn headline(&self) -> String {
        const NAMES: usize = 5;
        let shown = self.shown();
        let Some((largest, others)) = shown.split_last().filter(|it| it.0.nodes.count > 1) else {
            return String::new();
        };
        let all: usize = self.columns.iter().map(|it| it.nodes.count).sum();
        let alike = largest.nodes.count;
        if alike == all {
            return format!("all {all} alike");
        }
        let names = others.iter().flat_map(|it| &it.nodes.names);
        let names: Vec<&str> = names.take(NAMES).map(String::as_str).collect();
        let differ = all - alike;
        let more = if differ > names.len() { ", …" } else { "" };
        let mut line = format!("{alike} alike, {differ} differ: {}{more}", names.join(", "));
        if let Some(hidden) = self
            .columns
            .len()
            .checked_sub(shown.len())
            .filter(|it| *it > 0)
        {
            let _ = write!(line, "; {hidden} more groups are only in the JSON");
        }
        line
    }

    /// The properties with several values, and what `doctor` reports; each value with its reports,
    /// the rarest first.
    pub(super) fn differences(&self) -> Vec<Vec<String>> {
        const VALUES: usize = 10;
        let is_shown = |it: &&Property| it.values.len() > 1 || DOCTORS.contains(&&*it.name);
        let differing = self.properties.iter().filter(is_shown);
        let lines = |values: &[Value]| {
            let shown = values.iter().take(VALUES);
            let shown = shown.map(|Value { value, nodes }| {
                format!("{}: {value} ({})", nodes.count, nodes.shown())
            });
            let mut lines: Vec<String> = shown.collect();
            if let Some(more) = values.len().checked_sub(VALUES + 1) {
                lines.push(format!("{} more values", more + 1));
            }
            lines.join("\n")
        };
        let rows = differing.map(|it| vec![it.name.clone(), lines(&it.values)]);
        rows.collect()
    }

    /// For each limit the latency that half of the reports keep, and the reports with the longest.
    /// Empty for a single report.
    pub(super) fn slowest(&self) -> Vec<Vec<String>> {
        let several = self.latencies.iter().filter(|_| self.reports > 1);
        let rows = several.map(|(limit, slowest)| {
            let median = slowest.spread.percentile(50).map_or_else(String::new, span);
            let worst = slowest.worst.iter().map(|Slow { ms, node, case }| {
                let took = span(Duration::from_secs_f64(ms / 1e3));
                format!("{took} {node} ({case})")
            });
            let worst: Vec<String> = worst.collect();
            vec![limit.to_string(), median, worst.join("\n")]
        });
        rows.collect()
    }

    /// The rows in which reports differ or fail, and the title and the rows of the rest.
    pub(super) fn parts(&self) -> (Vec<&Row>, String, Vec<&Row>) {
        let (alike, first): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| row.is_alike());
        let title = match self.columns.len() {
            1 => format!("{} that pass", alike.len()),
            _ => format!("{} alike in each report that has them", alike.len()),
        };
        (first, title, alike)
    }

    /// A page of Markdown: what differs, the rows in which reports differ or fail, the rest of the
    /// rows, collapsed, and the longest latencies.
    pub fn markdown(&self) -> String {
        let mut page = Markdown::default();
        page.heading(2, &self.title());
        let headline = self.headline();
        if !headline.is_empty() {
            page.paragraph(&headline);
        }
        let add = |page: &mut Markdown, header: &[&str], rows: Vec<Vec<String>>| {
            if !rows.is_empty() {
                page.table(header, rows);
            }
        };
        add(&mut page, &Self::DIFFERENCES, self.differences());
        if !self.columns.is_empty() {
            self.cases(&mut page);
        }
        add(&mut page, &Self::SLOWEST, self.slowest());
        page.into_text()
    }

    fn cases(&self, page: &mut Markdown) {
        let of_all = |text: String| (self.reports > 1).then_some(text);
        let line = |first: String, all: String, cells: Vec<String>| -> Vec<String> {
            let start = [first].into_iter().chain(of_all(all));
            start.chain(cells.into_iter().take(Self::SHOWN)).collect()
        };
        let columns = self.shown().iter().map(Column::header);
        let header = line(String::new(), "failed".to_owned(), columns.collect());
        let profiles = Profile::ALL.into_iter().map(|profile| {
            let verdicts = self
                .shown()
                .iter()
                .map(|it| it.verdict(profile).to_string());
            line(
                format!("profile {profile}"),
                String::new(),
                verdicts.collect(),
            )
        });
        let (first, title, alike) = self.parts();
        let shown = |rows: Vec<&Row>| {
            let rows = rows.into_iter().map(|row| {
                let name = format!("{} {}", row.id, row.name);
                line(name, row.rate(), row.shown())
            });
            rows.collect::<Vec<_>>()
        };
        page.table(&header, profiles.chain(shown(first)));
        if !alike.is_empty() {
            let alike = shown(alike).into_iter();
            page.folded(&title, |page| page.table(&header, alike));
        }
        if self.reports > 1 {
            page.paragraph(RATE_MEANS);
        }
    }
}

impl Column {
    /// A line for each known property.
    fn header(&self) -> String {
        let name = self.name();
        let lines = [&name].into_iter().chain(&self.properties);
        lines.map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn verdict(&self, profile: Profile) -> Conformance {
        let verdict = self.profiles.get(&profile).copied();
        verdict.unwrap_or(Conformance::NotJudged)
    }

    /// Its name, or the number of agreeing reports and the first of their names.
    pub(super) fn name(&self) -> String {
        match self.nodes.count {
            1 => self.nodes.shown(),
            count => format!("{count} alike: {}", self.nodes.shown()),
        }
    }
}

impl Row {
    /// Whether all reports that have the case agree on its verdict, and it is no failure; of a
    /// single report, whether it is a pass.
    fn is_alike(&self) -> bool {
        let verdicts: Vec<Verdict> = self.cells.iter().flatten().map(|it| it.verdict).collect();
        let agree = verdicts.windows(2).all(|pair| pair[0] == pair[1]);
        agree
            && verdicts.iter().all(|verdict| match verdict {
                Verdict::Pass => true,
                Verdict::Known | Verdict::Skip | Verdict::Inconclusive => self.cells.len() > 1,
                Verdict::Fail | Verdict::UnexpectedPass | Verdict::Error => false,
            })
    }

    fn shown(&self) -> Vec<String> {
        let cells = self.cells.iter();
        let cells = cells.map(|cell| cell.map_or_else(String::new, Cell::shown));
        cells.collect()
    }

    /// The rate over all reports, and its upper bound; empty if none decides it.
    pub(super) fn rate(&self) -> String {
        match self.nodes.decided {
            0 => String::new(),
            _ => format!(
                "{}, at most {}%",
                self.nodes,
                (self.at_most * 1e4).ceil() / 100.0
            ),
        }
    }
}

impl Cell {
    fn shown(self) -> String {
        if self.rate.is_of_several() {
            format!("{}, {} failed", self.verdict, self.rate)
        } else {
            self.verdict.to_string()
        }
    }
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::outcome::RunReport;
    use crate::report::fixture::{fixture, outcome};
    use crate::report::{Document, Fleet, NamedReport};

    fn grouped(reports: &[NamedReport]) -> Matrix {
        let mut fleet = Fleet::default();
        for report in reports {
            fleet.add(report);
        }
        fleet.matrix()
    }

    fn named(name: &str, verdicts: &[(&str, Verdict)]) -> NamedReport {
        let outcomes = verdicts.iter();
        let outcomes = outcomes.map(|(id, verdict)| outcome(id, "order::one", *verdict));
        let report = RunReport {
            outcomes: outcomes.collect(),
            faults: Vec::new(),
            ..fixture()
        };
        NamedReport {
            name: name.to_owned(),
            report: Document::new(&report),
        }
    }

    #[test]
    fn what_differs_or_fails_is_shown_by_report() {
        let mut other = named(
            "node|2",
            &[
                ("ORD-01", Verdict::Fail),
                ("ORD-01", Verdict::Pass),
                ("ORD-03", Verdict::Pass),
            ],
        );
        other.report.runtime.name = "cri-o".to_owned();
        other.report.runtime.oci = None;
        other.report.profiles.pop();
        let reports = [
            named(
                "node-1",
                &[("ORD-01", Verdict::Pass), ("ORD-02", Verdict::Skip)],
            ),
            other,
        ];
        expect![[r#"
            ## Container events of 2 reports

            | Property | Reports |
            |---|---|
            | runtime | 1: containerd 2.1.9 (node-1)<br>1: cri-o 2.1.9 (node\|2) |

            |  | failed | node-1<br>containerd 2.1.9<br>runc<br>systemd<br>6.12.48+deb13-amd64 | node\|2<br>cri-o 2.1.9<br>systemd<br>6.12.48+deb13-amd64 |
            |---|---|---|---|
            | profile cache |  | partial | non-conformant |
            | profile hint |  | not judged | not judged |
            | profile observer |  | not judged | not judged |
            | ORD-01 order::one | 1 of 2, at most 97.47% | pass | fail, 1 of 2 failed |

            <details><summary>2 alike in each report that has them</summary>

            |  | failed | node-1<br>containerd 2.1.9<br>runc<br>systemd<br>6.12.48+deb13-amd64 | node\|2<br>cri-o 2.1.9<br>systemd<br>6.12.48+deb13-amd64 |
            |---|---|---|---|
            | ORD-02 order::one |  | skip |  |
            | ORD-03 order::one | 0 of 1, at most 95% |  | pass |

            </details>

            Failed: reports that fail it, of those that decide it, and the upper bound of that rate at 95% confidence (Clopper and Pearson).

            | Latency | Half at most | Longest |
            |---|---|---|
            | event-after-call | 1.245 s | 1.234 s node-1 (ORD-01)<br>1.234 s node\|2 (ORD-01) |
        "#]]
        .assert_eq(&grouped(&reports).markdown());
    }

    #[test]
    fn only_what_differs_or_fails_is_not_folded() {
        use Verdict::{Error, Fail, Known, Pass, Skip};
        let ids = ["ORD-01", "ORD-02", "ORD-03", "ORD-04", "ORD-05", "ORD-06"];
        let all = |verdicts: &[Verdict]| {
            ids.into_iter()
                .zip(verdicts.iter().copied())
                .collect::<Vec<_>>()
        };
        let one = named("a", &all(&[Pass, Known, Fail, Pass, Error, Skip]));
        let other = named("b", &all(&[Pass, Known, Fail, Known, Error]));
        let first = |reports: &[NamedReport]| -> Vec<String> {
            let matrix = grouped(reports);
            let (first, _, _) = matrix.parts();
            first.iter().map(|row| row.id.clone()).collect()
        };
        assert_eq!(first(&[one.clone(), other]), ["ORD-03", "ORD-04", "ORD-05"]);
        assert_eq!(first(&[one]), ["ORD-02", "ORD-03", "ORD-05", "ORD-06"]);
    }

    #[test]
    fn reports_that_agree_are_one_column_and_what_differs_stands_first() {
        let node = |nth: usize| {
            let odd = nth == 500;
            let verdict = if odd { Verdict::Fail } else { Verdict::Pass };
            named(&format!("node-{nth}"), &[("ORD-01", verdict)])
        };
        let nodes: Vec<NamedReport> = (0..1_000).map(node).collect();
        let matrix = grouped(&nodes);
        let names: Vec<String> = matrix.columns.iter().map(Column::name).collect();
        assert_eq!(names, ["node-500", "999 alike: node-0, node-1, node-2, …"]);
        let page = matrix.markdown();
        assert!(page.contains("Container events of 1000 reports"), "{page}");
        assert!(
            page.contains("| ORD-01 order::one | 1 of 1000, at most 0.48% | fail | pass |"),
            "{page}"
        );
    }
}
