//! A run beside a process that is called a kubelet.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::fake_cri::{FakeCri, Flaw};
use crate::suite::{Suite, suite};

/// A shell with the name of a kubelet that is configured for a runtime, until it is dropped.
pub(crate) struct StandInKubelet {
    process: Child,
    _folder: TempDir,
}

impl StandInKubelet {
    pub(crate) fn start(fake: &FakeCri, user: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
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
        Self {
            process: command.stdin(Stdio::piped()).spawn().unwrap(),
            _folder: folder,
        }
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
    run(&fake, &[]).run().fails(3, &[&message]);
    let pause = ["--pause-kubelet", "--tier", "core"];
    let message = format!("process {}, the kubelet, is not a service", kubelet.pid());
    run(&fake, &pause).run().fails(3, &[&message]);
    drop(kubelet);
    // Another user cannot be had without root.
    let _kubelet = (own_user() == 0).then(|| StandInKubelet::start(&fake, 65_534));
    run(&fake, &[]).run().fails(3, &["switched off"]);
}
