//! Leftovers of runs, and the names and ids that they bear.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

use super::*;
use crate::host::BootTicks;

const ID: &str = "0d4e4a3df1f4c1b3ad9a7d1c54dbb8b0c0f1a9d3d4ad2a51f4e1c9be2f1d6a11";
const OTHER: &str = "1d4e4a3df1f4c1b3ad9a7d1c54dbb8b0c0f1a9d3d4ad2a51f4e1c9be2f1d6a11";

/// When the process of the run began, and the call that made the objects.
const SINCE: BootTicks = BootTicks(345);

fn own(id: &str) -> OwnId {
    let (id, since) = (id.to_owned(), SINCE);
    OwnId { id, since }
}

fn is_one(id: &str) -> bool {
    id == ID
}

/// The line of a process that began then, in `stat`.
fn stat(state: char, began: BootTicks) -> String {
    format!("1 (a) b) {state} 1{} {began} 0\n", " 0".repeat(17))
}

#[test]
fn a_cgroup_with_the_id_in_its_path_is_of_the_container() {
    for path in [
        format!("0::/k8s.io/{ID}"),
        format!("9:cpu:/\n8:memory:/pods/crio-{ID}.scope"),
        format!("0::/system.slice/cri-containerd-{ID}.scope"),
        format!("0::/pods/crio-conmon-{ID}.scope"),
        format!("0::/k8s.io/{ID}/below"),
    ] {
        let owner = by_cgroup(&path, is_one);
        assert_eq!(owner.unwrap().id, ID, "{path}");
    }
    for path in [
        format!("0::/k8s.io/{OTHER}"),
        format!("0::/k8s.io/{ID}0"),
        format!("0::/k8s.io/{}", &ID[..63]),
        format!("0::/k8s.io/x.{ID}"),
        format!("0::/user.slice/{ID}.service"),
        format!("0::/user.slice/app-1-{ID}.scope"),
        format!("0::/user.slice/evil-{ID}.scope"),
        format!("8:name={ID}:/"),
    ] {
        assert_eq!(by_cgroup(&path, is_one), None, "{path}");
    }
}

#[test]
fn a_shim_or_a_monitor_is_of_the_container_that_it_was_started_for() {
    let of = |arguments: &[&str]| by_command(&arguments.join("\0"), is_one).is_some();
    let shim = "/usr/bin/containerd-shim-runc-v2";
    assert!(of(&[
        shim,
        "-namespace",
        "k8s.io",
        "-id",
        ID,
        "-address",
        "/run/c.sock"
    ]));
    assert!(of(&["conmon", "-b", "/run/bundle", "-c", ID]));
    assert!(!of(&[shim, "-namespace", "k8s.io", "-id", OTHER]));
    assert!(!of(&[shim, "-namespace", "moby", "-id", ID]));
    assert!(!of(&[shim, "-namespace", "k8s.io", "-address", ID]));
    assert!(!of(&["/usr/bin/tail", "-namespace", "k8s.io", "-id", ID]));
    assert!(of(&[
        "/usr/bin/crun",
        "--root",
        "/r",
        "create",
        "--bundle",
        "/b",
        ID
    ]));
    assert!(!of(&[
        "/usr/bin/crun",
        "--root",
        "/r",
        "create",
        "--bundle",
        ID,
        OTHER
    ]));
    assert!(!of(&["/usr/bin/crun", "--root", "/r", "state", ID]));
    assert!(!of(&["crictl", "-c", ID]));
    let userdata = |id| format!("/run/containers/{id}/userdata");
    assert!(of(&["/usr/bin/conmonrs", "--runtime-dir", &userdata(ID)]));
    assert!(!of(&[
        "/usr/bin/conmonrs",
        "--runtime-dir",
        &userdata(OTHER)
    ]));
    assert!(of(&["crius-shim", &format!("--bundle={}", userdata(ID))]));
    assert!(!of(&["less", &userdata(ID)]));
    assert!(!of(&[""]));
}

const LOG: &str = "/var/log/cri-event-conformance-6f1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d.12-345";

/// The object that a process with this command line monitors, whose sandbox has this log directory.
fn monitors(command: &[&str], log_directory: &str) -> Option<String> {
    let process = tempfile::tempdir().unwrap();
    fs::write(process.path().join("cmdline"), command.join("\0") + "\0").unwrap();
    fs::create_dir(process.path().join("cwd")).unwrap();
    let annotations = serde_json::json!({
        "io.kubernetes.cri.sandbox-log-directory": log_directory
    });
    let specification = serde_json::json!({ "annotations": annotations }).to_string();
    fs::write(process.path().join("cwd/config.json"), specification).unwrap();
    let runs =
        [
            Owner::from_name("cri-event-conformance-6f1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d.12-345")
                .unwrap(),
        ];
    let mut found = [BootTicks(344), SINCE].map(|began| {
        fs::write(process.path().join("stat"), stat('S', began)).unwrap();
        monitored_by(process.path(), &runs)
    });
    assert_eq!(found[0], None, "older than the run");
    found[1].take().map(|own| own.id)
}

#[test]
fn a_monitor_is_of_the_run_that_its_log_is_of() {
    let of = |program: &str, log: &str, id: &str| {
        monitors(&[program, "-b", "/run/bundle", "-c", id, "-l", log], LOG)
    };
    let log = format!("{LOG}/pod_c_0.log");
    assert_eq!(of("/usr/bin/conmon", &log, ID).as_deref(), Some(ID));
    let other =
        "/var/log/cri-event-conformance-7a1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d.12-345/pod_c_0.log";
    for (program, log, id) in [
        ("conmon", other, ID),
        ("conmon", "/var/log/pods/pod_c_0.log", ID),
        ("conmon", &log, "short"),
        ("tail", &log, ID),
    ] {
        assert_eq!(of(program, log, id), None, "{program} {log} {id}");
    }
}

#[test]
fn a_shim_is_of_the_run_that_its_sandboxs_log_directory_is_of() {
    let shim = "/usr/bin/containerd-shim-runc-v2";
    let of = |namespace: &str, log: &str| {
        monitors(
            &[shim, "-namespace", namespace, "-id", ID, "-address", "s"],
            log,
        )
    };
    assert_eq!(of("k8s.io", LOG).as_deref(), Some(ID));
    assert_eq!(of("moby", LOG), None);
    assert_eq!(of("k8s.io", "/var/log/pods/kube-system_a_b"), None);
    assert_eq!(of("k8s.io", &LOG.replace("6f1c", "7a1c")), None);
}

#[test]
fn a_process_of_ours_is_equal_to_us_and_one_that_is_gone_is_not() {
    assert!(is_equal(&Path::new(PROC).join("self")));
    assert!(!is_equal(&Path::new(PROC).join("0")));
}

/// A process that waits, and is shown in a `/proc` of the test's own, in this cgroup.
fn sleeper(proc: &Path, id: &str, began: BootTicks) -> Child {
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    let own = proc.join(child.id().to_string());
    fs::create_dir(&own).unwrap();
    fs::write(own.join("cgroup"), format!("0::/k8s.io/{id}\n")).unwrap();
    fs::write(own.join("comm"), "sleep\n").unwrap();
    fs::write(own.join("stat"), stat('S', began)).unwrap();
    child
}

#[test]
fn leftovers_are_killed_and_no_other_process() {
    let proc = tempfile::tempdir().unwrap();
    let mut ours = sleeper(proc.path(), ID, SINCE);
    let older = sleeper(proc.path(), ID, BootTicks(344));
    let another = sleeper(proc.path(), OTHER, SINCE);
    fs::create_dir(proc.path().join("self")).unwrap();
    let wanted = [own(ID), own("short")].into_iter().collect();
    let found = find_in(proc.path(), &wanted);
    let message: Vec<_> = found.iter().map(ToString::to_string).collect();
    let pid = ours.id();
    let expected = format!("process {pid} (sleep) of {ID}, as its cgroup /k8s.io/{ID} shows");
    assert_eq!(message, [expected]);
    for found in found {
        found.kill().unwrap();
    }
    assert_eq!(ours.wait().unwrap().signal(), Some(9));
    for mut spared in [older, another] {
        assert_eq!(spared.try_wait().unwrap(), None);
        spared.kill().unwrap();
        spared.wait().unwrap();
    }
}

#[test]
fn nothing_is_found_by_no_id() {
    let proc = tempfile::tempdir().unwrap();
    let mut child = sleeper(proc.path(), ID, SINCE);
    assert!(find_in(proc.path(), &OwnIds::default()).is_empty());
    let short = [own("k8s.io"), own("io")].into_iter().collect();
    assert!(find_in(proc.path(), &short).is_empty());
    let shown = proc.path().join(format!("{}/stat", child.id()));
    fs::write(shown, stat('Z', SINCE)).unwrap();
    let wanted = [own(ID)].into_iter().collect();
    assert!(find_in(proc.path(), &wanted).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}
