//! `doctor` at a real runtime, on a node without files and processes.

use crate::node::Node;
use crate::suite::Ended;

fn doctor(node: &Node) -> Ended {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().to_str().unwrap();
    node.suite(&["doctor", "--root", root]).run()
}

pub(crate) fn the_doctor_finds_events(node: &Node) {
    let ended = doctor(node);
    assert_eq!(ended.code, 3, "{ended:#?}");
    for finding in [
        "ok       events-open: ",
        "ok       runtime-version: ",
        "unknown  kubelet-missing: ",
    ] {
        assert!(ended.out.contains(finding), "{ended:#?}");
    }
    assert!(!ended.out.contains("\nwrong "), "{ended:#?}");
}

pub(crate) fn the_doctor_finds_a_runtime_without_events(node: &Node) {
    let ended = doctor(node);
    assert_eq!(ended.code, 1, "{ended:#?}");
    assert!(ended.out.contains(": 1 wrong, 1 unknown"), "{ended:#?}");
    assert!(ended.out.contains("wrong    no-events: "), "{ended:#?}");
}
