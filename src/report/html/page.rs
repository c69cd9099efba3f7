//! A run on one page: the tested runtime and its node, the verdicts, and a tile for each case in
//! each profile that it concerns.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};

use super::cases::{self, Tested, class, conformance, sign};
use super::failure::{Extent, failure};
use super::{document, histogram};
use crate::case::Requirement;
use crate::history::CgroupDriver;
use crate::outcome::{Guarantee, Kind, Level, Profile, RunReport, Verdict};
use crate::report::causes::by_cause;
use crate::report::printable::{cut, rfc3339, span};
use crate::report::rate::{badness, in_order};
use crate::report::standings::{LEFT_OUT, quotable, words};
use crate::report::summary::{counts, known_of_the_runtime, title};

/// The maximum size of all failures in bytes; the others appear only in the table.
const FAILURES: usize = 700_000;

const CASES: usize = 600;

/// The maximum length of a remark in characters, and number of remarks of a kind.
const REMARK: usize = 600;

const REMARKS: usize = 50;

/// The maximum length of a fact, in characters.
const FACT: usize = 200;

/// The maximum length of an id or an area, in characters.
const NAME: usize = 40;

/// A run: its verdicts, its cases, its failures with their evidence, its latencies, and the
/// requirements it covers.
pub fn page(report: &RunReport, requirements: &[Requirement]) -> String {
    let mut tested = in_order(&report.outcomes);
    let left_out = tested.len().saturating_sub(CASES);
    tested.truncate(CASES);
    let profiles = concerned(&tested);
    let body = html! {
        a .jump href="#cases" { "To the cases" }
        header { (head(report)) (contents(report)) }
        main {
            (causes(report, &tested))
            section #profiles {
                h2 { "Verdict per profile" }
                (standings(report))
                (remarks(report))
            }
            section #grid {
                h2 { "Cases by profile" }
                (grid(&tested, &profiles))
            }
            section #failures {
                h2 { "Failures" }
                (failures(report, &tested, requirements))
            }
            section #cases {
                h2 { "Cases and invariants" }
                @if left_out > 0 { p { (left_out) " more, which the JSON report has." } }
                (cases::table(&tested, &profiles))
            }
            @if !report.latencies.is_empty() {
                section #latencies {
                    h2 { "Latencies" }
                    (histogram::latencies(report))
                }
            }
            section #requirements {
                h2 { "Requirements" }
                (cases::covered(&tested, requirements))
            }
            section #run {
                h2 { "Run" }
                dl .facts {
                    @for (name, value) in facts(report) {
                        div { dt { (name) } dd { (cut(&value, FACT)) } }
                    }
                }
            }
        }
        footer { p { "Made by cri-event-conformance " (cut(&report.info.suite, REMARK)) "." } }
    };
    document(&cut(&title(report), FACT), &body)
}

/// The profiles with any requirement here.
fn concerned(tested: &[Tested<'_>]) -> Vec<Profile> {
    let concerns = |profile: &Profile| {
        let mut levels = tested.iter().map(|it| it.worst.levels);
        levels.any(|levels| levels.of(*profile).is_some())
    };
    Profile::ALL.into_iter().filter(concerns).collect()
}

fn contents(report: &RunReport) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                li { a href="#profiles" { "Profiles" } }
                li { a href="#grid" { "Grid" } }
                li { a href="#failures" { "Failures" } }
                li { a href="#cases" { "Cases" } }
                @if !report.latencies.is_empty() { li { a href="#latencies" { "Latencies" } } }
                li { a href="#requirements" { "Requirements" } }
                li { a href="#run" { "Run" } }
            }
        }
    }
}

fn remarks(report: &RunReport) -> Markup {
    html! {
        @if let Some(reason) = report.undecided() { p { "Exit code 3: " (reason) "." } }
        @for (title, remarks) in [("Faults", &report.faults), ("Remarks", &report.notes)] {
            @if !remarks.is_empty() {
                h3 { (title) }
                ul {
                    @for remark in remarks.iter().take(REMARKS) { li { (cut(remark, REMARK)) } }
                }
            }
        }
    }
}

/// All outcomes other than plain passes, as far as there is room, failures first.
fn failures(report: &RunReport, tested: &[Tested<'_>], requirements: &[Requirement]) -> Markup {
    let mut shown: Vec<&Tested<'_>> = tested.iter().filter(|it| it.has_details()).collect();
    shown.sort_by_key(|it| std::cmp::Reverse(badness(it.worst.verdict)));
    let extent = Extent::of(shown.len());
    let mut room = FAILURES;
    let mut omitted = BTreeSet::new();
    let mut text = String::new();
    for tested in &shown {
        let article = failure(report, tested, requirements, extent).into_string();
        if article.len() <= room {
            room -= article.len();
            text.push_str(&article);
        } else {
            omitted.insert(tested.anchor());
        }
    }
    html! {
        @if shown.is_empty() { p { "There are none." } }
        (PreEscaped(text))
        @if !omitted.is_empty() {
            p { "No room on this page, see the JSON report: " }
            ul { @for anchor in &omitted { li id=(anchor) { (anchor) } } }
        }
    }
}

fn head(report: &RunReport) -> Markup {
    html! {
        h1 { (cut(&title(report), FACT)) }
        p { (counts(report)) }
    }
}

/// The failures by cause, each with links to its cases.
fn causes(report: &RunReport, tested: &[Tested<'_>]) -> Markup {
    let failed = report.outcomes.iter();
    let groups = by_cause(failed.filter(|outcome| outcome.verdict == Verdict::Fail));
    let link = |id: &str| {
        let of_id = tested.iter().find(|it| *it.worst.id == *id);
        of_id.map(|it| html! { a href=(it.link()) { (cut(id, NAME)) } " " })
    };
    html! {
        @if !groups.is_empty() {
            section #causes {
                h2 { "What failed" }
                ul {
                    @for group in &groups {
                        li {
                            strong { (group.kind.map_or("other", Kind::key)) }
                            @if let Some(kind) = group.kind { ": " (kind.meaning()) }
                            " Breaks " (group.broken().join(", ")) ". "
                            @for id in group.ids() { (link(id).unwrap_or_default()) }
                        }
                    }
                }
                @if let Some(known) = known_of_the_runtime(report) {
                    p { (known.replace('`', "")) "." }
                }
            }
        }
    }
}

fn facts(report: &RunReport) -> Vec<(&'static str, String)> {
    let info = &report.info;
    let runtime = &info.runtime;
    let unknown = || "not reported".to_owned();
    let oci = info.oci.as_ref().map(|oci| {
        let program = [&oci.name, &oci.version].into_iter().flatten();
        let program: Vec<&str> = program.map(String::as_str).collect();
        match (program.join(" "), &*oci.handler) {
            (program, "") => program,
            (program, handler) if program.is_empty() => format!("handler {handler}"),
            (program, handler) => format!("{program}, handler {handler}"),
        }
    });
    let host = info.host.as_ref();
    let cgroup = host.and_then(|host| host.cgroup.as_ref());
    let driver = info.cgroup_driver.map(CgroupDriver::name);
    let load = host.and_then(|host| host.load_percent);
    let load = load.map_or_else(String::new, |load| {
        format!(", load {:.2}", f64::from(load) / 100.0)
    });
    vec![
        (
            "Runtime",
            format!("{} {}", runtime.runtime_name, runtime.runtime_version),
        ),
        ("OCI runtime", oci.unwrap_or_else(unknown)),
        (
            "Kernel",
            host.map_or_else(unknown, |host| host.kernel.clone()),
        ),
        (
            "cgroup",
            cgroup.map_or_else(unknown, |version| format!("version {version}")),
        ),
        ("cgroup driver", driver.map_or_else(unknown, str::to_owned)),
        (
            "Machine",
            host.map_or_else(unknown, |host| format!("{} CPUs{load}", host.cpus)),
        ),
        ("Endpoint", info.endpoint.clone()),
        ("Began", rfc3339(report.began)),
        ("Took", span(report.duration)),
        ("Suite", info.suite.clone()),
        ("Run", info.run.to_string()),
    ]
}

fn standings(report: &RunReport) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label="Verdict per profile" {
            table {
                thead {
                    tr {
                        th rowspan="2" scope="col" { "Profile" }
                        th rowspan="2" scope="col" { "Verdict" }
                        th colspan="4" scope="colgroup" { "MUST" }
                        th colspan="2" scope="colgroup" { "SHOULD" }
                    }
                    tr {
                        @for name in ["kept", "broken", "known", "open", "kept", "broken"] {
                            th scope="col" .number { (name) }
                        }
                    }
                }
                tbody {
                    @for standing in report.standings() {
                        tr {
                            th scope="row" { (standing.profile) }
                            td {
                                (conformance(
                                    standing.verdict,
                                    &words(&standing, report),
                                ))
                            }
                            @for count in standing.counts() {
                                td .number { (count) }
                            }
                        }
                    }
                }
            }
        }
        @if report.partial {
            p { (LEFT_OUT) }
        }
        @for quoted in quotable(report) {
            p { (quoted) }
        }
        (guarantees(report))
    }
}

/// A row for each guarantee, a column for each profile.
fn guarantees(report: &RunReport) -> Markup {
    let standings = report.standings();
    html! {
        div .scroll tabindex="0" role="region" aria-label="Guarantees per profile" {
            table {
                thead {
                    tr {
                        th scope="col" { "Guarantee" }
                        @for standing in &standings {
                            th scope="col" { (standing.profile) }
                        }
                    }
                }
                tbody {
                    @for guarantee in Guarantee::ALL {
                        tr {
                            th scope="row" title=(guarantee.sentence()) { (guarantee) }
                            @for standing in &standings {
                                td { (standing.guarantees[&guarantee]) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A row for each area, a column for each profile.
fn grid(tested: &[Tested<'_>], profiles: &[Profile]) -> Markup {
    let mut areas: Vec<&str> = tested.iter().map(|it| it.worst.area()).collect();
    areas.sort_unstable();
    areas.dedup();
    html! {
        p .legend {
            "A tile is a case or an invariant: framed where it is a SHOULD, which fails nothing. "
            @for verdict in Verdict::ALL {
                span .key { span .tile .(class(verdict)) { (sign(verdict)) } " " (verdict) " " }
            }
            span .key { span .tile .advice { "✗" } " SHOULD broken" }
        }
        div .scroll tabindex="0" role="region" aria-label="Cases by profile" {
            table .grid {
                thead {
                    tr {
                        th scope="col" { "Area" }
                        @for profile in profiles { th scope="col" { (profile) } }
                    }
                }
                tbody {
                    @for area in areas {
                        tr {
                            th scope="row" { (cut(area, NAME)) }
                            @for profile in profiles {
                                td { (tiles(tested, area, *profile)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn tiles(tested: &[Tested<'_>], area: &str, profile: Profile) -> Markup {
    let within = tested.iter().filter(|it| it.worst.area() == area);
    html! {
        @for tested in within {
            @if let Some(binding) = tested.worst.levels.of(profile) {
                (tile(tested, profile, binding))
            }
        }
    }
}

fn tile(tested: &Tested<'_>, profile: Profile, binding: Level) -> Markup {
    let outcome = tested.worst;
    let (sign, class, words) = match outcome.should(profile) {
        // It fails nothing.
        Some(false) if outcome.verdict_for(profile) == Verdict::Pass || binding != Level::Must => {
            ("✗", "advice", "SHOULD broken".to_owned())
        }
        _ => {
            let verdict = outcome.verdict_for(profile);
            let words = format!("{verdict}, {}", binding.keyword());
            (sign(verdict), class(verdict), words)
        }
    };
    let name = format!("{} {words}", cut(&outcome.id, NAME));
    html! {
        a .tile .(class) .framed[binding != Level::Must] title=(name) aria-label=(name)
            href=(tested.link()) { (sign) }
    }
}
