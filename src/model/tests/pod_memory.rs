//! The limit of a pod's memory, and whom a kill by it is put down to.

use super::*;
use crate::model::PodKill;

/// A pod with a limit, a container that goes beyond it after a second, and one that does not.
fn pod_with_a_hog(pod_kill: PodKill, hog_mib: Option<u64>) -> (Stand, ContainerId, ContainerId) {
    let mut stand = Stand::new(Behaviour {
        pod_kill,
        ..Behaviour::default()
    });
    let pod = SandboxSpec {
        memory_bytes: Some(32 << 20),
        ..SandboxSpec::default()
    };
    let pod = match stand.call(Request::RunSandbox(Arc::new(pod))) {
        Ok(Reply::Sandbox(id)) => id,
        other => panic!("{other:?}"),
    };
    let eat = Workload::Eat {
        mebibytes: 64,
        after: SECOND,
    };
    let hog = stand.create_limited(&pod, "hog", &eat, hog_mib);
    stand.call(Request::StartContainer(hog.clone())).unwrap();
    let sibling = stand.running(&pod, "sibling", &Workload::Obey);
    stand.events();
    stand.pass(SECOND);
    (stand, hog, sibling)
}

#[track_caller]
fn check(pod_kill: PodKill, hog: &str, sibling: &str, stopped: &str) {
    let (mut stand, killed, other) = pod_with_a_hog(pod_kill, None);
    assert_eq!(stand.machine.oom_kills(), 1);
    stand.status_is(&killed, hog);
    stand.status_is(&other, sibling);
    stand.call(stop(&other, 10)).unwrap();
    stand.status_is(&other, stopped);
}

#[test]
fn a_kill_by_the_pods_limit_is_its_containers() {
    let (marked, ended) = ("EXITED 137 OOMKilled", "EXITED 0 Completed");
    check(PodKill::ItsContainer, marked, "RUNNING 0", ended);
    check(PodKill::Nobody, "EXITED 137 Error", "RUNNING 0", ended);
    check(
        PodKill::Everybody,
        marked,
        "RUNNING 0 OOMKilled",
        "EXITED 0 OOMKilled",
    );
    let killed = "EXITED 137 Error";
    check(PodKill::EndsAll, marked, killed, killed);
}

#[test]
fn a_kill_by_a_containers_own_limit_is_never_the_pods() {
    for pod_kill in [PodKill::Nobody, PodKill::Everybody, PodKill::EndsAll] {
        let (mut stand, hog, sibling) = pod_with_a_hog(pod_kill, Some(16));
        stand.status_is(&hog, "EXITED 137 OOMKilled");
        stand.status_is(&sibling, "RUNNING 0");
    }
}

#[test]
fn memory_is_limited_by_the_lower_limit() {
    let (stand, hog, _) = pod_with_a_hog(PodKill::default(), Some(16));
    assert_eq!(stand.machine.memory_of(&hog), Some(16 << 20));
    let (stand, hog, sibling) = pod_with_a_hog(PodKill::default(), Some(48));
    assert_eq!(stand.machine.memory_of(&hog), Some(32 << 20));
    assert_eq!(stand.machine.memory_of(&sibling), Some(32 << 20));
}
