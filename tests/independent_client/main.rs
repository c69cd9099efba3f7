//! The model runtime and the CRI server, used by an independent client: Python's grpcio, with stubs
//! made from the CRI's own proto.
//!
//! `ci/test` names a Python that has `grpcio-tools` by `CRI_TEST_PYTHON`; without it the test is
//! shown as ignored.

#![expect(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Completion, Trial};
use serde_json::Value;

#[path = "../support/suite.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest")]
mod suite;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/independent_client/client.py"
);

fn main() -> std::process::ExitCode {
    let name = "a_client_of_another_make_sees_what_the_cri_says";
    let trial = Trial::ignorable_test(name, || {
        let Some(python) = std::env::var_os("CRI_TEST_PYTHON") else {
            let reason = "not run: set CRI_TEST_PYTHON to a Python that has grpcio-tools; ci/test \
                          does";
            return Ok(Completion::ignored_with(reason));
        };
        sees_what_the_cri_says(Path::new(&python));
        Ok(Completion::Completed)
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

fn sees_what_the_cri_says(python: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("cri.sock");
    let endpoint = format!("unix://{}", socket.display());
    let model = suite::suite(["model", "--listen", &endpoint]).start();
    model.wait_for("the model runtime listens on");
    let client = Command::new(python)
        .args([Path::new(SCRIPT), &proto_folder(), &socket])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&client.stderr);
    assert!(client.status.success(), "{err}");
    model.send(rustix::process::Signal::TERM);
    assert_eq!(model.end().code, 0);
}

/// Cargo's copy of the proto that the suite's own messages are generated from.
fn proto_folder() -> PathBuf {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let mut manifests = packages
        .filter(|package| package["name"] == "k8s-cri")
        .filter_map(|package| package["manifest_path"].as_str());
    let manifest = Path::new(manifests.next().expect("the suite uses k8s-cri"));
    manifest.parent().unwrap().join("proto")
}
