//! The table of pods on a terminal: the state of each for a kubelet that relists and for one that
//! takes its state from events. For a kubelet that takes events as hints, only the former.
//!
//! Pods for which the two differ come first, the longest difference on top: an event may still be
//! in transit, and relists are a second apart. The others are sorted by their last change.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Row, Table};

use crate::history::HostInstant;
use crate::outcome::Profile;
use crate::pleg::{PodStatus, State};
use crate::report::cut;

/// The maximum length of a text, in characters.
const TEXT: usize = 60;

/// A terminal with fewer columns than this is narrow.
const NARROW: usize = 100;

/// The columns, each with the minimum terminal width that shows it.
const COLUMNS: [(&str, usize); 6] = [
    ("POD", 0),
    ("CONTAINERS", NARROW),
    ("BY RELISTS", 0),
    ("BY EVENTS", 0),
    ("LAST EVENT", 80),
    ("AGREE", 60),
];

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PodRow {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) containers: usize,
    /// The state for a kubelet that relists; empty if the pod is unknown.
    pub(super) by_relists: String,
    /// The state for a kubelet that follows events.
    pub(super) by_events: String,
    pub(super) last_event: Option<LastEvent>,
    /// Since when the two differ.
    pub(super) differs_since: Option<HostInstant>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct LastEvent {
    pub(super) at: HostInstant,
    /// Such as `STOPPED app`.
    pub(super) text: String,
}

/// A pod's state for a kubelet, in a few words: `app running, init exited 0`.
pub(super) fn belief(status: &PodStatus) -> String {
    let mut containers: Vec<_> = status.containers.iter().collect();
    containers.sort_by_key(|container| (&container.name, container.id.as_str()));
    let described = containers.into_iter().map(|container| {
        let name = cut(&container.name, TEXT);
        match container.state {
            State::Created => format!("{name} created"),
            State::Running => format!("{name} running"),
            State::Exited => format!("{name} exited {}", container.exit_code),
            State::Unknown => format!("{name} unknown"),
        }
    });
    let ready = if status.has_ready_sandbox() {
        "ready"
    } else {
        "not ready"
    };
    let mut words: Vec<String> = described.collect();
    words.insert(0, ready.to_owned());
    words.join(", ")
}

/// The table as lines that fit into a terminal.
pub(super) fn lines(
    pods: &BTreeMap<String, PodRow>,
    followed: Profile,
    now: HostInstant,
    (columns, rows): (usize, usize),
) -> Vec<String> {
    if pods.is_empty() || rows < 3 {
        return Vec::new();
    }
    let mut sorted: Vec<&PodRow> = pods.values().collect();
    sorted.sort_by_key(|pod| {
        let since = pod.differs_since.map(|since| since.monotonic_ns);
        let changed = pod.last_event.as_ref().map(|last| last.at.monotonic_ns);
        (since.is_none(), since, Reverse(changed))
    });
    // The header, and the line about those that are not shown.
    let shown = if sorted.len() < rows {
        sorted.len()
    } else {
        rows - 2
    };
    let is_of_cache = |name: &str| ["BY EVENTS", "AGREE"].contains(&name);
    let has_cache = followed != Profile::Hint;
    let is_shown =
        |(name, from): &(&str, usize)| columns >= *from && (has_cache || !is_of_cache(name));
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_truncation_indicator("…")
        .set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    let header = COLUMNS
        .iter()
        .filter(|it| is_shown(it))
        .map(|(name, _)| *name);
    let mut header = Row::from(header.collect::<Vec<_>>());
    header.max_height(1);
    table.set_header(header);
    for pod in &sorted[..shown] {
        let cells = COLUMNS.iter().zip(pod.cells(now, columns));
        let cells = cells.filter(|(column, _)| is_shown(column));
        let mut row = Row::from(cells.map(|(_, cell)| cell).collect::<Vec<_>>());
        row.max_height(1);
        table.add_row(row);
    }
    let mut lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    let more = sorted.len() - shown;
    if more > 0 {
        let agree = if !has_cache || sorted[shown].differs_since.is_some() {
            ""
        } else {
            ", about which both agree"
        };
        let line = format!(" and {more} more pods{agree}");
        lines.push(cut(&line, columns));
    }
    lines
}

impl PodRow {
    /// Adds a kubelet's status of the pod.
    pub(super) fn add(&mut self, status: &PodStatus) {
        self.namespace = status.namespace.to_string();
        self.name = status.name.to_string();
        self.containers = self.containers.max(status.containers.len());
    }

    /// Their order is that of the columns. A narrow terminal shows no namespace, and of two beliefs
    /// that differ only where they do.
    fn cells(&self, now: HostInstant, columns: usize) -> [String; COLUMNS.len()] {
        let is_narrow = columns < NARROW;
        let without = |belief: &str, other: &str| {
            let words = belief.split(", ");
            let own = words.filter(|word| !other.split(", ").any(|it| it == *word));
            let own = own.collect::<Vec<_>>().join(", ");
            if !is_narrow || self.differs_since.is_none() || own.is_empty() {
                return belief.to_owned();
            }
            own
        };
        let known = |belief: &str| match belief {
            "" => "(unknown)".to_owned(),
            belief => belief.to_owned(),
        };
        let last = self.last_event.as_ref().map(|last| {
            let ago = now.since(last.at).as_secs();
            format!("{} {ago} s ago", cut(&last.text, TEXT))
        });
        let agree = self.differs_since.map(|since| {
            let since = now.since(since).as_secs();
            format!("NO, for {since} s")
        });
        let name = if is_narrow {
            let name = cut(&self.name, TEXT);
            let (length, room) = (name.chars().count(), columns / 4);
            let end = name.chars().skip(length.saturating_sub(room) + 1);
            if length > room {
                format!("…{}", end.collect::<String>())
            } else {
                name
            }
        } else {
            format!("{}/{}", cut(&self.namespace, TEXT), cut(&self.name, TEXT))
        };
        [
            name,
            self.containers.to_string(),
            known(&without(&self.by_relists, &self.by_events)),
            known(&without(&self.by_events, &self.by_relists)),
            last.unwrap_or_else(|| "-".to_owned()),
            agree.unwrap_or_else(|| "yes".to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn at(seconds: u64) -> HostInstant {
        HostInstant {
            monotonic_ns: seconds * 1_000_000_000,
            ..HostInstant::default()
        }
    }

    fn pod(name: &str, changed: u64, differs_since: Option<u64>) -> PodRow {
        PodRow {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            containers: 1,
            by_relists: "ready, app exited 137".to_owned(),
            by_events: "ready, app running".to_owned(),
            last_event: Some(LastEvent {
                at: at(changed),
                text: "STARTED app".to_owned(),
            }),
            differs_since: differs_since.map(at),
        }
    }

    fn pods(rows: impl IntoIterator<Item = PodRow>) -> BTreeMap<String, PodRow> {
        let rows = rows.into_iter();
        rows.map(|pod| (format!("uid-{}", pod.name), pod)).collect()
    }

    fn first_words(lines: &[String]) -> Vec<&str> {
        let words = lines.iter().map(|line| line.split_whitespace().next());
        words.map(Option::unwrap_or_default).collect()
    }

    #[test]
    fn what_differs_for_long_comes_first_and_then_what_changed_last() {
        let pods = pods([
            pod("old", 1, None),
            pod("new", 50, None),
            pod("differs", 2, Some(30)),
            pod("differs-longer", 1, Some(20)),
        ]);
        let lines = lines(&pods, Profile::Cache, at(60), (120, 10));
        assert_eq!(
            first_words(&lines),
            [
                "POD",
                "shop/differs-longer",
                "shop/differs",
                "shop/new",
                "shop/old"
            ]
        );
        assert!(
            lines[1].ends_with("STARTED app 59 s ago  NO, for 40 s"),
            "{lines:#?}"
        );
        assert!(lines[4].ends_with("yes"), "{lines:#?}");
    }

    #[test]
    fn a_kubelet_that_takes_hints_has_no_beliefs_by_events() {
        let pods = pods([pod("one", 1, None)]);
        let lines = lines(&pods, Profile::Hint, at(60), (120, 10));
        let columns: Vec<_> = lines[0].split("  ").filter(|it| !it.is_empty()).collect();
        let columns: Vec<_> = columns.iter().map(|it| it.trim()).collect();
        assert_eq!(columns, ["POD", "CONTAINERS", "BY RELISTS", "LAST EVENT"]);
        assert!(lines[1].ends_with("STARTED app 59 s ago"), "{lines:#?}");
    }

    #[test]
    fn a_narrow_terminal_shows_what_differs() {
        let long = |nth: u32| PodRow {
            name: format!("a-name-of-which-only-the-end-differs-{nth}"),
            by_relists: "ready, app exited 137, init exited 0".to_owned(),
            by_events: "ready, app running, init exited 0".to_owned(),
            ..pod("", 1, Some(3))
        };
        let lines = lines(&pods([long(1), long(2)]), Profile::Cache, at(9), (60, 10));
        assert!(lines[1].contains("end-differs-1"), "{lines:#?}");
        assert!(lines[2].contains("end-differs-2"), "{lines:#?}");
        assert!(lines[1].contains("app exited 137"), "{lines:#?}");
        assert!(lines[1].contains("app running"), "{lines:#?}");
    }

    #[test]
    fn it_fits_into_any_terminal() {
        let awkward = PodRow {
            name: "\u{1b}[31m 宽宽宽🦀".repeat(20),
            by_events: String::new(),
            ..pod("", 1, Some(3))
        };
        let many = (0..100).map(|nth| pod(&format!("pod-{nth}"), nth, None));
        let pods = pods(many.chain([awkward]));
        for columns in [1, 20, 40, 60, 80, 100, 200, 500] {
            for rows in [0, 1, 2, 3, 10, 100, 101, 102, 1_000] {
                let lines = lines(&pods, Profile::Cache, at(200), (columns, rows));
                assert!(lines.len() <= rows, "{rows}: {lines:#?}");
                if columns >= 40 {
                    let widest = lines.iter().map(|line| line.width()).max();
                    assert!(widest <= Some(columns), "{columns}: {lines:#?}");
                }
            }
        }
        let lines = lines(&pods, Profile::Cache, at(200), (80, 12));
        assert_eq!(
            lines.last().unwrap(),
            " and 91 more pods, about which both agree"
        );
    }
}
