//! Traces of recorded runs, read with Perfetto's own description of its format: the Python package
//! `perfetto`, which is independent of the suite.
//!
//! `ci/test` names a Python that has `perfetto` by `CRI_TEST_PYTHON`; without it the test is shown
//! as ignored.

#![expect(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Completion, Trial};

#[path = "../support/suite.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest")]
mod suite;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto/read.py");

/// Recordings, and the number of violations in each.
const RECORDINGS: [(&str, usize); 4] = [
    ("containerd-2.1/ORD-01", 0),
    ("containerd-2.1/STP-06-deleted-before-stopped", 3),
    ("runs/containerd-2.1-clean", 0),
    ("runs/containerd-1.7-failing", 5),
];

fn main() -> std::process::ExitCode {
    let name = "a_parser_of_another_make_reads_the_traces_of_recorded_runs";
    let trial = Trial::ignorable_test(name, || {
        let Some(python) = std::env::var_os("CRI_TEST_PYTHON") else {
            let reason = "not run: set CRI_TEST_PYTHON to a Python that has perfetto; ci/test does";
            return Ok(Completion::ignored_with(reason));
        };
        reads_the_traces(Path::new(&python));
        Ok(Completion::Completed)
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

fn reads_the_traces(python: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let histories = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/histories");
    let mut read = Command::new(python);
    read.arg(SCRIPT);
    for (name, violations) in RECORDINGS {
        let history = histories.join(format!("{name}.binpb"));
        let trace = folder.path().join(name.replace('/', "-"));
        let show = [
            PathBuf::from("show"),
            history,
            "--perfetto".into(),
            trace.clone(),
        ];
        suite::suite(show).run().succeeds();
        read.arg(violations.to_string()).arg(trace);
    }
    let read = read.output().unwrap();
    let err = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{err}");
}
