//! Many reports, one after another: those that agree are one group. Of a report, a fleet retains
//! what its group shows, so that its size depends on the number of groups, and hardly on that of
//! reports.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::json::{CaseOutcome, Document, NamedReport, WorstLatency};
use super::matrix::{Cell, Column, Matrix, Row};
use super::rate::{Rate, Tested, in_order};
use crate::outcome::{Conformance, Guarantee, Keeping, Limit, Profile, Spread};

/// The maximum number of names that are retained of the reports with a value.
const NAMES: usize = 100;

/// The number of reports that are retained with the longest latencies.
const SLOWEST: usize = 3;

/// The properties that only `doctor` reports; no group has them.
pub(super) const DOCTORS: [&str; 2] = ["kubelet", "doctor"];

/// The maximum size of all retained evidence, as JSON in bytes. Failures of later groups have none.
const EVIDENCE: usize = 16 << 20;

/// Reports with the same value: their number, and the first of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Nodes {
    pub count: usize,
    pub names: Vec<String>,
}

/// A property, and the reports with each of its values, the rarest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Property {
    pub name: String,
    pub values: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Value {
    pub value: String,
    #[serde(flatten)]
    pub nodes: Nodes,
}

/// The latencies of all reports for one limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Slowest {
    /// The longest latency of each report.
    #[serde(skip)]
    pub spread: Spread,
    /// The longest of all, in descending order.
    pub worst: Vec<Slow>,
}

/// The longest latency of a report, and its case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slow {
    pub ms: f64,
    pub node: String,
    pub case: String,
}

/// The values in which the reports of a group agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    properties: Vec<String>,
    profiles: BTreeMap<Profile, Conformance>,
    /// The results by row.
    cells: BTreeMap<usize, Cell>,
}

#[derive(Clone, Debug)]
struct Group {
    /// Its place by its first report.
    place: usize,
    nodes: Nodes,
    evidence: Vec<CaseOutcome>,
}

/// The reports up to now.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    reports: usize,
    groups: BTreeMap<Alike, Group>,
    /// The rows by id.
    places: BTreeMap<String, usize>,
    /// The id and the name of each row.
    rows: Vec<(String, String)>,
    properties: Vec<(String, BTreeMap<String, Nodes>)>,
    latencies: BTreeMap<Limit, Slowest>,
    /// The size of the retained evidence.
    evidence: usize,
}

impl Nodes {
    fn add(&mut self, name: &str) {
        self.count += 1;
        if self.names.len() < NAMES {
            self.names.push(name.to_owned());
        }
    }

    /// The first of their names.
    pub(super) fn shown(&self) -> String {
        const SHOWN: usize = 3;
        let more = if self.count > SHOWN { ", …" } else { "" };
        self.names[..self.names.len().min(SHOWN)].join(", ") + more
    }
}

impl Fleet {
    /// Adds the report of a run or a watch.
    pub fn add(&mut self, NamedReport { name, report }: &NamedReport) {
        let properties = properties(report);
        self.add_properties(name, &properties);
        for latency in &report.latencies {
            self.latencies.entry(latency.limit).or_default();
        }
        for (limit, slowest) in &mut self.latencies {
            let of_limit = report.latencies.iter().filter(|it| it.limit == *limit);
            let worst = of_limit.max_by(|one, other| one.worst_ms.total_cmp(&other.worst_ms));
            if let Some(worst) = worst {
                slowest.add(name, worst);
            }
        }
        let tested = in_order(&report.outcomes);
        let rows = tested.iter().map(|it| self.row(it.first));
        let rows: Vec<usize> = rows.collect();
        let cells = rows.iter().zip(&tested).map(|(row, it)| {
            let (verdict, rate) = (it.worst.verdict, it.rate);
            (*row, Cell { verdict, rate })
        });
        let profiles = report.profiles.iter().map(|it| (it.profile, it.verdict));
        let alike = Alike {
            properties: shown(&properties).map(|(_, value)| value.clone()).collect(),
            profiles: profiles.collect(),
            cells: cells.collect(),
        };
        let place = self.groups.len();
        let (room, size) = (EVIDENCE, &mut self.evidence);
        let group = self.groups.entry(alike).or_insert_with(|| Group {
            place,
            nodes: Nodes::default(),
            evidence: evidence(&tested, room, size),
        });
        group.nodes.add(name);
    }

    /// Adds the properties of a node, each with its value.
    pub fn add_properties(&mut self, name: &str, properties: &[(String, String)]) {
        self.reports += 1;
        for (property, value) in properties {
            let found = self.properties.iter().position(|(it, _)| it == property);
            let at = found.unwrap_or_else(|| {
                self.properties.push((property.clone(), BTreeMap::new()));
                self.properties.len() - 1
            });
            let nodes = self.properties[at].1.entry(value.clone()).or_default();
            nodes.add(name);
        }
    }

    fn row(&mut self, CaseOutcome { id, name, .. }: &CaseOutcome) -> usize {
        *self.places.entry(id.clone()).or_insert_with(|| {
            self.rows.push((id.clone(), name.clone()));
            self.rows.len() - 1
        })
    }

    /// The groups side by side. Those of few reports are differences, and come first; of too many
    /// to show, the largest one is the last shown.
    pub fn matrix(self) -> Matrix {
        let mut groups: Vec<(Alike, Group)> = self.groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| (group.nodes.count, group.place));
        if groups.len() > Matrix::SHOWN {
            groups[Matrix::SHOWN - 1..].rotate_right(1);
        }
        let rows = self
            .rows
            .into_iter()
            .enumerate()
            .map(|(place, (id, name))| {
                let cells = groups.iter().map(|(it, _)| it.cells.get(&place).copied());
                let cells: Vec<Option<Cell>> = cells.collect();
                let mut nodes = Rate::default();
                for (cell, (_, group)) in cells.iter().zip(&groups) {
                    let verdicts = cell.iter().map(|cell| cell.verdict);
                    verdicts.for_each(|verdict| nodes.add(verdict, group.nodes.count));
                }
                let at_most = nodes.highest();
                Row {
                    id,
                    name,
                    nodes,
                    at_most,
                    cells,
                }
            });
        let rows = rows.collect();
        let properties = self.properties.into_iter().map(|(name, values)| {
            let values = values.into_iter();
            let mut values: Vec<Value> = values
                .map(|(value, nodes)| Value { value, nodes })
                .collect();
            values.sort_by_key(|it| it.nodes.count);
            Property { name, values }
        });
        Matrix {
            reports: self.reports,
            properties: properties.collect(),
            latencies: self.latencies,
            rows,
            columns: groups.into_iter().map(Column::from).collect(),
        }
    }
}

impl From<(Alike, Group)> for Column {
    fn from((alike, group): (Alike, Group)) -> Self {
        Self {
            nodes: group.nodes,
            properties: alike.properties,
            profiles: alike.profiles,
            evidence: group.evidence,
        }
    }
}

impl Slowest {
    fn add(&mut self, name: &str, latency: &WorstLatency) {
        let ms = latency.worst_ms.clamp(0.0, 1e12);
        self.spread.add(Duration::from_secs_f64(ms / 1e3));
        let longer = self.worst.iter().take_while(|it| it.ms >= ms);
        let place = longer.count();
        if place < SLOWEST {
            let (node, case) = (name.to_owned(), latency.case.clone());
            self.worst.insert(place, Slow { ms, node, case });
            self.worst.truncate(SLOWEST);
        }
    }
}

/// The properties of which the values are lines of a group.
fn shown(properties: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
    const SHOWN: [&str; 4] = ["runtime", "OCI runtime", "cgroup driver", "kernel"];
    let shown = |(name, _): &&(String, String)| SHOWN.contains(&&**name);
    properties.iter().filter(shown)
}

/// The known properties of a report, those of its node first.
fn properties(report: &Document) -> Vec<(String, String)> {
    let runtime = &report.runtime;
    let host = report.environment.as_ref();
    let kind = match &report.watch {
        Some(_) => "watch",
        None => report.tier.as_deref().unwrap_or("full"),
    };
    let outages = report.watch.as_ref().map(|it| it.outages.to_string());
    let known = [
        ("runtime", Some(report.subject())),
        (
            "OCI runtime",
            runtime.oci.as_ref().map(|it| it.handler.clone()),
        ),
        ("cgroup driver", runtime.cgroup_driver.clone()),
        ("kernel", host.map(|it| it.kernel.clone())),
        ("suite", Some(report.suite.clone())),
        ("tier", Some(kind.to_owned())),
        ("ends of the stream", outages),
    ];
    let known = known.into_iter().filter_map(|(name, value)| {
        let value = value.filter(|it| !it.is_empty())?;
        Some((name.to_owned(), value))
    });
    let mut worst = BTreeMap::<Guarantee, Keeping>::new();
    for (guarantee, keeping) in report.profiles.iter().flat_map(|it| &it.guarantees) {
        let worst = worst.entry(*guarantee).or_insert(*keeping);
        *worst = (*worst).max(*keeping);
    }
    let guarantees = worst.into_iter().map(|(guarantee, keeping)| {
        let name = format!("guarantee {}", guarantee.name());
        (name, keeping.to_string())
    });
    known.chain(guarantees).collect()
}

/// The outcomes with evidence, while there is room for them.
fn evidence(tested: &[Tested<'_, CaseOutcome>], room: usize, size: &mut usize) -> Vec<CaseOutcome> {
    let with = tested
        .iter()
        .map(|it| it.worst)
        .filter(|it| it.has_evidence());
    let fitting = with.filter(|outcome| {
        let more = serde_json::to_string(outcome).map_or(room, |text| text.len());
        let fits = *size + more <= room;
        *size += if fits { more } else { 0 };
        fits
    });
    fitting.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{RunReport, Verdict};
    use crate::report::fixture::{fixture, outcome};
    use crate::report::html;

    /// Reports of a fleet: of each 1,000 nodes one fails a case, and two have an older kernel.
    fn fleet(count: usize) -> Matrix {
        let report = |verdict| {
            Document::new(&RunReport {
                outcomes: vec![
                    outcome("ORD-01", "order::one", verdict),
                    outcome("ORD-02", "order::two", Verdict::Pass),
                ],
                ..fixture()
            })
        };
        let [good, bad] = [Verdict::Pass, Verdict::Fail].map(report);
        let mut fleet = Fleet::default();
        for nth in 0..count {
            let mut report = if nth % 1_000 == 7 { &bad } else { &good }.clone();
            let host = report.environment.as_mut().expect("the fixture has a host");
            if nth % 1_000 < 2 {
                host.kernel = "6.1.0".to_owned();
            }
            report.latencies[0].worst_ms = f64::from(u32::try_from(nth).expect("it is small"));
            let name = format!("node-{nth}");
            fleet.add(&NamedReport { name, report });
        }
        fleet.matrix()
    }

    #[test]
    fn five_thousand_nodes_are_three_groups() {
        let matrix = fleet(5_000);
        let counts: Vec<usize> = matrix.columns.iter().map(|it| it.nodes.count).collect();
        assert_eq!(counts, [5, 10, 4_985]);
        let page = matrix.markdown();
        for shown in [
            "4985 alike, 15 differ: node-7, node-1007, node-2007, node-3007, node-4007, …\n",
            "| kernel | 10: 6.1.0 (node-0, node-1, node-1000, …)<br>4990: 6.12.48+deb13-amd64 (",
            // The bound of Poisson is 10.513 of 5,000.
            "| ORD-01 order::one | 5 of 5000, at most 0.22% | fail | pass | pass |",
            "| ORD-02 order::two | 0 of 5000, at most 0.06% | pass | pass | pass |",
            "| event-after-call | 2.523 s | 4.999 s node-4999 (ORD-01)<br>4.998 s node-4998 ",
        ] {
            assert!(page.contains(shown), "{shown}\n{page}");
        }
    }

    #[test]
    fn what_is_printed_does_not_grow_with_the_number_of_reports_alike() {
        let pages = |count| {
            let matrix = fleet(count);
            let json = serde_json::to_string_pretty(&matrix).expect("it has no keys but texts");
            [matrix.markdown(), html::matrix(&matrix), json].map(|page| page.len())
        };
        let few = pages(1_000);
        let many = pages(4_000);
        for (few, many) in few.into_iter().zip(many) {
            // Numbers have more digits, and small groups more names.
            assert!(many < few + 600, "{few} {many}");
        }
    }

    #[test]
    fn of_many_groups_the_rarest_and_the_largest_are_shown() {
        let mut fleet = Fleet::default();
        let mut add = |nth: usize, kernel: usize| {
            let mut report = Document::new(&fixture());
            let host = report.environment.as_mut().expect("the fixture has a host");
            host.kernel = format!("6.{kernel}");
            let name = format!("node-{nth}");
            fleet.add(&NamedReport { name, report });
        };
        (0..30).for_each(|nth| add(nth, nth));
        (30..50).for_each(|nth| add(nth, 99));
        let matrix = fleet.matrix();
        assert_eq!(matrix.shown().len(), Matrix::SHOWN);
        assert_eq!(matrix.shown()[Matrix::SHOWN - 1].nodes.count, 20);
        let headline = "20 alike, 30 differ: node-0, node-1, node-2, node-3, node-4, …; \
                        11 more groups are only in the JSON";
        assert_eq!(matrix.headline(), headline);
        let page = matrix.markdown();
        assert!(page.contains("<br>21 more values |"), "{page}");
        assert!(html::matrix(&matrix).len() < 1_000_000);
    }
}
