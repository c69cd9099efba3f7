//! The head of a run's page: the tested runtime, its node, and the verdicts.

use maud::{Markup, html};

use super::super::calendar::{rfc3339, span};
use super::super::printable::cut;
use super::super::standings::words;
use super::super::summary::counts;
use super::verdict;
use crate::history::CgroupDriver;
use crate::outcome::RunReport;

/// The maximum length of a fact, in characters.
const FACT: usize = 200;

pub(super) fn title(report: &RunReport) -> String {
    let runtime = &report.info.runtime;
    let (name, version) = (&runtime.runtime_name, &runtime.runtime_version);
    cut(&format!("Container events of {name} {version}"), FACT)
}

pub(super) fn head(report: &RunReport) -> Markup {
    html! {
        h1 { (title(report)) }
        p { (counts(report)) }
        dl .facts {
            @for (name, value) in facts(report) {
                div { dt { (name) } dd { (cut(&value, FACT)) } }
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

pub(super) fn standings(report: &RunReport) -> Markup {
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
                                (verdict::conformance(
                                    standing.verdict,
                                    &words(&standing, report.partial),
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
            p { "Cases were left out, so that no profile is more than partial." }
        }
    }
}
