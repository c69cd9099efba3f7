//! Slices of systemd's, which it makes and removes at our request, as for a kubelet whose cgroup
//! driver is systemd.

use std::io;
use std::process::{Command, Stdio};

/// How long systemd may take to accept a request, in seconds.
const ACCEPTED_WITHIN: &str = "--timeout=10";
const SYSTEMD: [&str; 3] = [
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
];

/// systemd did not do it.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    /// It could not be asked.
    #[error("busctl, which comes with systemd: {0}")]
    Busctl(#[from] io::Error),
    /// It refused.
    #[error("systemd refuses {method} of {unit}: {said}")]
    Refused {
        /// What it was asked to do.
        method: &'static str,
        /// Of which unit.
        unit: String,
        /// What it said.
        said: String,
    },
}

/// Starts a slice whose processes may use so much memory together, and no swap.
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
    // No units beside it.
    let arguments = [&head[..], properties.as_flattened(), &["0"]].concat();
    ask("StartTransientUnit", unit, &arguments)
}

/// Stops a slice that has no process, which removes it. That there is none is no error.
pub(super) fn stop(unit: &str) -> Result<(), SliceError> {
    match ask("StopUnit", unit, &["ss", unit, "fail"]) {
        Err(SliceError::Refused { said, .. }) if said.contains("not loaded") => Ok(()),
        done => done,
    }
}

fn ask(method: &'static str, unit: &str, arguments: &[&str]) -> Result<(), SliceError> {
    let asked = Command::new("busctl")
        .args([ACCEPTED_WITHIN, "call"])
        .args(SYSTEMD)
        .arg(method)
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    if asked.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&asked.stderr).trim().to_owned();
    let unit = unit.to_owned();
    Err(SliceError::Refused { method, unit, said })
}
