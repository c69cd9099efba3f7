//! The files that open files.

use super::{finding, none, product};

/// Other files that open files, each with its reason. No other user can replace those files.
const ELSEWHERE: &[(&str, &str)] = &[
    ("src/files", "is the place where files are opened"),
    (
        "src/case/load.rs",
        "asks for the name of a folder, and opens it elsewhere",
    ),
    ("src/cli/commands.rs", "reads /proc/self/exe"),
    (
        "src/cri/endpoint.rs",
        "looks at a socket, which it connects to and does not open",
    ),
    (
        "src/cri/listener.rs",
        "binds a socket in a private directory",
    ),
    ("src/explore/explorer.rs", "removes a history of its own"),
    (
        "src/host/cgroup",
        "reads and writes the file system of cgroups",
    ),
    ("src/host/command.rs", "reads /proc"),
    ("src/host/container_process.rs", "reads /proc"),
    ("src/host/facts.rs", "reads /proc"),
    ("src/host/interrupts.rs", "reads /proc"),
    ("src/host/kubelet", "reads /proc"),
    ("src/host/leftovers.rs", "reads /proc"),
    ("src/host/logs.rs", "reads /proc"),
    ("src/host.rs", "reads /proc"),
    ("src/host/runtime_process.rs", "reads /proc"),
];

#[test]
fn files_are_opened_in_one_place() {
    const WAYS: [&str; 7] = [
        "File::open(",
        "File::create",
        "File::options(",
        "OpenOptions",
        "DirBuilder",
        "std::fs::",
        "std::fs;",
    ];
    let mut findings = Vec::new();
    for source in product() {
        if ELSEWHERE
            .iter()
            .any(|(path, _)| source.path.starts_with(path))
        {
            continue;
        }
        let code = source.product(&source.code).replace("rustix::fs::", "");
        let code = code
            .replace("use std::fs::File;", "")
            .replace("os::unix::fs::", "");
        let used = WAYS.iter().filter(|way| code.contains(**way));
        findings.extend(used.map(|way| finding(&source, format!("`{way}`"))));
    }
    none("Files are opened by `src/files`.", &findings);
}
