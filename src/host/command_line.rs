//! What the command line of a process says of the container or sandbox that it serves.

use std::path::Path;

/// CRI-O's monitor of a container.
pub(super) const CONMON: &str = "conmon";

pub(super) struct CommandLine<'a> {
    pub(super) program: &'a str,
    arguments: Vec<&'a str>,
}

impl<'a> CommandLine<'a> {
    /// Parses `/proc/PID/cmdline`, in which each argument ends with NUL.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let text = text.strip_suffix('\0').unwrap_or(text);
        let mut words = text.split('\0');
        let program = Path::new(words.next()?).file_name()?.to_str()?;
        let arguments = words.collect();
        Some(Self { program, arguments })
    }

    /// The argument after this one.
    pub(super) fn after(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.arguments.windows(2);
        pairs.find_map(|pair| (pair[0] == name).then_some(pair[1]))
    }

    /// The container that CRI-O's monitor, or the sandbox that containerd's shim was started for.
    pub(super) fn monitors(&self) -> Option<&'a str> {
        if self.program.starts_with("containerd-shim") {
            let is_cris = self.after("-namespace") == Some("k8s.io");
            self.after("-id").filter(|_| is_cris)
        } else if self.program == CONMON {
            self.after("-c")
        } else {
            None
        }
    }

    /// Whether it is the monitor of a container, whatever its arguments.
    pub(super) fn is_monitor(&self) -> bool {
        self.program.starts_with("containerd-shim") || self.program.starts_with(CONMON)
    }

    /// The directory in which a monitor leaves what it has to report, as it calls it: CRI-O's the
    /// exit code; containerd's works in the directory of the sandbox.
    pub(super) fn reports_in(&self) -> &'a str {
        self.after("--exit-dir").unwrap_or(".")
    }

    /// The container that an OCI runtime creates: the last argument of `runc … create … ID`.
    pub(super) fn creates(&self) -> Option<&'a str> {
        let creates = self.arguments.contains(&"create");
        self.arguments.last().copied().filter(|_| creates)
    }
}
