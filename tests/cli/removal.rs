//! Clean-up: pods are removed without a grace period, and failures are reported.

use crate::fake_cri::{Asked, ENDED_RUN, FakeCri, Flaw};
use crate::suite::suite;

/// CRI-O takes the deadline of such a call for the grace period of what it ends.
#[test]
fn no_deadline_is_sent_by_which_a_runtime_ends_containers() {
    let asked = asked_in_a_run();
    let ends = ["remove_container", "stop_pod_sandbox", "remove_pod_sandbox"];
    for method in ends {
        assert!(asked.iter().any(|asked| asked.method == method), "{method}");
    }
    for asked in asked {
        let is_reported = !ends.contains(&asked.method);
        assert_eq!(asked.has_deadline, is_reported, "{asked:?}");
    }
}

#[test]
fn what_is_removed_is_killed_before() {
    let asked = asked_in_a_run();
    let pods = asked.iter().filter(|it| it.method == "stop_pod_sandbox");
    let pods: Vec<_> = pods.filter_map(|it| it.message.split('"').nth(1)).collect();
    assert_eq!(pods.len(), 2, "the marker's and the case's: {asked:#?}");
    for pod in pods {
        // The fake names a container for its sandbox, which has no other at the time.
        let own: Vec<_> = asked.iter().filter(|it| it.message.contains(pod)).collect();
        for pair in own.windows(2) {
            let killed = pair[0].message.contains("timeout: 0 ");
            match pair[1].method {
                "remove_container" => assert!(killed, "{pair:#?}"),
                "stop_pod_sandbox" => {
                    let is_empty = pair[0].method == "remove_container";
                    assert!(killed || is_empty, "{pair:#?}");
                }
                _ => {}
            }
        }
    }
}

/// The calls of a run whose case ends with a container in its sandbox.
#[track_caller]
fn asked_in_a_run() -> Vec<Asked> {
    let fake = FakeCri::start(Flaw::NoStarts);
    let (socket, logs) = (fake.socket(), fake.folder().to_str().unwrap());
    let socket = socket.to_str().unwrap();
    let ended = suite(["ORD-01", "--exact", "-r", socket, "--log-dir", logs]).run();
    let failed = "undecided: StartContainer failed";
    assert!(ended.out.contains(failed), "{ended:#?}");
    assert_eq!(fake.sandboxes(), 0, "{ended:#?}");
    fake.asked()
}

#[test]
fn leftovers_that_a_runtime_never_removes_are_reported_with_the_way_out() {
    let fake = FakeCri::start(Flaw::Evil("remove_pod_sandbox"));
    fake.add_pod_of_a_run(ENDED_RUN);
    let (socket, logs) = (fake.socket(), fake.folder().to_str().unwrap());
    let socket = socket.to_str().unwrap();
    let left = ["--run-id", ENDED_RUN, "--log-dir", logs, "-r", socket];
    let ended = suite(["cleanup"].iter().chain(&left)).run();
    let ended = ended.fails(3, &["error: not removed:\n  sandbox left: UNKNOWN: "]);
    let way_out = "\nrestart the runtime, then run this again\n";
    assert!(ended.err.ends_with(way_out), "{ended:#?}");
    assert_eq!(fake.sandboxes(), 1);
}
