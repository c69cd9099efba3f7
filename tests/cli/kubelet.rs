//! A run beside a process that is called a kubelet.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::fake_cri::{FakeCri, Flaw};
use crate::suite::{Ended, Suite, not_tested, suite};

/// A run without events ends much earlier.
const BOUND: Duration = Duration::from_secs(60);

/// A user other than that of the tests, unless they are run as this one.
pub(crate) const STRANGER: u32 = 65_534;

/// A shell with the name of a kubelet that is configured for a runtime, until dropped.
pub(crate) struct StandInKubelet {
    process: Child,
    _folder: TempDir,
}

impl StandInKubelet {
    pub(crate) fn start(fake: &FakeCri, user: u32) -> Self {
        Self::try_start(fake, user).unwrap()
    }

    /// Fails if it cannot be run as this user.
    fn try_start(fake: &FakeCri, user: u32) -> std::io::Result<Self> {
        // Other users can run it there, wherever the tests have their temporary files.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let open = Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let program = folder.path().join("kubelet");
        // By another program: a child of another test would hold it open while it is run, ETXTBSY.
        let copied = Command::new("install")
            .arg("/bin/sh")
            .arg(&program)
            .status();
        assert!(copied.unwrap().success());
        let socket = fake.socket();
        let endpoint = format!("--container-runtime-endpoint=unix://{}", socket.display());
        let mut command = Command::new(program);
        let command = command.args(["-c", "read line", &endpoint]).uid(user);
        Ok(Self {
            process: command.stdin(Stdio::piped()).spawn()?,
            _folder: folder,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for StandInKubelet {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn run(fake: &FakeCri, more: &[&str]) -> Suite {
    let (socket, folder) = (fake.socket(), fake.folder().to_str().unwrap());
    let args = [
        "ORD-01",
        "-r",
        socket.to_str().unwrap(),
        "--log-dir",
        folder,
    ];
    suite(args.iter().chain(more))
}

#[test]
fn only_a_process_of_root_or_of_the_same_user_is_taken_for_a_kubelet() {
    let fake = FakeCri::start(Flaw::EventsOff);
    let kubelet = StandInKubelet::start(&fake, own_user());
    let message = format!("process {} is `kubelet`", kubelet.pid());
    let ways = [
        &*message,
        "a kubelet runs on this node",
        "--pause-kubelet --tier smoke",
        "cri-event-conformance watch --for 10m",
        "--allow kubelet",
    ];
    run(&fake, &[]).run().fails(3, &ways);
    assert_eq!(fake.sandboxes(), 0);
    let pause = ["--pause-kubelet", "--tier", "core"];
    let message = format!("process {}, the kubelet, is not a service", kubelet.pid());
    run(&fake, &pause).run().fails(3, &[&message]);
    drop(kubelet);
    let stranger = (own_user() != STRANGER).then(|| StandInKubelet::try_start(&fake, STRANGER));
    if !matches!(stranger, Some(Ok(_))) {
        not_tested(&"a process of another user");
    }
    run(&fake, &[]).run().fails(3, &["switched off"]);
}

#[test]
fn a_kubelet_beside_a_run_is_a_fault_in_every_report() {
    let fake = FakeCri::start(Flaw::EventsOff);
    let kubelet = StandInKubelet::start(&fake, own_user());
    let reports = fake.folder().join("reports");
    let report_dir = ["--report-dir", reports.to_str().unwrap()];
    let fault = format!(
        "disturbed: a kubelet ran beside this run: process {}",
        kubelet.pid()
    );
    let allowing = [&["--allow", "kubelet"][..], &report_dir].concat();
    let said = |ended: Ended| {
        assert_eq!(ended.code, 3, "{ended:#?}");
        assert!(ended.out.contains(&fault), "{ended:#?}");
    };
    said(run(&fake, &allowing).run());
    for report in [
        "junit_cri_events.xml",
        "report.json",
        "summary.md",
        "report.html",
    ] {
        let text = std::fs::read_to_string(reports.join(report)).unwrap();
        assert!(
            text.contains("disturbed: a kubelet ran beside this run"),
            "{report}: {text}"
        );
    }
    let history = reports.join("history.binpb");
    said(suite(["check", history.to_str().unwrap()]).run());
    drop(kubelet);
    let alone = run(&fake, &["--allow", "kubelet"]).run();
    assert!(!alone.out.contains("disturbed"), "{alone:#?}");
}

#[test]
fn a_kubelet_that_is_started_during_a_run_is_a_fault_of_it() {
    let fake = FakeCri::start(Flaw::Silent);
    let running = run(&fake, &["--timeout-scale", "1"]).start();
    fake.wait_for("create_container");
    let kubelet = StandInKubelet::start(&fake, own_user());
    let sign = format!(
        "disturbed: a kubelet was started during the run: process {}",
        kubelet.pid()
    );
    running.end_within(BOUND).fails(3, &[&sign]);
    // One that is not seen is known by the pods that it makes.
    drop(kubelet);
    let fake = FakeCri::start(Flaw::Silent);
    let running = run(&fake, &["--timeout-scale", "1"]).start();
    fake.wait_for("create_container");
    fake.add_pod_of_a_kubelet();
    let sign = "started during the run: 1 new pods have a kubelet's labels";
    running.end_within(BOUND).fails(3, &[sign]);
}

#[test]
fn pods_of_a_kubelet_that_is_stopped_are_told_from_a_kubelet() {
    let fake = FakeCri::start(Flaw::EventsOff);
    fake.add_pod_of_a_kubelet();
    let message = [
        "1 ready pods have a kubelet's labels, but no kubelet was seen",
        "If the kubelet is stopped, its pods harm no run: --allow kubelet",
    ];
    for more in [&[][..], &["--pause-kubelet", "--tier", "smoke"]] {
        let refused = run(&fake, more).run();
        assert!(
            !refused.err.contains("a kubelet runs on this node"),
            "{refused:#?}"
        );
        refused.fails(3, &message);
    }
    assert_eq!(fake.sandboxes(), 1);
    let allowed = run(&fake, &["--allow", "kubelet"]).run();
    assert!(!allowed.out.contains("disturbed"), "{allowed:#?}");
    allowed.fails(3, &["switched off"]);
}
