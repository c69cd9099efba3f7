//! Which files may name which crate.

use std::collections::BTreeSet;

use super::source::words;
use super::{finding, none, product};

/// Crates that only some files may name: what they offer is to be had in one place.
const CRATES: &[(&str, &[&str])] = &[
    (
        "k8s_cri",
        &[
            "src/history/messages/",
            "src/cri/client.rs",
            "src/cri/oci.rs",
        ],
    ),
    ("tonic", &["src/cri/"]),
    ("hyper_util", &["src/cri/", "src/doctor/configz.rs"]),
    (
        "prost",
        &[
            "src/cri/",
            "src/history/codec",
            "src/history/messages/",
            "src/report/perfetto", // The format of a trace.
        ],
    ),
    (
        "axum",
        &[
            "src/listener.rs",
            "src/workload/",
            "src/metrics/",
            "src/doctor/configz.rs",
        ],
    ),
    ("toml", &["src/doctor/crio.rs"]),
    ("libtest_mimic", &["src/run/"]),
    ("prometheus_client", &["src/metrics/"]),
    (
        "rustix",
        &[
            "src/files",
            "src/host/",
            "src/cri/endpoint.rs",
            "src/terminal.rs",
        ],
    ),
    ("tempfile", &["src/cri/listener.rs", "src/files"]),
    ("zstd", &["src/history/codec"]),
    ("anstream", &["src/cli/", "src/terminal.rs"]),
    (
        "comfy_table",
        &["src/measure/table.rs", "src/watch/table.rs"],
    ),
    ("indicatif", &["src/terminal.rs"]),
    (
        // An option is stated once, in the module that goes by it; the command line collects them.
        "clap",
        &[
            "src/cli/",
            "src/case/mod.rs",      // Tiers, as `--tier` takes them.
            "src/outcome/level.rs", // Profiles, as `--profile` takes them.
            "src/plan.rs",
            "src/drive/options.rs",
            "src/explore/options.rs",
            "src/drive/user_hooks.rs",
            "src/run/",
            "src/matrix/mod.rs",
            "src/measure/options.rs",
            "src/watch/",
            "src/doctor/examine.rs",
        ],
    ),
    ("clap_mangen", &["src/cli/"]),
    (
        "junit_report",
        &[
            "src/report/calendar.rs", // What it exports of `time`.
            "src/report/junit.rs",
        ],
    ),
    ("quick_xml", &["src/report/properties.rs"]),
    ("maud", &["src/report/html/"]),
    ("base64", &["src/report/html/shell.rs"]),
    (
        "schemars",
        &[
            "src/case/",
            "src/checks/",
            "src/doctor/finding.rs",
            "src/gate/policy.rs",
            "src/history/no_event_call.rs", // Words of case files, too.
            "src/history/container_spec.rs",
            "src/history/resource.rs",
            "src/outcome",
            "src/report/document.rs",
            "src/report/json.rs",
        ],
    ),
];

#[test]
fn crates_stay_where_they_belong() {
    let mut findings = Vec::new();
    for source in product() {
        let code = source.product(&source.code);
        let named: BTreeSet<&str> = words(code).map(|(_, word)| word).collect();
        for (name, places) in CRATES {
            let at_home = places.iter().any(|place| source.path.starts_with(place));
            if named.contains(name) && !at_home {
                findings.push(finding(&source, format!("names `{name}`")));
            }
        }
    }
    none("Some crates are named in one place only.", &findings);
}
