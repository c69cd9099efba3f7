//! The modules of the crate, and their permitted dependencies.

/// The modules, each with its permitted dependencies, which must be above it: arrows never point
/// up.
pub(super) const USES: &[(&str, &[&str])] = &[
    ("escape", &[]),
    ("limits", &[]),
    ("statistics", &[]),
    ("queue", &["limits"]),
    ("files", &["limits", "queue"]),
    ("history", &["escape", "limits"]),
    ("yaml", &["escape", "limits"]),
    ("listener", &["limits"]),
    ("workload", &["listener", "limits"]),
    ("metrics", &["listener", "limits"]),
    ("host", &["files", "history", "limits", "queue", "yaml"]),
    ("outcome", &["history"]),
    ("pleg", &["history"]),
    (
        "oracle",
        &["history", "limits", "outcome", "pleg", "workload"],
    ),
    ("checks", &["history", "limits", "oracle", "outcome"]),
    (
        "case",
        &["checks", "escape", "files", "history", "outcome", "yaml"],
    ),
    ("plan", &["case", "outcome"]),
    (
        "verdicts",
        &[
            "case",
            "checks",
            "history",
            "limits",
            "oracle",
            "outcome",
            "plan",
            "statistics",
            "yaml",
        ],
    ),
    (
        "report",
        &["case", "history", "outcome", "escape", "statistics"],
    ),
    (
        "gate",
        &[
            "case",
            "checks",
            "outcome",
            "report",
            "statistics",
            "verdicts",
            "yaml",
        ],
    ),
    ("terminal", &["host", "escape", "queue"]),
    ("recorder", &["files", "history", "host", "limits"]),
    ("cri", &["files", "history", "host", "limits", "recorder"]),
    (
        "model",
        &["cri", "history", "host", "limits", "terminal", "workload"],
    ),
    (
        "catalogue",
        &[
            "case", "history", "model", "oracle", "outcome", "plan", "report", "verdicts",
        ],
    ),
    (
        "drive",
        &[
            "case", "checks", "cri", "escape", "history", "host", "limits", "metrics", "oracle",
            "pleg", "recorder", "workload",
        ],
    ),
    (
        "run",
        &[
            "case", "cri", "drive", "escape", "files", "history", "host", "limits", "metrics",
            "model", "oracle", "outcome", "plan", "recorder", "report", "terminal", "verdicts",
            "workload",
        ],
    ),
    (
        "matrix",
        &[
            "case", "drive", "files", "history", "limits", "model", "outcome", "plan", "report",
            "run", "verdicts",
        ],
    ),
    (
        "explore",
        &[
            "case", "checks", "drive", "escape", "files", "history", "host", "limits", "model",
            "oracle", "outcome", "report", "run", "verdicts",
        ],
    ),
    (
        "doctor",
        &[
            "cri", "drive", "escape", "history", "host", "limits", "outcome", "report", "run",
            "verdicts",
        ],
    ),
    (
        "watch",
        &[
            "cri", "doctor", "drive", "escape", "files", "history", "host", "limits", "metrics",
            "oracle", "outcome", "plan", "pleg", "recorder", "report", "run", "terminal",
            "verdicts",
        ],
    ),
    (
        "measure",
        &[
            "cri",
            "doctor",
            "drive",
            "files",
            "history",
            "host",
            "limits",
            "metrics",
            "outcome",
            "pleg",
            "recorder",
            "report",
            "run",
            "statistics",
            "terminal",
            "workload",
        ],
    ),
    (
        "cli",
        &[
            "case",
            "catalogue",
            "cri",
            "doctor",
            "drive",
            "escape",
            "explore",
            "files",
            "gate",
            "history",
            "host",
            "limits",
            "matrix",
            "measure",
            "model",
            "plan",
            "report",
            "run",
            "terminal",
            "watch",
            "workload",
            "yaml",
        ],
    ),
];
