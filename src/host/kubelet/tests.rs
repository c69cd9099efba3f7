//! Kubelets of made-up hosts.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::*;

/// The rest of a drop-in or a configuration file.
const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

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

    /// Writes a configuration file.
    fn configure(&self, path: &str, text: &str) -> &Self {
        self.write(path, &format!("{HEAD}{text}"))
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.folder.path().join(path);
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
        self
    }

    /// Gives a process a socket that listens at this port.
    fn listen_at(&self, pid: u32, port: u16, inode: u64) -> &Self {
        let line = format!("0: 00000000:{port:04X} 00000000:0000 0A 0:0 0:0 0 0 0 {inode} 1\n");
        self.write(
            &format!("proc/{pid}/net/tcp6"),
            &format!("  sl  local\n{line}"),
        )
        .hold(pid, inode)
    }

    /// Gives a process a socket.
    fn hold(&self, pid: u32, inode: u64) -> &Self {
        self.write(&format!("proc/{pid}/fd/0"), "");
        let link = format!("proc/{pid}/fd/{inode}");
        self.link(&link, &format!("socket:[{inode}]"))
    }

    /// Adds a process of root with the host's files, or with those of this directory of the host.
    fn run(&self, pid: u32, comm: &str, command: &[&str], root: Option<&str>) -> &Self {
        self.write(
            &format!("proc/{pid}/status"),
            "Name:\tx\nUid:\t0\t0\t0\t0\n",
        );
        let program = command
            .first()
            .map_or("/gone", |first| first.split(' ').next().unwrap());
        self.link(&format!("proc/{pid}/exe"), program);
        self.write(&format!("proc/{pid}/comm"), &format!("{comm}\n"));
        let command = command.iter().flat_map(|word| [*word, "\0"]);
        self.write(&format!("proc/{pid}/cmdline"), &command.collect::<String>());
        self.write(
            &format!("proc/{pid}/cgroup"),
            "0::/system.slice/kubelet.service\n",
        );
        let root = self.folder.path().join(root.unwrap_or_default());
        self.link(&format!("proc/{pid}/root"), root.to_str().unwrap())
    }

    fn listen(&self, path: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        path
    }

    fn kubelets(&self) -> Vec<KubeletProcess> {
        self.kubelets_among(None)
    }

    /// With these inodes of sockets that are connected to the runtime's.
    fn kubelets_among(&self, clients: Option<&[u64]>) -> Vec<KubeletProcess> {
        let clients = clients.map(|clients| clients.iter().copied().collect());
        kubelets(&FileTree::at(self.folder.path()), clients.as_ref())
    }

    #[track_caller]
    fn kubelet(&self) -> KubeletProcess {
        let found = self.kubelets();
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    }
}

#[track_caller]
fn check(found: &[KubeletProcess], expect: &[(u32, &str)]) {
    let found: Vec<_> = found.iter().map(|it| (it.pid, it.name.as_str())).collect();
    assert_eq!(found, expect);
}

#[test]
fn a_kubelet_is_found_by_the_name_of_its_program() {
    let host = Host::new();
    host.run(1, "systemd", &["/sbin/init"], None)
        .run(9, "k3s-server", &["/usr/local/bin/k3s server"], None)
        .run(812, "kubelet", &["/usr/bin/kubelet", "--v=2"], None)
        .run(913, "main", &["/opt/kubelet"], None)
        .run(914, "kubelet", &["/opt/kubelet"], None)
        .link("proc/914/exe", "/opt/kubelet (deleted)");
    let kubelet = "kubelet";
    let expect = [
        (9, "k3s-server"),
        (812, kubelet),
        (913, kubelet),
        (914, kubelet),
    ];
    check(&host.kubelets(), &expect);
}

#[test]
fn similar_processes_are_no_kubelets() {
    let host = Host::new();
    host.run(7, "kubelet-csr-app", &["/kubelet-csr-approver"], None)
        .run(8, "kubectl", &["kubectl", "get", "kubelet"], None)
        .run(10, "kubelet", &["/usr/bin/su"], None)
        .run(11, "k3s-server", &["/usr/bin/python3"], None)
        // A zombie.
        .run(9, "kubelet", &[], None);
    check(&host.kubelets(), &[]);
    // Where the file of the program cannot be seen, its own name counts.
    fs::remove_file(host.folder.path().join("proc/10/exe")).unwrap();
    check(&host.kubelets(), &[(10, "kubelet")]);
}

#[test]
fn a_process_of_another_user_is_none() {
    let host = Host::new();
    host.run(812, "kubelet", &["/usr/bin/kubelet"], None);
    // By its real, effective, saved or file system user, as a setuid program has.
    for users in [
        "1000 0 0 0",
        "0 1000 0 0",
        "0 0 1000 0",
        "0 0 0 1000",
        "x",
        "",
    ] {
        let users = format!("Uid:\t{}\n", users.replace(' ', "\t"));
        host.write("proc/812/status", &users);
        check(&host.kubelets(), &[]);
    }
    fs::remove_file(host.folder.path().join("proc/812/status")).unwrap();
    check(&host.kubelets(), &[]);
}

#[test]
fn a_program_that_is_connected_to_the_runtime_and_listens_as_one_is_a_kubelet() {
    let host = Host::new();
    host.run(7, "microshift", &["/usr/bin/microshift", "run"], None)
        .hold(7, 70)
        .listen_at(7, 10_250, 71)
        // A client of the runtime that serves something else.
        .run(8, "exporter", &["/usr/bin/exporter"], None)
        .hold(8, 80)
        .listen_at(8, 9_100, 81)
        // The kubelet of another runtime.
        .run(9, "edgecore", &["/usr/bin/edgecore"], None)
        .hold(9, 90)
        .listen_at(9, 10_350, 91)
        // It listens there by a socket of another process.
        .run(10, "client", &["/usr/bin/client"], None)
        .hold(10, 100)
        .write("proc/10/net/tcp", "0: 0:280A 0:0 0A 0:0 0:0 0 0 0 71 1\n");
    let clients = Some(&[70, 80, 100][..]);
    let socket = host.listen("run/crio/crio.sock");
    let found = host.kubelets_among(clients);
    check(&found, &[(7, "microshift")]);
    assert!(found[0].uses(&socket) && !found[0].is_kubelet_only());
    check(&host.kubelets(), &[]);
    check(&host.kubelets_among(Some(&[90])), &[(9, "edgecore")]);
    // A connection that is closing is none that listens.
    host.write("proc/7/net/tcp6", "0: 0:280A 0:0 06 0:0 0:0 0 0 0 71 1\n");
    check(&host.kubelets_among(clients), &[]);
}

#[test]
fn a_larger_program_uses_the_runtime_that_it_is_connected_to() {
    let host = Host::new();
    let socket = host.listen("run/crio/crio.sock");
    host.run(9, "k3s-server", &["/usr/local/bin/k3s server"], None)
        .hold(9, 90);
    let uses = |clients| host.kubelets_among(clients)[0].uses(&socket);
    assert!(uses(None) && uses(Some(&[90])));
    assert!(!uses(Some(&[80])));
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
        .configure(
            "etc/kubelet.yaml",
            "featureGates: {A: false, B: false, EventedPLEG: true}\ncgroupDriver: systemd\n",
        )
        .configure("etc/kubelet.d/20-b.conf", "featureGates: {A: true}\n")
        .configure("etc/kubelet.d/10-a.conf", "featureGates: {A: false}\n")
        .configure("etc/kubelet.d/40-d.yaml", "featureGates: {A: false}\n")
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

/// The gate `EventedPLEG` with these files below `/etc/d`, and which of them cannot be used.
fn gate_of(files: &[(&str, &str)]) -> (Option<bool>, Vec<String>) {
    let host = Host::new();
    let command = ["kubelet", "--config-dir=/etc/d"];
    host.run(1, "kubelet", &command, None).write("etc/d/x", "");
    for (path, text) in files {
        host.configure(&format!("etc/d/{path}"), text);
    }
    let settings = host.kubelet().settings();
    let unusable = settings.unusable.iter();
    let gate = settings.feature_gates.get("EventedPLEG");
    let unusable = unusable.map(|it| format!("{}: {}", it.path.display(), it.reason));
    (gate.map(|gate| gate.value), unusable.collect())
}

#[test]
fn a_file_is_read_as_a_kubelet_reads_it() {
    const ON: &str = "featureGates: {EventedPLEG: true}\n";
    let is = |value| (value, Vec::new());
    // YAML 1.1, the last of equal keys, and the first of several documents.
    for (text, value) in [
        ("featureGates: {EventedPLEG: yes}\n", true),
        ("featureGates:\n  \"EventedPLEG\" : On # or not\n", true),
        ("featureGates: {EventedPLEG: no}\n", false),
        (
            "featureGates: {EventedPLEG: false}\nfeatureGates: {EventedPLEG: true}\n",
            true,
        ),
        (
            "featureGates: {EventedPLEG: false, EventedPLEG: true}\n",
            true,
        ),
        ("featureGates: {EventedPLEG: true}\n---\n", true),
        (
            "featureGates: {EventedPLEG: true}\n---\nfeatureGates: {EventedPLEG: false}\n",
            true,
        ),
    ] {
        assert_eq!(gate_of(&[("a.conf", text)]), is(Some(value)), "{text}");
    }
    // Null takes away.
    let off = "featureGates: null\n";
    assert_eq!(gate_of(&[("a.conf", ON), ("b.conf", off)]), is(None));
    assert_eq!(
        gate_of(&[("a.conf", ON), ("b.conf", "cgroupDriver: null\n")]),
        is(Some(true))
    );
    let off = "featureGates: {EventedPLEG: null}\n";
    assert_eq!(gate_of(&[("a.conf", ON), ("b.conf", off)]), is(None));
}

#[test]
fn a_file_that_a_kubelet_refuses_is_named_with_the_reason() {
    for (text, reason) in [
        (
            "featureGates: {EventedPLEG: \"yes\"}\n",
            "is \"yes\", not true or false",
        ),
        (
            "featureGates: {EventedPLEG: \"true\"}\n",
            "is \"true\", not true or false",
        ),
        (
            "featureGates: {EventedPLEG: 1}\n",
            "is 1, not true or false",
        ),
        ("featureGates:\n  EventedPLEG:true\n", "no mapping of gates"),
        ("cgroupDriver: [a]\n", "no text"),
    ] {
        let (gate, unusable) = gate_of(&[("a.conf", text)]);
        assert_eq!((gate, unusable.len()), (None, 1), "{text}");
        assert!(unusable[0].contains(reason), "{unusable:?}");
    }
    let host = Host::new();
    let settings = |text: &str| {
        host.run(1, "kubelet", &["kubelet", "--config=/a"], None)
            .write("a", text);
        host.kubelet()
            .settings()
            .unusable
            .into_iter()
            .map(|it| it.reason)
            .collect::<Vec<_>>()
    };
    assert_eq!(settings(""), ["it is empty"]);
    assert_eq!(settings("featureGates: {}\n"), ["it has no apiVersion"]);
    assert_eq!(settings("apiVersion: v1\n"), ["it has no kind"]);
    assert_eq!(settings(HEAD), Vec::<String>::new());
}

#[test]
fn drop_ins_are_looked_for_in_directories_and_not_behind_links() {
    let on = "featureGates: {EventedPLEG: true}\n";
    assert_eq!(gate_of(&[("sub/a.conf", on)]).0, Some(true));
    let host = Host::new();
    host.configure("elsewhere/a.conf", on).write("etc/d/x", "");
    let command = |directory| ["kubelet", directory];
    let gates = |directory| {
        host.run(1, "kubelet", &command(directory), None);
        host.kubelet().settings().feature_gates.len()
    };
    host.link("etc/d/sub", "/elsewhere")
        .link("etc/linked", "/elsewhere");
    assert_eq!(gates("--config-dir=/etc/d"), 0);
    assert_eq!(gates("--config-dir=/etc/linked"), 0);
    assert_eq!(gates("--config-dir=/etc/linked/"), 1);
    // A file behind a link is read.
    host.link("etc/d/a.conf", "/elsewhere/a.conf");
    assert_eq!(gates("--config-dir=/etc/d"), 1);
}

#[test]
fn a_relative_path_begins_at_the_working_directory() {
    let host = Host::new();
    let on = "featureGates: {EventedPLEG: true}\n";
    let command = ["kubelet", "--config=config.yaml"];
    host.configure("var/lib/kubelet/config.yaml", on)
        .run(1, "kubelet", &command, None);
    host.link("proc/1/cwd", "/var/lib/kubelet");
    assert_eq!(host.kubelet().settings().feature_gates.len(), 1);
    host.configure("config.yaml", "").link("proc/1/cwd", "/");
    assert_eq!(host.kubelet().settings().feature_gates.len(), 0);
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
        .configure("etc/a.yaml", "featureGates: {EventedPLEG: \"true\"}\n")
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
    host.configure(
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
fn a_kubelet_in_a_container_is_not_trusted() {
    let host = Host::new();
    let socket = host.listen("run/containerd/containerd.sock");
    fs::create_dir(host.folder.path().join("pod")).unwrap();
    let tree = FileTree::at(host.folder.path());
    // Its endpoint is unknown, and it has no socket.
    let unreadable = ["kubelet", "--config=/missing.yaml"];
    host.run(1, "kubelet", &unreadable, Some("pod"));
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
        host.configure(&format!("d/{number}.conf"), "");
    }
    let command = ["kubelet", "--config-dir=/d"];
    let settings = host.run(1, "kubelet", &command, None).kubelet().settings();
    assert_eq!((settings.files.len(), settings.unusable.len()), (1_000, 1));
}
