//! The reference PLEGs with messages that no runtime should send: they behave like the kubelet or,
//! where it would panic, return an error. They never panic.

use std::sync::Arc;
use std::time::Duration;

use cri_event_conformance::testing::history::{
    ContainerId, ContainerListing, ContainerMetadata, ContainerState, ContainerStatus, Event,
    EventKind, PodUid, RuntimeNanos, SandboxId, SandboxListing, SandboxMetadata, SandboxReport,
    SandboxState, SandboxStatus, Shared,
};
use cri_event_conformance::testing::pleg::{
    Features, Generic, Health, Hint, InspectError, Inspection, Kubelet, KubeletPanic,
    LifecycleKind, ListedItem, Moment, POD_UID_LABEL, PodIdentity, PodList, Receipt, SharedId,
    SharedUid, State, StatusFault, Statuses, list_pods, pod_status, receive, relist_hint,
};

const NOW_NS: i64 = 1_700_000_000_000_000_000;

const POD: PodIdentity<'_> = PodIdentity {
    uid: "pod",
    name: "web",
    namespace: "default",
};

fn at(seconds: i64) -> Moment {
    Moment::from_ns(NOW_NS + seconds * 1_000_000_000)
}

fn evented() -> Kubelet {
    Kubelet::new(Features::EventedInUse, 1000)
}

fn sandbox() -> SandboxStatus {
    SandboxStatus {
        id: SandboxId::from("s"),
        metadata: Some(SandboxMetadata {
            name: "web".into(),
            uid: PodUid::from("pod"),
            namespace: "default".into(),
            attempt: 0,
        }),
        created_at: RuntimeNanos(NOW_NS),
        ..SandboxStatus::default()
    }
}

fn container(id: &str) -> ContainerStatus {
    ContainerStatus {
        id: ContainerId::from(id),
        state: ContainerState::Running,
        created_at: RuntimeNanos(NOW_NS),
        started_at: RuntimeNanos(NOW_NS),
        image: Some("image".into()),
        ..ContainerStatus::default()
    }
}

fn event(kind: EventKind) -> Event {
    Event {
        container: ContainerId::from("c"),
        kind,
        created_at: RuntimeNanos(NOW_NS),
        sandbox: Some(sandbox().into()),
        containers: vec![container("c").into()],
    }
}

fn taken(uid: &str) -> Receipt {
    Receipt::Taken(SharedUid::from(uid))
}

fn refused(uid: &str) -> Receipt {
    Receipt::Refused(SharedUid::from(uid))
}

fn one_pod(at: Moment, items: &[ListedItem<'static>]) -> PodList<'static> {
    let mut list = PodList::new(at);
    list.push(POD, items.iter().copied(), []);
    list
}

fn failure() -> Inspection {
    Err(InspectError::Failed {
        method: "PodSandboxStatus",
        id: SharedId::from("s"),
        fault: "scripted".to_owned(),
    })
}

/// A kubelet that knows the pod `pod` by an event of `NOW_NS`.
fn knowing() -> Kubelet {
    let mut kubelet = evented();
    assert_eq!(
        receive(&mut kubelet, &event(EventKind::Started)),
        Ok(taken("pod"))
    );
    kubelet.channel.drain().for_each(drop);
    kubelet
}

#[test]
fn an_event_without_a_sandbox_or_its_metadata_is_as_if_it_had_not_come() {
    for kind in [EventKind::Created, EventKind::Stopped, EventKind::Deleted] {
        let mut without_sandbox = event(kind);
        without_sandbox.sandbox = None;
        let mut without_metadata = event(kind);
        without_metadata.sandbox = Some(Shared::from(SandboxStatus {
            metadata: None,
            ..sandbox()
        }));
        for event in [without_sandbox, without_metadata] {
            let mut kubelet = knowing();
            assert_eq!(receive(&mut kubelet, &event), Ok(Receipt::Ignored));
            assert_eq!(
                (kubelet.cache.entries().len(), kubelet.channel.len()),
                (1, 0)
            );
            assert_eq!(relist_hint(&event), Hint::Ignored);
        }
    }
}

#[test]
fn an_empty_uid_is_a_pod_like_any_other() {
    let mut nameless = event(EventKind::Stopped);
    nameless.sandbox.as_mut().unwrap().metadata = Some(SandboxMetadata::default());
    let mut kubelet = evented();
    assert_eq!(receive(&mut kubelet, &nameless), Ok(taken("")));
    assert!(kubelet.cache.get("").is_some());
    assert_eq!(relist_hint(&nameless), Hint::Relist(SharedUid::from("")));
}

#[test]
fn an_event_of_an_unknown_type_is_cached_and_not_forwarded() {
    let mut kubelet = evented();
    let unknown = event(EventKind::Unknown(77));
    assert_eq!(receive(&mut kubelet, &unknown), Ok(taken("pod")));
    assert_eq!(
        (kubelet.cache.entries().len(), kubelet.channel.len()),
        (1, 0)
    );
    assert_eq!(relist_hint(&unknown), Hint::Sample);
}

#[test]
fn a_time_of_zero_or_in_seconds_is_too_old_unless_the_pod_is_new() {
    for ns in [0, NOW_NS / 1_000_000_000, i64::MIN] {
        let mut early = event(EventKind::Stopped);
        early.created_at = RuntimeNanos(ns);
        let mut kubelet = knowing();
        assert_eq!(receive(&mut kubelet, &early), Ok(refused("pod")));
        assert!(
            kubelet.channel.is_empty(),
            "a refused event is not forwarded"
        );
        let mut kubelet = evented();
        assert_eq!(receive(&mut kubelet, &early), Ok(taken("pod")));
        assert!(!kubelet.channel.is_empty(), "an accepted one is");
        assert_eq!(kubelet.cache.get("pod").unwrap().modified.ns(), ns);
    }
}

#[test]
fn a_time_in_the_future_blocks_events_and_relists_until_then() {
    let mut kubelet = evented();
    let mut future = event(EventKind::Started);
    future.created_at = RuntimeNanos(i64::MAX);
    assert_eq!(receive(&mut kubelet, &future), Ok(taken("pod")));
    assert_eq!(
        receive(&mut kubelet, &event(EventKind::Stopped)),
        Ok(refused("pod"))
    );
    kubelet.channel.drain().for_each(drop);

    let mut generic = Generic::new();
    let exited = one_pod(at(1), &[ListedItem::container("c", State::Exited, "s")]);
    let inspected = kubelet
        .cache
        .get("pod")
        .unwrap()
        .inspection
        .clone()
        .unwrap();
    for second in 1..4 {
        generic.relist(&mut kubelet, at(second), &exited);
        let mut status = (*inspected).clone();
        status.read_at = at(second);
        generic.inspected(&mut kubelet, Ok(Arc::new(status)));
        assert!(
            kubelet.channel.is_empty(),
            "the death is found, and never forwarded"
        );
        assert_eq!(generic.wanted(), None);
    }
}

#[test]
fn statuses_without_metadata_and_labels_are_nameless() {
    let mut kubelet = knowing();
    let status = kubelet.cache.get("pod").unwrap().status().unwrap().clone();
    let bare = &status.containers[0];
    assert_eq!((&*bare.name, bare.restart_count, bare.hash), ("", 0, 0));

    let mut garbled = event(EventKind::Started);
    let annotations = &mut garbled.containers[0].annotations;
    for key in ["restartCount", "hash"] {
        annotations.insert(format!("io.kubernetes.container.{key}"), "many".to_owned());
    }
    assert_eq!(
        receive(&mut kubelet, &garbled),
        Ok(taken("pod")),
        "an equal time is taken"
    );
    let status = kubelet.cache.get("pod").unwrap().status().unwrap().clone();
    assert_eq!(
        (
            status.containers[0].restart_count,
            status.containers[0].hash
        ),
        (0, 0)
    );
}

#[test]
fn what_is_listed_without_metadata_image_or_id_is_left_out() {
    let sandboxes = [SandboxListing {
        id: SandboxId::from("s"),
        metadata: None,
        state: SandboxState::Ready,
        ..SandboxListing::default()
    }];
    let whole = ContainerListing {
        id: ContainerId::from("c"),
        sandbox: SandboxId::from("s"),
        metadata: Some(ContainerMetadata::default()),
        state: ContainerState::Running,
        labels: [(POD_UID_LABEL.to_owned(), "pod".to_owned())].into(),
        image: Some("image".into()),
        ..ContainerListing::default()
    };
    let listed = |change: fn(&mut ContainerListing)| {
        let mut container = whole.clone();
        change(&mut container);
        let containers = [container];
        let list = list_pods(at(0), &sandboxes, &containers);
        list.iter()
            .map(|pod| (pod.uid.to_owned(), pod.items.len()))
            .collect::<Vec<_>>()
    };
    let pod = |items| vec![("pod".to_owned(), items)];
    assert_eq!(listed(|_| {}), pod(1));
    assert_eq!(listed(|container| container.metadata = None), []);
    assert_eq!(
        listed(|container| container.image = None),
        pod(0),
        "the pod stays"
    );
    assert_eq!(
        listed(|container| container.id = ContainerId::default()),
        pod(0)
    );
    assert_eq!(
        listed(|container| container.labels.clear()),
        [(String::new(), 1)]
    );
    // As long as the UID's key, and before it.
    let other = |container: &mut ContainerListing| {
        let key = "io.kubernetes.pod.sid".to_owned();
        container.labels.insert(key, "another".to_owned());
    };
    assert_eq!(listed(other), pod(1));
}

#[test]
fn a_status_without_an_image_would_make_the_kubelet_panic() {
    let panic = KubeletPanic::NoImage {
        container: SharedId::from("c"),
    };
    for kind in [
        EventKind::Created,
        EventKind::Deleted,
        EventKind::Unknown(9),
    ] {
        let mut imageless = event(kind);
        imageless.containers[0].image = None;
        let mut kubelet = knowing();
        let before = (kubelet.cache.entries().len(), kubelet.gauges.clone());
        assert_eq!(receive(&mut kubelet, &imageless), Err(panic.clone()));
        assert_eq!(
            (kubelet.cache.entries().len(), kubelet.gauges.clone()),
            before
        );
        assert!(kubelet.channel.is_empty());
    }
    let runtime = Answers(ContainerStatus {
        image: None,
        ..container("c")
    });
    // It converts each answer before it asks for the next one.
    let [imageless, failing] =
        ["c", "failing"].map(|id| ListedItem::container(id, State::Running, "s"));
    let list = one_pod(at(0), &[imageless, failing]);
    let inspection = pod_status(&list.pod(0).unwrap(), false, at(0), &runtime);
    assert_eq!(inspection, Err(InspectError::Panic(panic)));
    let list = one_pod(at(0), &[failing, imageless]);
    let inspection = pod_status(&list.pod(0).unwrap(), false, at(0), &runtime);
    assert!(matches!(inspection, Err(InspectError::Failed { .. })));
}

#[test]
fn an_event_after_a_failed_inspection_would_make_the_kubelet_panic() {
    let (mut kubelet, mut generic) = (evented(), Generic::new());
    let list = one_pod(at(0), &[ListedItem::container("c", State::Running, "s")]);
    generic.relist(&mut kubelet, at(0), &list);
    generic.inspected(&mut kubelet, failure());
    for kind in [EventKind::Started, EventKind::Deleted] {
        let panic = KubeletPanic::EventAfterFailedInspection {
            pod: SharedUid::from("pod"),
        };
        assert_eq!(receive(&mut kubelet, &event(kind)), Err(panic));
        assert!(kubelet.cache.get("pod").unwrap().error().is_some());
    }
}

#[test]
fn a_failed_inspection_holds_events_back_until_one_succeeds() {
    let mut kubelet = Kubelet::new(Features::Generic, 1000);
    let mut generic = Generic::new();
    let list = one_pod(at(0), &[ListedItem::container("c", State::Running, "s")]);
    for second in 0..3 {
        generic.relist(&mut kubelet, at(second), &list);
        generic.inspected(&mut kubelet, failure());
        assert!(kubelet.channel.is_empty());
    }
    generic.relist(&mut kubelet, at(3), &list);
    let runtime = Answers(container("c"));
    let status = pod_status(&list.pod(0).unwrap(), false, at(3), &runtime).unwrap();
    generic.inspected(&mut kubelet, Ok(Arc::new(status)));
    assert_eq!(
        kubelet.channel.receive().unwrap().kind,
        LifecycleKind::ContainerStarted
    );
    assert_eq!(generic.inspection_requests().len(), 0);
}

#[test]
fn ten_thousand_containers_in_one_pod_are_compared_in_linear_time() {
    let ids: Vec<String> = (0..10_000).map(|number| format!("{number:064}")).collect();
    let mut kubelet = Kubelet::new(Features::Generic, 15_000);
    let mut generic = Generic::new();
    let status = Arc::new(
        pod_status(
            &one_pod(at(0), &[]).pod(0).unwrap(),
            false,
            at(0),
            &Answers(container("c")),
        )
        .unwrap(),
    );
    for state in [State::Running, State::Exited] {
        let mut list = PodList::new(at(0));
        // The order turns around, so that no place can be guessed.
        let turned: Vec<_> = match state {
            State::Running => ids.iter().collect(),
            _ => ids.iter().rev().collect(),
        };
        let turned = turned.iter();
        let items = turned.map(|id| ListedItem::container(id, state, "s"));
        list.push(POD, items, []);
        generic.relist(&mut kubelet, at(0), &list);
        generic.inspected(&mut kubelet, Ok(status.clone()));
    }
    assert_eq!(
        (kubelet.channel.len(), kubelet.channel.discarded()),
        (15_000, 5_000)
    );
    let first = kubelet.channel.drain().nth(10_000).unwrap();
    assert_eq!(first.kind, LifecycleKind::ContainerDied);
    assert_eq!(
        first.container.unwrap().as_str(),
        ids[0],
        "the old order counts"
    );
}

#[test]
fn a_list_that_fails_half_way_changes_nothing_until_the_node_is_unhealthy() {
    let mut kubelet = Kubelet::new(Features::Generic, 1000);
    let mut generic = Generic::new();
    assert_eq!(
        generic.health(at(0), Generic::THRESHOLD),
        Health::NeverRelisted
    );
    let list = one_pod(at(0), &[ListedItem::container("c", State::Running, "s")]);
    generic.relist(&mut kubelet, at(0), &list);
    generic.inspected(&mut kubelet, failure());
    // A partial list cannot be recognized; the interval is sampled nevertheless.
    assert_eq!(generic.interval(at(180)), Some(Duration::from_secs(180)));
    assert_eq!(generic.relisted_at(), Some(at(0)));
    assert_eq!(kubelet.cache.global(), Some(at(0)));
    assert!(generic.health(at(180), Generic::THRESHOLD).is_healthy());
    assert!(!generic.health(at(181), Generic::THRESHOLD).is_healthy());
}

#[test]
fn a_relist_before_all_are_inspected_finds_the_others_again() {
    let mut kubelet = Kubelet::new(Features::Generic, 1000);
    let mut generic = Generic::new();
    let list = one_pod(at(0), &[ListedItem::container("c", State::Running, "s")]);
    generic.request_inspection("pod");
    for second in 0..3 {
        generic.relist(&mut kubelet, at(second), &list);
        assert_eq!(generic.all_wanted().len(), 1);
        assert_eq!(kubelet.cache.global(), None, "no relist has ended");
    }
    generic.relist_pod(&mut kubelet, "other", &list);
    assert_eq!(
        (generic.wanted(), generic.inspection_requests().len()),
        (None, 1)
    );
    generic.inspected(&mut kubelet, failure());
    assert!(
        kubelet.cache.entries().is_empty(),
        "an answer that nobody wants is nothing"
    );
    generic.relist_pod(&mut kubelet, "pod", &list);
    generic.inspected(&mut kubelet, failure());
    assert_eq!(
        kubelet.cache.global(),
        None,
        "a relist of one pod is not one of all"
    );
}

#[test]
fn a_request_to_relist_one_pod_is_served_by_a_later_relist_of_all_pods() {
    let mut kubelet = Kubelet::new(Features::Generic, 1000);
    let mut generic = Generic::new();
    let due = |generic: &Generic| [4, 5, 6].map(|second| generic.is_due(at(second)));
    generic.relist(&mut kubelet, at(5), &one_pod(at(5), &[]));
    assert_eq!(due(&generic), [false, false, true]);
}

#[test]
fn of_a_uid_or_an_id_that_comes_twice_one_counts() {
    let mut kubelet = Kubelet::new(Features::Generic, 1000);
    let mut generic = Generic::new();
    let mut list = one_pod(at(0), &[]);
    let running = ListedItem::container("c", State::Running, "s");
    let exited = ListedItem::sandbox("c", State::Exited);
    list.push(POD, [running, running], [exited]);
    let runtime = Answers(container("c"));
    generic.relist(&mut kubelet, at(0), &list);
    assert_eq!(generic.wanted().unwrap().index, 1, "the later pod");
    let status = pod_status(&list.pod(1).unwrap(), false, at(0), &runtime).unwrap();
    generic.inspected(&mut kubelet, Ok(Arc::new(status)));
    let kinds: Vec<_> = kubelet.channel.drain().map(|event| event.kind).collect();
    assert_eq!(kinds, [LifecycleKind::ContainerStarted], "the first item");
}

/// A runtime with one container, another that it cannot inspect, and no sandboxes.
struct Answers(ContainerStatus);

impl Statuses for Answers {
    fn sandbox(&self, _id: &str) -> Result<&SandboxReport, StatusFault> {
        Err(StatusFault::NotFound)
    }

    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault> {
        if id == "failing" {
            return Err(StatusFault::Failed("it failed".to_owned()));
        }
        Ok(&self.0)
    }
}

#[test]
fn of_an_id_that_comes_twice_among_many_the_first_counts() {
    let mut kubelet = Kubelet::new(Features::Generic, 1000);
    let mut generic = Generic::new();
    let ids: Vec<String> = (0..40).map(|number| format!("c{number}")).collect();
    let mut list = PodList::new(at(0));
    let seen = ids.iter();
    let running = seen.map(|id| ListedItem::container(id, State::Running, "s"));
    let exited = ids.iter().map(|id| ListedItem::sandbox(id, State::Exited));
    list.push(POD, running, exited);
    generic.relist(&mut kubelet, at(0), &list);
    let status = pod_status(
        &one_pod(at(0), &[]).pod(0).unwrap(),
        false,
        at(0),
        &Answers(container("c")),
    )
    .unwrap();
    generic.inspected(&mut kubelet, Ok(Arc::new(status)));
    let kinds: Vec<_> = kubelet.channel.drain().map(|event| event.kind).collect();
    assert_eq!(kinds, [LifecycleKind::ContainerStarted; 40]);
}
