//! The memory limit of a pod, and the containers marked for a kill by it.

use super::*;
use crate::model::PodKill;

/// A pod with a limit, a container that exceeds it after a second, and one that does not.
fn pod_with_a_hog(pod_kill: PodKill, hog_mib: Option<u64>) -> (Harness, ContainerId, ContainerId) {
    let mut harness = Harness::new(Behaviour {
        pod_kill,
        ..Behaviour::default()
    });
    let pod = SandboxSpec {
        memory_bytes: Some(32 << 20),
        ..SandboxSpec::default()
    };
    let pod = match harness.call(Request::RunSandbox(Arc::new(pod))) {
        Ok(Reply::Sandbox(id)) => id,
        other => panic!("{other:?}"),
    };
    let eat = Workload::Allocate {
        mebibytes: 64,
        after: SECOND,
    };
    let hog = harness.create_limited(&pod, "hog", &eat, hog_mib);
    harness.call(Request::StartContainer(hog.clone())).unwrap();
    let sibling = harness.running(&pod, "sibling", &Workload::UntilTerm);
    harness.events();
    harness.advance(SECOND);
    (harness, hog, sibling)
}

#[track_caller]
fn check(pod_kill: PodKill, hog: &str, sibling: &str, stopped: &str) {
    let (mut harness, killed, other) = pod_with_a_hog(pod_kill, None);
    assert_eq!(harness.machine.oom_kills(), 1);
    harness.status_is(&killed, hog);
    harness.status_is(&other, sibling);
    harness.call(stop(&other, 10)).unwrap();
    harness.status_is(&other, stopped);
}

#[test]
fn a_kill_by_the_pods_limit_is_its_containers() {
    let (marked, ended) = ("EXITED 137 OOMKilled", "EXITED 0 Completed");
    check(PodKill::MarksOwner, marked, "RUNNING 0", ended);
    check(PodKill::MarksNone, "EXITED 137 Error", "RUNNING 0", ended);
    check(
        PodKill::MarksAll,
        marked,
        "RUNNING 0 OOMKilled",
        "EXITED 0 OOMKilled",
    );
    let killed = "EXITED 137 Error";
    check(PodKill::EndsAll, marked, killed, killed);
}

#[test]
fn a_kill_by_a_containers_own_limit_is_never_the_pods() {
    for pod_kill in [PodKill::MarksNone, PodKill::MarksAll, PodKill::EndsAll] {
        let (mut harness, hog, sibling) = pod_with_a_hog(pod_kill, Some(16));
        harness.status_is(&hog, "EXITED 137 OOMKilled");
        harness.status_is(&sibling, "RUNNING 0");
    }
}

#[test]
fn memory_is_limited_by_the_lower_limit() {
    let (harness, hog, _) = pod_with_a_hog(PodKill::default(), Some(16));
    assert_eq!(harness.machine.memory_limit(&hog), Some(16 << 20));
    let (harness, hog, sibling) = pod_with_a_hog(PodKill::default(), Some(48));
    assert_eq!(harness.machine.memory_limit(&hog), Some(32 << 20));
    assert_eq!(harness.machine.memory_limit(&sibling), Some(32 << 20));
}
