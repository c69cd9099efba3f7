//! Kubelets of made-up hosts.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::*;

/// A host: a directory with processes and files.
struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Adds a process with the host's files, or with those of this directory of the host.
    fn run(&self, pid: u32, comm: &str, command: &[&str], root: Option<&str>) -> &Self {
        self.write(&format!("proc/{pid}/comm"), &format!("{comm}\n"));
        let command = command.iter().flat_map(|word| [*word, "\0"]);
        self.write(&format!("proc/{pid}/cmdline"), &command.collect::<String>());
        self.write(
            &format!("proc/{pid}/cgroup"),
            "0::/system.slice/kubelet.service\n",
        );
        let root = self.folder.path().join(root.unwrap_or_default());
        symlink(root, self.folder.path().join(format!("proc/{pid}/root"))).unwrap();
        self
    }

    fn listen(&self, path: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        path
    }

    fn kubelets(&self) -> Vec<KubeletProcess> {
        kubelets(&FileTree::at(self.folder.path()))
    }

    #[track_caller]
    fn kubelet(&self) -> KubeletProcess {
        let found = self.kubelets();
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    }
}

#[test]
fn a_kubelet_is_found_by_its_name_or_its_program() {
    let host = Host::new();
    host.run(1, "systemd", &["/sbin/init"], None)
        .run(9, "k3s-server", &["/usr/local/bin/k3s server"], None)
        .run(812, "kubelet", &["/usr/bin/kubelet", "--v=2"], None)
        .run(913, "main", &["/opt/kubelet"], None);
    let found = host.kubelets();
    let found: Vec<_> = found.iter().map(|it| (it.pid, it.name.as_str())).collect();
    assert_eq!(
        found,
        [(9, "k3s-server"), (812, "kubelet"), (913, "kubelet")]
    );
}

#[test]
fn what_only_resembles_one_is_none() {
    let host = Host::new();
    host.run(7, "kubelet-csr-app", &["/kubelet-csr-approver"], None)
        .run(8, "kubectl", &["kubectl", "get", "kubelet"], None)
        // A zombie.
        .run(9, "kubelet", &[], None);
    assert_eq!(host.kubelets(), []);
}

#[test]
fn flags_have_their_value_behind_an_equals_sign_or_as_the_next_argument() {
    let host = Host::new();
    let command = [
        "kubelet",
        "--config=/a",
        "--config-dir",
        "/d",
        "--config",
        "/b",
        "--configz=/c",
    ];
    let kubelet = host.run(1, "kubelet", &command, None).kubelet();
    let values = |name| kubelet.flag(name).collect::<Vec<_>>();
    assert_eq!(values("config"), ["/a", "/b"]);
    assert_eq!(values("config-dir"), ["/d"]);
    assert!(values("v").is_empty());
}

#[test]
fn flags_win_over_drop_ins_and_those_over_the_file() {
    let host = Host::new();
    let command = [
        "kubelet",
        "--config=/etc/kubelet.yaml",
        "--config-dir=/etc/kubelet.d",
        "--feature-gates=B=true,C=false",
        "--feature-gates=C=1",
    ];
    let kubelet = host
        .run(1, "kubelet", &command, None)
        .write(
            "etc/kubelet.yaml",
            "featureGates: {A: false, B: false, EventedPLEG: true}\ncgroupDriver: systemd\n",
        )
        .write("etc/kubelet.d/20-b.conf", "featureGates: {A: true}\n")
        .write("etc/kubelet.d/10-a.conf", "featureGates: {A: false}\n")
        .write("etc/kubelet.d/30-c.conf", "")
        .write("etc/kubelet.d/40-d.yaml", "featureGates: {A: false}\n")
        .kubelet();
    let settings = kubelet.settings();
    assert_eq!(settings.unusable, []);
    let gate = |name: &str| {
        let gate = &settings.feature_gates[name];
        (gate.value, gate.origin.as_str())
    };
    assert_eq!(gate("A"), (true, "/etc/kubelet.d/20-b.conf"));
    assert_eq!(gate("B"), (true, "--feature-gates"));
    assert_eq!(gate("C"), (true, "--feature-gates"));
    assert_eq!(gate("EventedPLEG"), (true, "/etc/kubelet.yaml"));
    assert_eq!(settings.cgroup_driver.unwrap().value, "systemd");
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let host = Host::new();
    let command = [
        "kubelet",
        "--config=/etc/a.yaml",
        "--config-dir=/no/directory",
    ];
    let kubelet = host
        .run(1, "kubelet", &command, None)
        .write("etc/a.yaml", "featureGates: {EventedPLEG: \"true\"}\n")
        .kubelet();
    let settings = kubelet.settings();
    let paths: Vec<_> = settings.unusable.iter().map(|it| it.path.clone()).collect();
    assert_eq!(paths, ["/etc/a.yaml", "/no/directory"].map(PathBuf::from));
}

#[test]
fn a_kubelet_uses_the_socket_that_is_configured() {
    let host = Host::new();
    let crio = host.listen("run/crio/crio.sock");
    let containerd = host.listen("run/containerd/containerd.sock");
    symlink("/run", host.folder.path().join("var-run")).unwrap();
    let uses = |command: &[&str]| {
        let _ = fs::remove_dir_all(host.folder.path().join("proc"));
        let kubelet = host.run(1, "kubelet", command, None).kubelet();
        (kubelet.uses(&containerd), kubelet.uses(&crio))
    };
    let endpoint = |endpoint: &str| format!("--container-runtime-endpoint={endpoint}");
    assert_eq!(uses(&["kubelet"]), (true, false));
    let configured = endpoint("unix:///run/crio/crio.sock");
    assert_eq!(uses(&["kubelet", &configured]), (false, true));
    let configured = endpoint("/var-run/crio/crio.sock");
    assert_eq!(uses(&["kubelet", &configured]), (false, true));
    host.write(
        "c.yaml",
        "containerRuntimeEndpoint: unix:///run/crio/crio.sock\n",
    );
    assert_eq!(uses(&["kubelet", "--config=/c.yaml"]), (false, true));
    // There is none, so it is neither.
    let configured = endpoint("unix:///run/gone.sock");
    assert_eq!(uses(&["kubelet", &configured]), (false, false));
}

#[test]
fn a_kubelet_whose_endpoint_is_unknown_counts_as_using_it() {
    let host = Host::new();
    let socket = host.listen("run/crio/crio.sock");
    let unreadable = ["kubelet", "--config=/missing.yaml"];
    let kubelet = host.run(1, "kubelet", &unreadable, None).kubelet();
    assert!(kubelet.uses(&socket));
    let host = Host::new();
    let k3s = host.run(1, "k3s-server", &["k3s server"], None).kubelet();
    assert!(k3s.uses(&socket));
}

#[test]
fn a_kubelet_in_a_container_has_the_containers_files() {
    let host = Host::new();
    let socket = host.listen("run/containerd/containerd.sock");
    let nested = host.listen("node/run/containerd/containerd.sock");
    let kubelet = host.run(1, "kubelet", &["kubelet"], Some("node")).kubelet();
    assert!(!kubelet.uses(&socket));
    assert!(kubelet.uses(&nested));
    // With the host's socket in the container, it is the host's kubelet after all.
    fs::remove_file(&nested).unwrap();
    fs::hard_link(&socket, &nested).unwrap();
    assert!(kubelet.uses(&socket));
}

#[test]
fn what_a_container_calls_a_kubelet_is_not_relied_on() {
    let host = Host::new();
    let socket = host.listen("run/containerd/containerd.sock");
    fs::create_dir(host.folder.path().join("pod")).unwrap();
    let tree = FileTree::at(host.folder.path());
    // Its endpoint is unknown, and it has no socket.
    let unreadable = ["kubelet", "--config=/missing.yaml"];
    host.run(1, "kubelet", &unreadable, Some("pod"))
        .write("proc/1/exe", "");
    let kubelet = host.kubelet();
    assert!(!kubelet.is_native && !kubelet.uses(&socket));
    assert_eq!(kubelet.unit, None);
    let fault = kubelet.version(&tree).unwrap_err().to_string();
    assert!(fault.contains("not run"), "{fault}");
    // The same process of the host.
    let host = Host::new();
    let kubelet = host.run(1, "kubelet", &unreadable, None).kubelet();
    assert!(kubelet.is_native && kubelet.uses(&socket));
    assert_eq!(kubelet.unit.as_deref(), Some("kubelet.service"));
}

#[test]
fn the_hosts_own_kubelet_comes_first() {
    let host = Host::new();
    fs::create_dir(host.folder.path().join("pod")).unwrap();
    host.run(7, "kubelet", &["kubelet"], Some("pod"))
        .run(812, "kubelet", &["kubelet"], None);
    let pids: Vec<_> = host.kubelets().iter().map(|it| it.pid).collect();
    assert_eq!(pids, [812, 7]);
}

#[test]
fn a_directory_of_drop_ins_is_bounded() {
    let host = Host::new();
    for number in 0..1_001 {
        host.write(&format!("d/{number}.conf"), "");
    }
    let command = ["kubelet", "--config-dir=/d"];
    let settings = host.run(1, "kubelet", &command, None).kubelet().settings();
    assert_eq!((settings.files.len(), settings.unusable.len()), (1_000, 1));
}
