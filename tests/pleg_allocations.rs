//! Allocations of the reference PLEGs: none without changes, and few for an idle pod.

#[path = "../benches/pleg/world.rs"]
mod world;

use allocation_counter::{AllocationInfo, measure};
use cri_event_conformance::testing::history::EventKind;
use cri_event_conformance::testing::pleg::{
    Features, ListedItem, Moment, PodIdentity, PodList, State, receive,
};
use world::{Node, World, flipped};

/// A relist of this many pods after a first one.
fn second_relist(pods: usize) -> AllocationInfo {
    let world = World::new(pods);
    let list = world.list();
    let statuses = world.statuses(&list);
    let mut node = Node::new(Features::Generic);
    node.relist(&list, &statuses);
    measure(|| {
        assert_eq!(node.relist(&list, &statuses), 0);
    })
}

#[test]
fn a_relist_in_which_nothing_changed_allocates_nothing() {
    for pods in [0, 1, 100, 5000] {
        assert_eq!(second_relist(pods).count_total, 0, "{pods} pods");
    }
}

#[test]
fn a_conversion_allocates_in_proportion_to_the_pods() {
    for pods in [100, 5000] {
        let world = World::new(pods);
        let mut node = Node::new(Features::Generic);
        node.relist_cri(&world);
        let info = measure(|| {
            assert_eq!(node.relist_cri(&world), 0);
        });
        let most = 3 * u64::try_from(pods).expect("it is small");
        assert!(info.count_total < most, "{info:?}");
    }
}

#[test]
fn an_idle_pod_takes_less_than_a_kibibyte_beside_its_status() {
    for pods in [1000, 5000] {
        let world = World::new(pods);
        let list = world.list();
        let statuses = world.statuses(&list);
        let mut node = Node::new(Features::Generic);
        let info = measure(|| {
            node.relist(&list, &statuses);
        });
        let each = info.bytes_current / i64::try_from(pods).expect("it is small");
        assert!(each < 1024, "{each} bytes a pod, of {pods} pods");
    }
}

#[test]
fn the_deletion_of_a_container_converts_nothing() {
    let mut node = Node::new(Features::EventedInUse);
    let started = World::event(EventKind::Started);
    receive(&mut node.kubelet, &started).unwrap();
    let deleted = World::event(EventKind::Deleted);
    let info = measure(|| {
        receive(&mut node.kubelet, &deleted).unwrap();
    });
    assert!(info.count_total <= 3, "{info:?}");
}

#[test]
fn a_relist_allocates_in_proportion_to_what_changed() {
    let world = World::new(5000);
    let running = world.list();
    let statuses = world.statuses(&running);
    let other = flipped(&running, 10);
    let mut node = Node::new(Features::Generic);
    node.relist(&running, &statuses);
    let info = measure(|| {
        assert_eq!(node.relist(&other, &statuses), 1000);
    });
    assert!(info.count_total < 7 * 1000, "{info:?}");
}

#[test]
fn a_conversion_sees_what_changed() {
    let mut world = World::new(100);
    let mut node = Node::new(Features::Generic);
    node.relist_cri(&world);
    for _ in 0..2 {
        world.flip(10);
        assert_eq!(node.relist_cri(&world), 20);
    }
}

#[test]
fn pods_that_come_and_go_leave_no_memory_behind() {
    let world = World::new(1);
    let status = world.statuses(&world.list());
    let mut node = Node::new(Features::Generic);
    let mut churn = |pods: std::ops::Range<usize>| {
        for uid in pods.map(|pod| format!("{pod:04}")) {
            let mut list = PodList::new(Moment::from_ns(0));
            list.push(
                PodIdentity {
                    uid: &uid,
                    name: "",
                    namespace: "",
                },
                [],
                [ListedItem::sandbox("s", State::Running)],
            );
            node.relist(&list, &status);
        }
    };
    churn(0..100);
    let info = measure(|| churn(100..1000));
    assert!(info.bytes_current <= 64, "{info:?}");
}
