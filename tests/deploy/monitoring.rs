//! The alerts and the dashboard: they query existing metrics, and `promtool` accepts them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cri_event_conformance::testing::metrics::Metrics;
use serde_json::Value;

/// Metrics of other programs, each with its source.
const OF_OTHERS: [(&str, &str); 4] = [
    (
        "container_runtime_crio_containers_events_dropped_total",
        "CRI-O",
    ),
    ("kubernetes_build_info", "every component of Kubernetes"),
    ("kubernetes_feature_enabled", "a kubelet since 1.26"),
    ("up", "Prometheus itself"),
];

/// Words of `PromQL` that are not names.
const KEYWORDS: [&str; 4] = ["and", "or", "sum", "unless"];

/// Words of `PromQL` that labels in parentheses follow.
const GROUPINGS: [&str; 4] = ["by", "on", "without", "ignoring"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ci/monitoring")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn yaml(name: &str) -> Value {
    serde_yaml::from_str(&read(name)).unwrap()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("it is a list").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("it is a text")
}

fn rules() -> Vec<Value> {
    let rules = yaml("rules.yaml");
    let rules = list(&rules["groups"]).flat_map(|group| list(&group["rules"]));
    rules.cloned().collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&read("dashboard.json")).unwrap()
}

/// The panels with content.
fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    list(&dashboard["panels"]).filter(|panel| panel["type"] != "row")
}

/// The queries of the alerts and of the dashboard.
fn queries() -> BTreeSet<String> {
    let dashboard = dashboard();
    let targets = panels(&dashboard).flat_map(|panel| list(&panel["targets"]));
    let shown = targets.map(|target| text(&target["expr"]).to_owned());
    let alerts = rules();
    let alerts = alerts.iter().map(|rule| text(&rule["expr"]).to_owned());
    shown.chain(alerts).collect()
}

/// The query without the text between brackets of a kind.
fn without(query: &str, open: char, close: char) -> String {
    let mut inside = false;
    let kept = query.chars().filter(|&letter| {
        inside |= letter == open;
        let keep = !inside;
        inside &= letter != close;
        keep
    });
    kept.collect()
}

/// The names of metrics in a query: words that are neither functions nor labels.
fn names(query: &str) -> BTreeSet<String> {
    let query = without(&without(query, '{', '}'), '[', ']');
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    let mut names = BTreeSet::new();
    let mut rest = query.as_str();
    while let Some(start) = rest.find(is_part) {
        let word = &rest[start..];
        let end = word.find(|letter| !is_part(letter) && letter != '.');
        let (word, after) = word.split_at(end.unwrap_or(word.len()));
        rest = after;
        if GROUPINGS.contains(&word) {
            rest = after.split_once(')').map_or("", |(_, rest)| rest);
        } else if !after.trim_start().starts_with('(')
            && !word.starts_with(|first: char| first.is_ascii_digit())
            && !KEYWORDS.contains(&word)
        {
            names.insert(word.to_owned());
        }
    }
    names
}

/// The names of the series that the suite serves.
fn served() -> BTreeSet<String> {
    let text = Metrics::default().text();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let series = types.flat_map(|line| {
        let (name, kind) = line.split_once(' ').unwrap();
        match kind {
            "histogram" => ["_bucket", "_sum", "_count"]
                .map(|end| format!("{name}{end}"))
                .to_vec(),
            _ => vec![name.to_owned()],
        }
    });
    series.collect()
}

pub(crate) fn every_metric_is_one_that_somebody_serves() {
    let served = served();
    let of_others = BTreeSet::from(OF_OTHERS.map(|(name, _)| name.to_owned()));
    let queried: BTreeSet<String> = queries().iter().flat_map(|query| names(query)).collect();
    let known: BTreeSet<String> = served.union(&of_others).cloned().collect();
    let unknown: Vec<_> = queried.difference(&known).collect();
    assert!(unknown.is_empty(), "nobody serves {unknown:?}");
    let unused: Vec<_> = of_others.difference(&queried).collect();
    assert!(unused.is_empty(), "no query is of {unused:?}");
    let page = read("README.md");
    let templated = dashboard()["templating"].to_string();
    for name in &queried {
        let base = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let is_explained = page.contains(name) || base.is_some_and(|base| page.contains(base));
        assert!(
            is_explained || templated.contains(name),
            "README.md: {name}"
        );
    }
}

pub(crate) fn the_names_in_a_query_are_found() {
    let query = "histogram_quantile(0.99, sum by (instance, le) (rate(a_bucket{b=\"c\"}[10m]))) >= 1 \
                 and on (cluster) up{job=\"d\"} == 1 or e:f";
    let found = names(query);
    assert_eq!(found, ["a_bucket", "e:f", "up"].map(str::to_owned).into());
}

pub(crate) fn every_alert_has_a_test_that_fires_and_one_that_does_not() {
    let alerts = rules();
    let alerts: BTreeSet<&str> = alerts.iter().map(|rule| text(&rule["alert"])).collect();
    let tests = yaml("rules.test.yaml");
    let tests = list(&tests["tests"]).flat_map(|test| list(&test["alert_rule_test"]));
    let mut tested: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
    let tests: Vec<&Value> = tests.collect();
    for test in tests {
        let fires = list(&test["exp_alerts"]).next().is_some();
        tested.entry(text(&test["alertname"])).or_default()[usize::from(fires)] = true;
    }
    let both: BTreeSet<&str> = tested
        .iter()
        .filter(|(_, both)| **both == [true; 2])
        .map(|(alert, _)| *alert)
        .collect();
    assert_eq!(both, alerts);
}

pub(crate) fn the_page_explains_every_alert_and_no_other() {
    let alerts = rules();
    let alerts: BTreeSet<String> = alerts
        .iter()
        .map(|rule| text(&rule["alert"]).to_owned())
        .collect();
    let page = read("README.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let explained: BTreeSet<String> = rows
        .filter_map(|row| row.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
        .collect();
    assert_eq!(explained, alerts);
}

/// Two panels at one position would hide each other.
pub(crate) fn the_dashboard_is_laid_out_without_overlaps() {
    let dashboard = dashboard();
    let mut taken = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for panel in list(&dashboard["panels"]) {
        let title = text(&panel["title"]);
        assert!(
            ids.insert(panel["id"].as_u64().unwrap()),
            "the id of {title}"
        );
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        for x in at("x")..at("x") + at("w") {
            assert!(x < 24, "{title} ends beyond the 24 columns");
            for y in at("y")..at("y") + at("h") {
                let other = taken.insert((x, y), title);
                assert_eq!(other, None, "at {x}, {y}, where {title} is, too");
            }
        }
    }
    let untitled = panels(&dashboard).find(|panel| text(&panel["description"]).is_empty());
    assert_eq!(untitled, None, "each panel says what it shows");
}

fn promtool(promtool: &Path, args: &[&str]) -> Output {
    let done = Command::new(promtool)
        .args(args)
        .current_dir(folder())
        .output();
    done.unwrap()
}

pub(crate) fn alerts_fire_as_tested(tool: &Path) {
    for args in [
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "rules.test.yaml"],
    ] {
        let done = promtool(tool, &args);
        assert!(done.status.success(), "{done:#?}");
    }
}

pub(crate) fn queries_of_the_dashboard_can_be_parsed(tool: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queries.yaml");
    let check = |queries: &BTreeSet<String>| {
        let rules = queries.iter().enumerate().map(|(number, query)| {
            serde_json::json!({"record": format!("query:{number}"), "expr": query})
        });
        let rules: Vec<Value> = rules.collect();
        let group = serde_json::json!({"groups": [{"name": "queries", "rules": rules}]});
        fs::write(&file, group.to_string()).unwrap();
        promtool(tool, &["check", "rules", file.to_str().unwrap()])
    };
    let mut queries = queries();
    assert!(
        queries.len() > rules().len(),
        "the dashboard has some of its own"
    );
    let done = check(&queries);
    assert!(done.status.success(), "{done:#?}");
    queries.insert("sum(rate(up[5m])".to_owned());
    assert!(!check(&queries).status.success(), "a wrong one is noticed");
}
