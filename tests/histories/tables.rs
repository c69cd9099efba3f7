//! The changes that break each rule, and harmless ones that are similar. The words are those of
//! `mutation`.

/// The changes with which a case fails by its own expectations. Each history is one in which the
/// case passes.
pub(crate) const CASES: &[(&str, &[&str])] = &[
    ("CKP-01", &["drop STOPPED of c", "repeat STOPPED of c"]),
    ("CKP-02", &["repeat STOPPED of c", "drop DELETED of c"]),
    (
        "CKP-03",
        &[
            "drop CREATED of restored",
            "drop STARTED of restored",
            "drop STOPPED of restored",
        ],
    ),
    ("CKP-04", &["insert STARTED of restored before DELETED"]),
    (
        "CMP-01",
        &[
            "drop CREATED of obedient",
            "drop STARTED of killed",
            "drop STOPPED of succeeding",
            "drop DELETED of failing",
            "repeat STOPPED of killed",
        ],
    ),
    (
        "CMP-02",
        &[
            "repeat STOPPED of c",
            "repeat DELETED of c",
            "repeat STOPPED of pod",
            "repeat DELETED of pod",
        ],
    ),
    ("CMP-05", &["drop STOPPED of c", "delay STOPPED of c by 9s"]),
    (
        "CMP-08",
        &[
            "insert STARTED of c before DELETED",
            "insert STOPPED of c before DELETED",
            "drop DELETED of c",
        ],
    ),
    (
        "EXT-01",
        &[
            "set exit=255 STOPPED of success",
            "set exit=0 STOPPED of failure#1",
            "set own-status=none STOPPED of failure",
            "drop STOPPED of failure#2",
        ],
    ),
    (
        "EXT-04",
        &[
            "drop STOPPED of c",
            "repeat STOPPED of c",
            "set exit=0 STOPPED of c",
            "set exit=267 STOPPED of c",
        ],
    ),
    (
        "EXT-06",
        &[
            "drop STOPPED of c",
            "repeat STOPPED of c",
            "delay STOPPED of c by 12s",
            "set exit=0 STOPPED of c",
        ],
    ),
    ("FEA-01", &["drop STOPPED of c"]),
    (
        "FLR-02",
        &["drop STOPPED of c", "insert STARTED of c before STOPPED"],
    ),
    (
        "FLR-10",
        &[
            "drop STOPPED of c",
            "drop CREATED of c",
            "drop DELETED of c",
            "insert STARTED of c before STOPPED",
        ],
    ),
    (
        "FLR-10a",
        &[
            "drop STOPPED of c",
            "repeat STOPPED of c",
            "insert STARTED of c before STOPPED",
        ],
    ),
    (
        "FLR-10b",
        &[
            "drop STOPPED of c",
            "repeat STOPPED of c",
            "insert STOPPED of c before STOPPED",
            "insert DELETED of c behind STOPPED",
        ],
    ),
    (
        "FLR-10c",
        &[
            "drop STOPPED of c",
            "repeat STOPPED of c",
            "set exit=0 STOPPED of c",
        ],
    ),
    (
        "MUL-05",
        &[
            "drop STOPPED of first",
            "drop STOPPED of second",
            "repeat STOPPED of app",
            "insert STOPPED of app before STOPPED",
            "set exit=137 STOPPED of first",
            "set exit=0 STOPPED of second",
            "set exit=137 STOPPED of app",
        ],
    ),
    (
        "NEG-08",
        &[
            "drop STOPPED of c",
            "repeat STARTED of c",
            "set exit=137 STOPPED of c",
            "drop DELETED of c",
        ],
    ),
    (
        "OOM-01",
        &[
            "set exit=0 STOPPED of hog",
            "set reason=Error STOPPED of hog",
            "set own-status=none STOPPED of hog",
            "drop STOPPED of hog",
        ],
    ),
    (
        "ORD-01",
        &[
            "drop CREATED of c",
            "drop STARTED of c",
            "drop STOPPED of c",
            "drop DELETED of c",
            "repeat CREATED of c",
            "repeat DELETED of c",
            "swap CREATED STARTED of c",
            "swap STARTED STOPPED of c",
            "swap STOPPED DELETED of c",
            "move STOPPED of c before StopContainer",
            "set type=9 STARTED of c",
            "set id=short STOPPED of c",
        ],
    ),
    (
        "ORD-06",
        &[
            "swap CREATED STARTED of c#1",
            "drop CREATED of c#2",
            "swap STOPPED DELETED of c#1",
            "drop STOPPED of c#2",
        ],
    ),
    (
        "REC-02",
        &[
            "drop CREATED of c",
            "drop STARTED of c#1",
            "drop DELETED of c#2",
            "repeat STOPPED of c#1",
        ],
    ),
    (
        "SBX-01",
        &[
            "drop STARTED of pod",
            "set sandbox=none STARTED of pod",
            "set uid=other STARTED of pod",
            "set id=short STARTED of pod",
        ],
    ),
    (
        "SBX-03",
        &[
            "drop STOPPED of obedient",
            "drop STOPPED of stubborn",
            "drop STOPPED of pod",
            "repeat STOPPED of exited",
        ],
    ),
    (
        "SBX-04",
        &[
            "drop DELETED of exited",
            "drop DELETED of running",
            "drop DELETED of pod",
            "move DELETED of exited behind DELETED of pod",
            "move DELETED of running behind DELETED of pod",
            "set sandbox=none DELETED of pod",
        ],
    ),
    (
        "SNP-01",
        &[
            "set sandbox=none CREATED of c",
            "set metadata=none STARTED of c",
            "set uid= STOPPED of c",
            "set uid=other DELETED of c",
            "set sandbox=none STOPPED of pod",
            "drop STOPPED of c",
            "drop STARTED of pod",
            "set own-status=none STARTED of c",
            "set own-status=twice STOPPED of exits",
            "set own-status=kept DELETED of c",
            "drop CREATED of c",
            "drop DELETED of exits",
        ],
    ),
    (
        "SNP-10",
        &[
            "answer mounts=none of c",
            "answer user=none of c",
            "answer state=created of c",
            "set image=none STARTED of c",
            "set reason=Fine STOPPED of c",
            "drop CREATED of c",
        ],
    ),
    (
        "STP-01",
        &[
            "drop STOPPED of c",
            "set exit=137 STOPPED of c",
            "insert DELETED of c behind STOPPED",
        ],
    ),
    (
        "STP-02",
        &[
            "hasten STOPPED of c by 500ms",
            "move STOPPED of c before StopContainer",
            "delay STOPPED of c by 12s",
            "set exit=0 STOPPED of c",
            "drop STOPPED of c",
        ],
    ),
    (
        "STP-06",
        &["swap STOPPED DELETED of c#1", "drop STOPPED of c#2"],
    ),
];

/// The changes of a case's history with which an invariant is broken.
pub(crate) const INVARIANTS_BROKEN: &[(&str, &[(&str, &str)])] = &[
    (
        "INV-01",
        &[
            ("ORD-01", "swap CREATED STARTED of c"),
            ("ORD-01", "swap STOPPED DELETED of c"),
            ("STP-01", "insert DELETED of c before STOPPED"),
            ("SBX-04", "swap STARTED STOPPED of pod"),
        ],
    ),
    (
        "INV-02",
        &[
            ("ORD-01", "repeat STOPPED of c"),
            ("SBX-04", "repeat DELETED of pod"),
        ],
    ),
    (
        "INV-03",
        &[
            ("ORD-01", "set type=9 STARTED of c"),
            ("ORD-01", "set id=short STOPPED of c"),
        ],
    ),
    (
        "INV-04",
        &[
            ("ORD-01", "set created-at=seconds CREATED of c"),
            ("ORD-01", "set created-at=zero STOPPED of c"),
            ("ORD-01", "set created-at=later DELETED of c"),
        ],
    ),
    (
        "INV-05",
        &[("ORD-01", "set created-at=earlier STOPPED of c")],
    ),
    (
        "INV-06",
        &[
            ("ORD-01", "set sandbox=none STOPPED of c"),
            ("ORD-01", "set metadata=none STOPPED of c"),
            ("ORD-01", "set uid=other CREATED of c"),
            ("SBX-04", "set sandbox=none DELETED of pod"),
        ],
    ),
    (
        "INV-08",
        &[
            ("ORD-01", "set state=running STOPPED of c"),
            ("ORD-01", "set state=created STARTED of c"),
            ("ORD-01", "set own-status=kept DELETED of c"),
        ],
    ),
    (
        "INV-09",
        &[
            ("MUL-05", "set snapshot=first.STARTED STARTED of second"),
            ("ORD-01", "set state=exited CREATED of c"),
        ],
    ),
    ("INV-10", &[("ORD-01", "set id=other STARTED of c")]),
    (
        "INV-11",
        &[
            ("STP-01", "drop STOPPED of c"),
            ("ORD-01", "drop DELETED of c"),
            ("FEA-01", "drop CREATED of c"),
            ("STP-02", "drop STARTED of c"),
            ("SBX-04", "drop DELETED of running"),
        ],
    ),
    ("INV-12", &[("ORD-01", "observe since CREATED of c")]),
    (
        "INV-13",
        &[
            ("STP-01", "drop STOPPED of c"),
            ("STP-01", "set exit=7 STOPPED of c"),
            ("STP-01", "set own-status=none STOPPED of c"),
            ("STP-01", "set sandbox=none STOPPED of c"),
            ("STP-01", "set image=none STOPPED of c"),
            ("STP-01", "set reason=Killed STOPPED of c"),
        ],
    ),
    (
        "INV-15",
        &[
            ("STP-06", "set own-status=none STOPPED of c"),
            ("SNP-01", "set own-status=none CREATED of c"),
            ("SNP-01", "set own-status=twice STOPPED of exits"),
            ("SNP-01", "set siblings=none STARTED of exits"),
        ],
    ),
    (
        "INV-18",
        &[
            ("SBX-01", "set sandbox-state=not-ready STARTED of pod"),
            ("SBX-04", "set sandbox-state=ready DELETED of running"),
            ("SBX-04", "set sandbox-state=ready DELETED of pod"),
        ],
    ),
    ("INV-19", &[("ORD-01", "set state=running CREATED of c")]),
    (
        "INV-20",
        &[
            ("EXT-01", "set exit=0 STOPPED of failure#1"),
            ("CMP-01", "set exit=255 STOPPED of failing"),
            ("SBX-03", "set exit=0 STOPPED of stubborn"),
        ],
    ),
    (
        "INV-21",
        &[("ORD-01", "insert end of stream behind STARTED of c")],
    ),
    (
        "INV-22",
        &[
            ("CMP-05", "report none of pod"),
            ("CMP-05", "report seconds of pod"),
            ("CMP-05", "report untimed of pod"),
        ],
    ),
    (
        "INV-23",
        &[
            ("SBX-03", "move STOPPED of stubborn behind STOPPED of pod"),
            ("ORD-01", "set created-at=later DELETED of c"),
        ],
    ),
    (
        "INV-25",
        &[("REC-02", "replay CREATED of c behind STARTED of c#1")],
    ),
    ("INV-26", &[("ORD-01", "set created-at=later STARTED of c")]),
    (
        "INV-27",
        &[
            ("ORD-01", "set state=created STARTED of c"),
            ("SNP-01", "set siblings=none STARTED of exits"),
            ("MUL-05", "set snapshot=first.STARTED STARTED of second"),
            ("SBX-04", "set sandbox-state=ready DELETED of running"),
        ],
    ),
    (
        "INV-28",
        &[
            ("CMP-05", "report running of pod"),
            ("SNP-10", "answer mounts=none of c"),
        ],
    ),
    (
        "INV-29",
        &[
            ("ORD-01", "set image=none STARTED of c"),
            ("ORD-01", "set started-at=none STARTED of c"),
            ("ORD-01", "set finished-at=none STOPPED of c"),
            ("ORD-01", "set pod-name=other DELETED of c"),
            ("SBX-01", "set sandbox-id=other STARTED of pod"),
            ("STP-01", "set exit=7 STOPPED of c"),
            ("EXT-01", "set reason=Fine STOPPED of success"),
        ],
    ),
    ("INV-30", &[("ORD-01", "refuse removal of pod")]),
    (
        "INV-31",
        &[
            ("STP-02", "move STOPPED of c before StopContainer"),
            ("SNP-10", "answer state=created of c"),
        ],
    ),
    (
        "INV-32",
        &[
            ("CMP-02", "delay CREATED of c by 3s"),
            ("CMP-05", "delay STOPPED of c by 3s"),
        ],
    ),
    (
        "INV-33",
        &[
            ("SBX-01", "drop STARTED of pod"),
            ("SBX-03", "drop STOPPED of pod"),
            ("SBX-04", "drop DELETED of pod"),
        ],
    ),
];

/// Harmless changes that are similar: the case still passes, and every invariant holds.
pub(crate) const NEIGHBOURS: &[(&str, &str)] = &[
    ("CMP-05", "delay STOPPED of c by 1s"),
    ("CMP-05", "report all of pod"),
    ("FEA-01", "delay STOPPED of c by 1s"),
    ("SBX-01", "drop CREATED of pod"),
    ("SBX-01", "set sandbox-state=not-ready CREATED of pod"),
    ("SNP-01", "drop CREATED of pod"),
    ("STP-01", "delay STOPPED of c by 1s"),
    ("STP-02", "delay STOPPED of c by 300ms"),
];

/// The changes with which a failing case passes.
pub(crate) const REPAIRS: &[(&str, &str)] = &[
    ("CKP-04", "insert STOPPED of restored before DELETED"),
    ("FLR-02", "insert STOPPED of c before DELETED"),
    ("FLR-10", "insert STOPPED of c before DELETED"),
    ("FLR-10a", "insert STOPPED of c before DELETED"),
];
