//! Unusable endpoints: the error names the endpoint, the problem, and the remedy.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::fake_cri::{FakeCri, Flaw};
use crate::suite::{Ended, suite, unprivileged};

/// A socket in a directory of its own, and its server.
struct Served {
    folder: TempDir,
}

impl Served {
    fn new(answer: impl Fn(UnixStream) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        thread::spawn(move || {
            listener
                .incoming()
                .for_each(|stream| answer(stream.unwrap()));
        });
        Self { folder }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }
}

/// A run of one case at an endpoint.
fn run_at(endpoint: &Path) -> Ended {
    suite([
        "ORD-01",
        "--timeout",
        "1s",
        "-r",
        endpoint.to_str().unwrap(),
    ])
    .run()
}

/// Asserts that a run at the endpoint cannot be decided, and its message has the path and these
/// texts.
#[track_caller]
fn is_reported(endpoint: &Path, message: &[&str]) {
    let ended = run_at(endpoint).fails(3, message);
    let ended = ended.fails(3, &["error: ", endpoint.to_str().unwrap()]);
    assert_eq!(ended.out, "");
    assert!(
        ended.err.lines().count() <= 2,
        "one fault is message once: {ended:#?}"
    );
}

#[test]
fn there_is_no_such_socket() {
    is_reported(
        Path::new("/no/such/socket"),
        &["no socket", "is the runtime running"],
    );
}

#[test]
fn there_is_a_directory_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    is_reported(folder.path(), &["is a directory, not a socket"]);
}

#[test]
fn there_is_a_regular_file_in_its_place() {
    let file = tempfile::NamedTempFile::new().unwrap();
    is_reported(file.path(), &["not a socket", "the runtime's socket"]);
}

#[test]
fn a_part_of_the_path_is_no_directory() {
    let file = tempfile::NamedTempFile::new().unwrap();
    is_reported(&file.path().join("cri"), &["Not a directory"]);
}

#[test]
fn the_socket_is_not_ours_to_use() {
    let served = Served::new(drop);
    fs::set_permissions(served.socket(), Permissions::from_mode(0o000)).unwrap();
    let socket = served.socket();
    unprivileged(["ORD-01", "-r", socket.to_str().unwrap()])
        .run()
        .fails(3, &[socket.to_str().unwrap(), "permission", "run as root"]);
}

#[test]
fn nobody_listens_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    drop(UnixListener::bind(&socket).unwrap());
    is_reported(
        &socket,
        &["no server listens", "refused", "is the runtime running"],
    );
}

#[test]
fn the_connection_is_accepted_and_nothing_is_said() {
    let held = std::sync::Mutex::new(Vec::new());
    let served = Served::new(move |stream| held.lock().unwrap().push(stream));
    is_reported(&served.socket(), &["within 1s", "is the runtime stuck"]);
}

#[test]
fn the_runtime_is_stuck() {
    let fake = FakeCri::start(Flaw::Stuck);
    is_reported(&fake.socket(), &["within 1s", "is the runtime stuck"]);
}

#[test]
fn the_connection_is_closed_at_once() {
    let served = Served::new(drop);
    is_reported(
        &served.socket(),
        &["did not answer `Version`", "another program's socket"],
    );
}

#[test]
fn somebody_speaks_no_grpc() {
    for garbage in [
        &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9.2\r\n",
        &[0xff; 4096],
    ] {
        let served = Served::new(move |mut stream| {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(garbage);
        });
        is_reported(
            &served.socket(),
            &["did not answer `Version`", "another program's socket"],
        );
    }
}

#[test]
fn a_grpc_server_is_no_runtime() {
    let fake = FakeCri::start(Flaw::ImagesOnly);
    is_reported(
        &fake.socket(),
        &["does not offer the CRI", "UNIMPLEMENTED", "plugin"],
    );
}

#[test]
fn the_image_service_is_distinguished_from_the_runtime() {
    let fake = FakeCri::start(Flaw::EventsOff);
    let runtime = fake.socket();
    suite([
        "ORD-01",
        "-r",
        runtime.to_str().unwrap(),
        "-i",
        "/no/such/images",
    ])
    .run()
    .fails(3, &["/no/such/images", "no socket"]);
}

#[test]
fn text_that_is_no_endpoint_is_wrong_usage() {
    for (text, message) in [
        ("run/containerd.sock", "absolute path"),
        ("unix://run/containerd.sock", "absolute path"),
        ("containerd", "absolute path"),
        ("tcp://127.0.0.1:1234", "not supported"),
        ("http://localhost", "not supported"),
        ("npipe:////./pipe/containerd", "not supported"),
        ("unix://", "empty"),
    ] {
        let suggestion = "unix:///run/containerd/containerd.sock";
        suite(["ORD-01", "-r", text])
            .run()
            .fails(2, &[message, suggestion]);
        suite(["ORD-01", "-r", "/x", "-i", text])
            .run()
            .fails(2, &["image endpoint", message, suggestion]);
    }
    let long = format!("/{}", "x".repeat(200));
    suite(["ORD-01", "-r", &long])
        .run()
        .fails(2, &[&long, "107 bytes"]);
}

#[test]
fn a_path_is_taken_with_and_without_the_scheme() {
    for text in [
        "/no/such/socket",
        "unix:///no/such/socket",
        "unix:/no/such/socket",
    ] {
        suite(["ORD-01", "-r", text])
            .run()
            .fails(3, &["no socket /no/such/socket"]);
    }
}

#[test]
fn the_flag_is_nearer_than_the_variable_and_that_than_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("crictl.yaml");
    fs::write(&config, "runtime-endpoint: /from/file\ndebug: true\n").unwrap();
    let file = || suite(["ORD-01"]).env("CRI_CONFIG_FILE", &config);
    let variable = "CONTAINER_RUNTIME_ENDPOINT";
    let origin = format!("using the runtime endpoint from {}: ", config.display());
    file().run().fails(3, &["/from/file", &origin]);
    file()
        .env(variable, "/from/variable")
        .run()
        .fails(3, &["/from/variable"]);
    file().env(variable, "").run().fails(3, &["/from/file"]);
    suite(["ORD-01", "-r", "/from/flag"])
        .env("CRI_CONFIG_FILE", &config)
        .env(variable, "/from/variable")
        .run()
        .fails(3, &["/from/flag"]);
    let flag = suite(["ORD-01", "-r", "/from/flag"]).env("CRI_CONFIG_FILE", &config);
    assert!(!flag.run().err.contains(&origin));
    suite(["cleanup", "-c", config.to_str().unwrap()])
        .env("CRI_CONFIG_FILE", "/no/such/file")
        .run()
        .fails(3, &["/from/file"]);
}

#[test]
fn the_timeout_is_taken_from_the_file_unless_it_is_given() {
    let fake = FakeCri::start(Flaw::Stuck);
    let config = fake.folder().join("crictl.yaml");
    let text = format!(
        "runtime-endpoint: {}\ntimeout: 1\n",
        fake.socket().display()
    );
    fs::write(&config, text).unwrap();
    let at = || suite(["cleanup", "-c", config.to_str().unwrap()]);
    at().run().fails(3, &["within 1s"]);
    suite(["cleanup", "-t", "100ms", "-c", config.to_str().unwrap()])
        .run()
        .fails(3, &["within 100ms"]);
}

#[test]
fn a_configuration_that_cannot_be_used_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("crictl.yaml");
    let path = config.to_str().unwrap();
    let at = || suite(["ORD-01", "--config", path]).run();
    at().fails(2, &[path, "No such file"]);
    for (text, message) in [
        ("timeout: [", "line 1"),
        ("timeout: soon\n", "line 1"),
        ("just text\n", "runtime-endpoint:"),
        ("runtime-endpoint: tcp://x\n", "not supported"),
    ] {
        fs::write(&config, text).unwrap();
        let ended = at().fails(2, &[message]);
        assert!(ended.err.starts_with("error: "), "{text}: {ended:#?}");
    }
    fs::write(&config, "#".repeat(100_000)).unwrap();
    at().fails(2, &[path, "64 KiB"]);
    suite(["ORD-01", "--config", "/"])
        .run()
        .fails(2, &["directory"]);
}

#[test]
fn without_an_endpoint_the_usual_ones_are_tried_and_listed() {
    // Where a runtime is found, this keeps it from being used: it is none of ours.
    let unused = ["-i", "tcp://unused"];
    for args in [&["ORD-01"][..], &["cleanup"]] {
        let ended = suite(args.iter().chain(&unused)).run();
        if ended.err.contains("tcp://unused") {
            continue;
        }
        ended.fails(
            3,
            &[
                "/run/containerd/containerd.sock",
                "/run/crio/crio.sock",
                "/var/run/cri-dockerd.sock",
                "--runtime-endpoint",
                "CONTAINER_RUNTIME_ENDPOINT",
            ],
        );
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_stuck_runtime() {
    let fake = FakeCri::start(Flaw::Stuck);
    let report = fake.folder().join("junit.xml");
    for signal in [Signal::INT, Signal::TERM] {
        let socket = fake.socket();
        let args = [
            "ORD-01",
            "-r",
            socket.to_str().unwrap(),
            "--junit",
            report.to_str().unwrap(),
        ];
        let running = suite(args).start();
        fake.wait_for("version");
        running.send(signal);
        running
            .end_within(Duration::from_secs(3))
            .fails(3, &["interrupted"]);
        let files = fs::read_dir(fake.folder()).unwrap().count();
        assert_eq!(files, 2, "the socket and the report");
        let report = fs::read_to_string(&report).unwrap();
        assert!(report.contains("interrupted"), "{report}");
    }
}
