//! Many reports side by side: a row for each case, a column for each report.

use super::json::NamedReport;
use super::markdown::Markdown;
use super::rate::{Rate, Tested, by_id, in_order};
use super::summary::counted;
use crate::outcome::{Conformance, Profile, Verdict};

/// The verdicts of many reports on each case and invariant.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The reports, in the given order.
    pub columns: Vec<Column>,
    /// The verdict per profile, in each report.
    pub profiles: Vec<(Profile, Vec<Option<Conformance>>)>,
    /// The cases and invariants, in the order of the first report that has them.
    pub rows: Vec<Row>,
}

/// The subject of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The names of the reports that agree, as given by the user, such as those of nodes.
    pub names: Vec<String>,
    /// The runtime's name and version, and the injected defects.
    pub runtime: String,
    /// The runtime handler, if known.
    pub handler: Option<String>,
    /// The cgroup driver, if known.
    pub cgroup_driver: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    pub name: String,
    /// The result of each report; `None` for a report without it.
    pub cells: Vec<Option<Cell>>,
}

/// The result of a case in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The worst of its verdicts.
    pub verdict: Verdict,
    pub rate: Rate,
}

impl Matrix {
    /// Reports side by side; those that agree in all displayed values are one column, whose first
    /// report is the one at the same index.
    pub fn grouped(reports: &[NamedReport]) -> (Self, Vec<&NamedReport>) {
        let mut all = Self::new(reports);
        let mut kept: Vec<usize> = Vec::new();
        let mut columns: Vec<Column> = Vec::new();
        for (place, column) in all.columns.iter().enumerate() {
            let alike = |first: usize| {
                let [one, other] = [first, place].map(|at| &all.columns[at]);
                let rows = || all.rows.iter().map(|row| &row.cells);
                let mut profiles = all.profiles.iter();
                one.known().eq(other.known())
                    && rows().all(|cells| cells[first] == cells[place])
                    && profiles.all(|(_, verdicts)| verdicts[first] == verdicts[place])
            };
            if let Some(at) = kept.iter().position(|first| alike(*first)) {
                columns[at].names.extend(column.names.iter().cloned());
            } else {
                kept.push(place);
                columns.push(column.clone());
            }
        }
        // Values of few reports are differences, and come first.
        let mut order: Vec<usize> = (0..kept.len()).collect();
        order.sort_by_key(|at| columns[*at].names.len());
        let places: Vec<usize> = order.iter().map(|at| kept[*at]).collect();
        all.columns = order.iter().map(|at| columns[*at].clone()).collect();
        for (_, verdicts) in &mut all.profiles {
            *verdicts = places.iter().map(|place| verdicts[*place]).collect();
        }
        for row in &mut all.rows {
            row.cells = places.iter().map(|place| row.cells[*place]).collect();
        }
        let first = places.iter().map(|place| &reports[*place]).collect();
        (all, first)
    }

    fn new(reports: &[NamedReport]) -> Self {
        let tested: Vec<_> = reports
            .iter()
            .map(|it| by_id(&it.report.outcomes))
            .collect();
        let all = in_order(reports.iter().flat_map(|it| &it.report.outcomes));
        let rows = all.into_iter().map(|Tested { first, .. }| {
            let cells = tested.iter().map(|tested| {
                let found = tested.get(first.id.as_str())?;
                let (verdict, rate) = (found.worst.verdict, found.rate);
                Some(Cell { verdict, rate })
            });
            Row {
                id: first.id.clone(),
                name: first.name.clone(),
                cells: cells.collect(),
            }
        });
        let profiles = Profile::ALL.map(|profile| {
            let verdict = |it: &NamedReport| Some(it.report.standing(profile)?.verdict);
            (profile, reports.iter().map(verdict).collect())
        });
        Self {
            columns: reports.iter().map(Column::new).collect(),
            profiles: profiles.to_vec(),
            rows: rows.collect(),
        }
    }

    pub(super) fn reports(&self) -> usize {
        self.columns.iter().map(|column| column.names.len()).sum()
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

    /// A page of Markdown: the rows in which reports differ or fail, then the rest, collapsed.
    pub fn markdown(&self) -> String {
        let mut page = Markdown::default();
        page.heading(
            2,
            &format!(
                "Container events of {}",
                counted(self.reports(), "run", "runs")
            ),
        );
        let columns = self.columns.iter().map(Column::header);
        let header: Vec<String> = [String::new()].into_iter().chain(columns).collect();
        let profiles = self.profiles.iter().map(|(profile, verdicts)| {
            let verdicts = verdicts.iter().map(|verdict| {
                let verdict = verdict.unwrap_or(Conformance::NotJudged);
                verdict.to_string()
            });
            let name = format!("profile {profile}");
            [name].into_iter().chain(verdicts).collect()
        });
        let (first, title, alike) = self.parts();
        let shown = |rows: Vec<&Row>| rows.into_iter().map(Row::shown).collect::<Vec<_>>();
        page.table(&header, profiles.chain(shown(first)));
        if !alike.is_empty() {
            let alike = shown(alike).into_iter();
            page.folded(&title, |page| page.table(&header, alike));
        }
        page.into_text()
    }
}

impl Column {
    fn new(NamedReport { name, report }: &NamedReport) -> Self {
        let runtime = &report.runtime;
        Self {
            names: vec![name.clone()],
            runtime: report.subject(),
            handler: runtime.oci.as_ref().map(|oci| oci.handler.clone()),
            cgroup_driver: runtime.cgroup_driver.clone(),
        }
    }

    /// A line for each known property.
    fn header(&self) -> String {
        let name = self.name();
        let lines = [&*name].into_iter().chain(self.known());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Its name, or the number of agreeing reports and the first of their names.
    pub(super) fn name(&self) -> String {
        const SHOWN: usize = 3;
        match &self.names[..] {
            [name] => name.clone(),
            names => {
                let shown = names[..names.len().min(SHOWN)].join(", ");
                let more = if names.len() > SHOWN { ", …" } else { "" };
                format!("{} alike: {shown}{more}", names.len())
            }
        }
    }

    /// The known properties besides its name.
    pub(super) fn known(&self) -> impl Iterator<Item = &str> {
        let known = [self.handler.as_deref(), self.cgroup_driver.as_deref()];
        let known = known.into_iter().flatten().filter(|it| !it.is_empty());
        [&*self.runtime].into_iter().chain(known)
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
        let name = format!("{} {}", self.id, self.name);
        [name].into_iter().chain(cells).collect()
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
    use crate::report::Document;
    use crate::report::fixture::{fixture, outcome};

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
            ## Container events of 2 runs

            |  | node-1<br>containerd 2.1.9<br>runc<br>systemd | node\|2<br>cri-o 2.1.9<br>systemd |
            |---|---|---|
            | profile cache | partial | non-conformant |
            | profile hint | not judged | not judged |
            | profile observer | not judged | not judged |
            | ORD-01 order::one | pass | fail, 1 of 2 failed |

            <details><summary>2 alike in each report that has them</summary>

            |  | node-1<br>containerd 2.1.9<br>runc<br>systemd | node\|2<br>cri-o 2.1.9<br>systemd |
            |---|---|---|
            | ORD-02 order::one | skip |  |
            | ORD-03 order::one |  | pass |

            </details>
        "#]]
        .assert_eq(&Matrix::grouped(&reports).0.markdown());
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
            let (matrix, _) = Matrix::grouped(reports);
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
        let (matrix, first) = Matrix::grouped(&nodes);
        let names: Vec<String> = matrix.columns.iter().map(Column::name).collect();
        assert_eq!(names, ["node-500", "999 alike: node-0, node-1, node-2, …"]);
        let first: Vec<&str> = first.iter().map(|it| &*it.name).collect();
        assert_eq!(first, ["node-500", "node-0"]);
        let page = matrix.markdown();
        assert!(page.contains("Container events of 1000 runs"), "{page}");
        assert!(
            page.contains("| ORD-01 order::one | fail | pass |"),
            "{page}"
        );
    }
}
