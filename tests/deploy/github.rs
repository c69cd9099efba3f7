//! The script of the GitHub action, run as the action runs it, on the model.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::options::{documents, files, folder};

/// A job of a workflow that uses the action.
struct Job(TempDir);

impl Job {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Without root, the action uses it.
        let sudo = folder.path().join("sudo");
        fs::write(&sudo, "#!/bin/sh\nexec \"$@\"\n").unwrap();
        fs::set_permissions(sudo, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// Runs the action with `args`; returns its exit code and its output.
    fn run(&self, args: &str) -> (Option<i32>, String) {
        self.run_by(args, "")
    }

    /// The same with the path of a policy.
    fn run_by(&self, args: &str, policy: &str) -> (Option<i32>, String) {
        let path = std::env::var("PATH").unwrap();
        let done = Command::new(folder().join("github/run.sh"))
            .env("PATH", format!("{}:{path}", self.path().display()))
            .env("GITHUB_OUTPUT", self.path().join("output"))
            .env("GITHUB_STEP_SUMMARY", self.path().join("summary"))
            .env("INPUT_BINARY", env!("CARGO_BIN_EXE_cri-event-conformance"))
            .env("INPUT_RUNTIME_ENDPOINT", "model")
            .env("INPUT_TIER", "core")
            .env("INPUT_EXPECTATIONS", "builtin")
            .env("INPUT_POLICY", policy)
            .env("INPUT_REPORT_DIR", "reports")
            .env("INPUT_ARGS", args)
            .current_dir(self.path())
            .output()
            .unwrap();
        let printed = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        (done.status.code(), printed)
    }
}

pub(crate) fn the_action_runs_the_suite_and_passes_its_verdict_on() {
    let job = Job::new();
    let (code, printed) = job.run("ORD-01\n");
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(job.read("output"), "exit-code=0\n");
    assert!(
        job.read("summary").contains("| cache |"),
        "{}",
        job.read("summary")
    );
    let job = Job::new();
    let (code, printed) = job.run("STP-01\n--defect\ndrop-stopped\n");
    assert_eq!(code, Some(1), "{printed}");
    assert_eq!(job.read("output"), "exit-code=1\n");
    assert!(printed.contains("::error"), "{printed}");
    assert!(job.path().join("reports/junit_cri_events.xml").exists());
}

pub(crate) fn the_policy_of_the_action_decides() {
    let run = |policy: &str| {
        let job = Job::new();
        fs::write(job.path().join("policy.yaml"), policy).unwrap();
        let (code, printed) = job.run_by("ORD-01\n", "policy.yaml");
        assert_eq!(job.read("output"), format!("exit-code={}\n", code.unwrap()));
        assert!(
            job.read("summary").contains(&job.read("reports/gate.md")),
            "{printed}"
        );
        (code, printed)
    };
    let (code, printed) = run("{profiles: {cache: partial}}");
    assert_eq!(code, Some(0), "{printed}");
    let (code, printed) = run("{profiles: {cache: conformant}}");
    assert_eq!(code, Some(1), "{printed}");
}

/// The inputs come from a pull request.
pub(crate) fn an_input_of_the_action_is_never_code() {
    let job = Job::new();
    let (code, printed) = job.run("ORD-01; touch injected\n$(touch injected)\n`touch injected`\n");
    assert_eq!(code, Some(4), "{printed}");
    assert!(!job.path().join("injected").exists());
    let action = &documents(&files()["github/action.yml"])[0];
    for step in action["runs"]["steps"].as_sequence().unwrap() {
        let script = step["run"].as_str().unwrap();
        assert!(!script.contains("${{"), "{script}");
    }
}
