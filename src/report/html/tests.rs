//! Pages, parsed by an independent parser of HTML.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scraper::{ElementRef, Html, Selector};
use sha2::{Digest, Sha256};

use super::page;
use crate::case::load;
use crate::escape::is_unprintable;
use crate::golden::assert_file;
use crate::history::{EventKind, MODEL, Seq};
use crate::outcome::{Mismatch, Outcome, RunReport, Verdict, Violation};
use crate::report::fixture::{AWKWARD, C, failed, fixture, outcome, violation};
use crate::report::{Document, Fleet, NamedReport};

/// A possible name in a hostile runtime or report.
const HOSTILE: &str = "</style></script><script>alert(1)</script><img src=x onerror=alert(2)>\
                       \"' onclick=alert(3) \u{202e}\u{7}javascript:alert(4) https://x.invalid/\"><i>";

fn of(report: &RunReport) -> String {
    let requirements = load::requirements(None).expect("the requirements are valid");
    page(report, &requirements)
}

fn named(name: &str, report: &RunReport) -> NamedReport {
    NamedReport {
        name: name.to_owned(),
        report: Document::new(report),
    }
}

fn matrix(reports: &[NamedReport]) -> String {
    let mut fleet = Fleet::default();
    for report in reports {
        fleet.add(report);
    }
    super::matrix(&fleet.matrix())
}

/// A run in which every text is hostile.
fn hostile() -> RunReport {
    let mut report = fixture();
    report.info.runtime.runtime_name = HOSTILE.to_owned();
    report.info.endpoint = HOSTILE.to_owned();
    report.info.suite = HOSTILE.to_owned();
    report.faults = vec![HOSTILE.to_owned()];
    report.notes = vec![HOSTILE.to_owned()];
    for (nth, outcome) in report.outcomes.iter_mut().enumerate() {
        outcome.id = format!("{nth}{HOSTILE}").into();
        outcome.name = HOSTILE.into();
        outcome.title = HOSTILE.into();
        outcome.why = HOSTILE.into();
        outcome.sources = [HOSTILE.to_owned()].into();
        outcome.reason = Some(HOSTILE.to_owned());
        outcome.hint = Some(HOSTILE.to_owned());
        outcome.leftovers = vec![HOSTILE.to_owned()];
        outcome.broken_in = vec![HOSTILE.into()];
        for violation in outcome.violations.iter_mut().chain(&mut outcome.advice) {
            violation.rule = HOSTILE.to_owned();
            violation.subject = format!("{HOSTILE} ({C})");
            violation.sentence = HOSTILE.to_owned();
        }
    }
    report
}

/// A run with this number of cases, all failing.
fn failing(count: usize) -> RunReport {
    let outcomes = (0..count).map(|nth| Outcome {
        id: format!("ORD-{nth}").into(),
        name: format!("order::four-events-in-order-{nth}").into(),
        ..failed()
    });
    RunReport {
        outcomes: outcomes.collect(),
        ..fixture()
    }
}

fn pages() -> Vec<String> {
    let (plain, hostile) = (fixture(), hostile());
    let passed = RunReport {
        outcomes: vec![outcome("ORD-01", "order::one", Verdict::Pass)],
        latencies: Vec::new(),
        ..fixture()
    };
    let both = [named("node-1", &plain), named(HOSTILE, &hostile)];
    vec![
        of(&plain),
        of(&hostile),
        of(&passed),
        matrix(&both),
        matrix(&[named("node-1", &passed)]),
    ]
}

fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    let selector = Selector::parse(selector).expect("it is a selector");
    page.select(&selector).collect()
}

fn text(element: ElementRef<'_>) -> String {
    element.text().collect()
}

#[test]
fn the_text_of_a_page_is_as_it_was() {
    let page = Html::parse_document(&of(&fixture()));
    let body = all(&page, "header, main, footer");
    let texts = body.iter().flat_map(ElementRef::text);
    let lines = texts.map(str::trim).filter(|text| !text.is_empty());
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    assert_file("fixtures/reports/html.txt", &text);
}

#[test]
fn pages_are_well_formed() {
    for page in pages() {
        let parsed = Html::parse_document(&page);
        assert_eq!(parsed.errors, Vec::<String>::new());
        let ids: Vec<&str> = all(&parsed, "[id]")
            .iter()
            .filter_map(|it| it.attr("id"))
            .collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{ids:?}");
        for link in all(&parsed, "a") {
            let target = link.attr("href").expect("a link has a target");
            let is_there = target
                .strip_prefix('#')
                .is_some_and(|id| unique.contains(id));
            assert!(is_there || target.starts_with("https://"), "{target}");
        }
        for region in all(&parsed, "[role=region], svg[role=img]") {
            assert!(
                region
                    .attr("aria-label")
                    .is_some_and(|label| !label.is_empty())
            );
        }
    }
}

#[test]
fn pages_load_and_run_nothing_of_others() {
    for page in pages() {
        let parsed = Html::parse_document(&page);
        for (tag, count) in [
            ("script", 1),
            ("style", 1),
            ("img", 0),
            ("i", 0),
            ("b", 0),
            ("link", 0),
        ] {
            assert_eq!(all(&parsed, tag).len(), count, "{tag}");
        }
        for element in all(&parsed, "*") {
            let name = element.value().name();
            for (attribute, value) in element.value().attrs() {
                let is_handler = attribute.starts_with("on") || attribute == "style";
                assert!(!is_handler, "{name} {attribute}={value}");
                let loads = ["src", "srcset", "data", "action", "poster", "ping"];
                assert!(!loads.contains(&attribute), "{name} {attribute}={value}");
                assert!(attribute != "href" || name == "a", "{name} href={value}");
            }
        }
        assert!(!super::STYLE.contains("url(") && !super::STYLE.contains("@import"));
        let unprintable = page.chars().find(|it| *it != '\n' && is_unprintable(*it));
        assert_eq!(unprintable, None);
    }
}

#[test]
fn the_policy_permits_this_style_and_this_script_alone() {
    for page in pages() {
        let parsed = Html::parse_document(&page);
        let meta = all(&parsed, "meta[http-equiv=Content-Security-Policy]");
        let policy = meta[0].attr("content").expect("it has a content");
        let hash = |tag: &str| {
            let text = text(all(&parsed, tag)[0]);
            STANDARD.encode(Sha256::digest(text))
        };
        let expected = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; \
             form-action 'none'",
            hash("style"),
            hash("script")
        );
        assert_eq!(policy, expected);
    }
}

#[test]
fn every_failure_has_a_diagram_of_what_convicts() {
    for count in [1, 30, 160] {
        let parsed = Html::parse_document(&of(&failing(count)));
        for nth in 0..count {
            let hits = all(
                &parsed,
                &format!("#ORD-{nth} .violation:first-of-type .hit"),
            );
            assert_eq!(hits.len(), 2, "ORD-{nth} of {count}");
            let hits: String = hits.into_iter().map(text).collect();
            assert!(
                hits.contains("STOPPED c") && hits.contains("STARTED c"),
                "{hits}"
            );
        }
    }
}

#[test]
fn a_missing_event_is_a_gap_in_its_place() {
    let subject = format!("c ({C})");
    let missing = |kind| Violation {
        subject: subject.clone(),
        mismatch: Mismatch::missing(kind, []),
        evidence: vec![Seq(9), Seq(10), Seq(11)],
        ..violation("")
    };
    for (kind, expected) in [
        (
            EventKind::Created,
            ["missing", "✗ no CREATED", "+0.150 ▶#10"],
        ),
        (
            EventKind::Deleted,
            ["+0.151 ▶#11", "missing", "✗ no DELETED"],
        ),
    ] {
        let mut report = fixture();
        report.outcomes = vec![Outcome {
            violations: vec![missing(kind)],
            ..failed()
        }];
        let parsed = Html::parse_document(&of(&report));
        let texts = all(&parsed, ".diagram .gap text, .diagram .hit .time");
        let texts: Vec<String> = texts.into_iter().map(text).collect();
        let place = texts.windows(3).any(|window| window == expected);
        assert!(place, "{texts:?}");
    }
}

const MEGABYTE: usize = 1_000_000;

#[test]
fn a_run_of_which_all_fails_stays_below_a_megabyte() {
    let plain = of(&failing(180));
    assert!(plain.len() < MEGABYTE, "{}", plain.len());
    let mut long = failing(180);
    for outcome in &mut long.outcomes {
        outcome.violations = vec![violation(&AWKWARD.repeat(100)); 6];
        outcome.reason = Some("word ".repeat(1_000));
    }
    assert!(of(&long).len() < MEGABYTE, "{}", of(&long).len());
    let many = [named("a", &long), named("b", &long), named("c", &long)];
    assert!(matrix(&many).len() < MEGABYTE, "{}", matrix(&many).len());
}

#[test]
fn a_cell_of_the_matrix_leads_to_its_evidence() {
    let passed = RunReport {
        outcomes: vec![outcome("ORD-01", "order::one", Verdict::Pass)],
        ..fixture()
    };
    let page = Html::parse_document(&matrix(&[named("a", &passed), named("b", &failing(2))]));
    let links = all(&page, "#case-ORD-1 td a");
    assert_eq!(links.len(), 1);
    let target = links[0].attr("href").expect("it leads somewhere");
    let evidence = text(all(&page, target)[0]);
    assert!(evidence.contains("ORD-1 in b"), "{evidence}");
    assert!(evidence.contains("CREATED, STOPPED, STARTED"), "{evidence}");
    assert!(evidence.contains(">    #10"), "{evidence}");
    let absent = all(&page, "#case-ORD-1 td .absent");
    assert_eq!(absent.len(), 1);
}

#[test]
fn the_command_that_runs_it_again_has_what_changes_it() {
    let command = |endpoint: &str, id: &str| {
        let mut report = fixture();
        report.info.endpoint = endpoint.to_owned();
        report.outcomes = vec![failed()];
        report.outcomes[0].id = id.into();
        let page = of(&report);
        let (_, rest) = page.split_once("--runtime-endpoint ")?;
        Some(rest.split_once("</code>")?.0.to_owned())
    };
    let socket = "unix:///run/a.sock";
    let relayed = format!("{socket}{}drop-stopped,cut", Document::INJECTS);
    for (endpoint, id, expected) in [
        (socket, "ORD-01", Some("unix:///run/a.sock ORD-01")),
        (
            socket,
            "MINE-01",
            Some("unix:///run/a.sock --cases FILE MINE-01"),
        ),
        (
            &relayed,
            "ORD-01",
            Some("unix:///run/a.sock --inject 'drop-stopped,cut' ORD-01"),
        ),
        (MODEL, "ORD-01", None),
    ] {
        let found = command(endpoint, id).map(|it| it.replace("&#39;", "'"));
        assert_eq!(found.as_deref(), expected);
    }
}
