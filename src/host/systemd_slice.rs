//! Creates and removes systemd slices, as a kubelet with the cgroup driver systemd does.

use std::io;
use std::process::{Command, Stdio};

/// How long systemd may take to accept a request, in seconds.
const ACCEPTED_WITHIN: &str = "--timeout=10";
const SYSTEMD: [&str; 3] = [
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
];

/// systemd failed to start or stop a slice.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    #[error("run busctl, a part of systemd: {0}")]
    Busctl(#[from] io::Error),
    #[error("systemd refuses {method} of {unit}: {said}")]
    Refused {
        method: &'static str,
        unit: String,
        said: String,
    },
}

/// Starts a slice with a memory limit and without swap.
pub(super) fn start(unit: &str, memory_bytes: u64) -> Result<(), SliceError> {
    let limit = memory_bytes.to_string();
    let properties = [
        ["Description", "s", "a pod of cri-event-conformance"],
        ["MemoryAccounting", "b", "true"],
        ["MemoryMax", "t", &limit],
        ["MemorySwapMax", "t", "0"],
    ];
    let count = properties.len().to_string();
    let head = ["ssa(sv)a(sa(sv))", unit, "fail", &count];
    // No auxiliary units.
    let arguments = [&head[..], properties.as_flattened(), &["0"]].concat();
    call_systemd("StartTransientUnit", unit, &arguments)
}

/// Stops an empty slice, which removes it. It is no error if there is none.
pub(super) fn stop(unit: &str) -> Result<(), SliceError> {
    match call_systemd("StopUnit", unit, &["ss", unit, "fail"]) {
        Err(SliceError::Refused { said, .. }) if said.contains("not loaded") => Ok(()),
        done => done,
    }
}

fn call_systemd(method: &'static str, unit: &str, arguments: &[&str]) -> Result<(), SliceError> {
    let output = Command::new("busctl")
        .args([ACCEPTED_WITHIN, "call"])
        .args(SYSTEMD)
        .arg(method)
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let unit = unit.to_owned();
    Err(SliceError::Refused { method, unit, said })
}
