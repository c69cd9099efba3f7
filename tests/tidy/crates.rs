//! The crates that each file may use.

use std::collections::BTreeSet;

use super::source::words;
use super::{finding, none, product};

/// Crates, and the only modules that may use them, with all their submodules.
const CRATES: &[(&str, &[&str])] = &[
    (
        "k8s_cri",
        &["src/history/messages/", "src/cri/client/", "src/cri/oci/"],
    ),
    ("tonic", &["src/cri/"]),
    ("hyper_util", &["src/cri/", "src/doctor/configz/"]),
    (
        "prost",
        &[
            "src/cri/",
            "src/history/codec",
            "src/history/messages/",
            "src/history/protobuf",
            "src/report/perfetto", // The format of a trace.
        ],
    ),
    (
        "axum",
        &[
            "src/listener/",
            "src/workload/",
            "src/metrics/",
            "src/doctor/configz/",
        ],
    ),
    ("toml", &["src/doctor/crio/"]),
    ("libtest_mimic", &["src/run/"]),
    ("prometheus_client", &["src/metrics/"]),
    (
        "rustix",
        &[
            "src/files",
            "src/host/",
            "src/cri/endpoint/",
            "src/terminal/",
        ],
    ),
    ("tempfile", &["src/cri/listener/", "src/files"]),
    ("zstd", &["src/history/codec"]),
    ("anstream", &["src/cli/", "src/terminal/"]),
    ("comfy_table", &["src/measure/table/", "src/watch/table/"]),
    ("indicatif", &["src/terminal/"]),
    (
        // An option is stated once, in the module that goes by it; the command line collects them.
        "clap",
        &[
            "src/cli/",
            "src/case/",          // Tiers, as `--tier` takes them.
            "src/outcome/level/", // Profiles, as `--profile` takes them.
            "src/plan/",
            "src/drive/options/",
            "src/explore/",
            "src/run/",
            "src/matrix/",
            "src/measure/options/",
            "src/watch/",
            "src/doctor/examine/",
        ],
    ),
    ("clap_mangen", &["src/cli/"]),
    (
        "junit_report",
        &[
            "src/report/printable/", // What it exports of `time`.
            "src/report/junit/",
        ],
    ),
    ("quick_xml", &["src/report/junit/"]),
    ("maud", &["src/report/html/"]),
    ("base64", &["src/report/html/"]),
    (
        "schemars",
        &[
            "src/case/",
            "src/checks/",
            "src/doctor/finding/",
            "src/gate/policy/",
            "src/verdicts/known/",
            "src/history/container/", // Words of case files, too.
            "src/history/entry/",
            "src/history/messages/no_event_call/",
            "src/outcome",
            "src/report/json/",
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
            let mut places = places.iter();
            let at_home = places.any(|place| format!("{}/", source.module()).starts_with(place));
            if named.contains(name) && !at_home {
                findings.push(finding(&source, format!("names `{name}`")));
            }
        }
    }
    none("Some crates are named in one place only.", &findings);
}
