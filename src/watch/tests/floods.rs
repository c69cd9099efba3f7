//! Objects, texts and events without end: what a watch keeps of them has a limit.

use super::super::notice::Notice;
use super::super::observer::Observer;
use super::node::{Node, at, nanos};
use super::started;
use crate::history::{ContainerId, Event, EventKind, PodUid, SandboxMetadata};
use crate::limits;
use crate::outcome::{Profile, WatchTotals};

#[test]
fn ids_without_end_are_shown_and_not_followed() {
    let mut observer = Observer::new(at(0), Profile::Cache);
    observer.opened(at(0), false);
    let mut event = Event {
        container: ContainerId::from(String::new()),
        kind: EventKind::Started,
        created_at: nanos(1000),
        sandbox: None,
        containers: Vec::new(),
    };
    let mut evented = |id: &str, bytes| {
        event.container = ContainerId::from(id);
        match observer.event(at(1000), &event, bytes) {
            Notice::Event(seen) => seen.evented,
            other => panic!("{other:?}"),
        }
    };
    let [longest, too_long] = [0, 1].map(|more| "x".repeat(limits::WATCHED_NAME + more));
    assert_eq!(evented(&longest, 0), "ignored");
    assert_eq!(evented(&too_long, 0), "unfollowed");
    assert_eq!(evented("0", limits::WATCHED_BYTES), "ignored");
    assert_eq!(evented("0", limits::WATCHED_BYTES + 1), "unfollowed");
    assert!((2..limits::WATCHED).all(|id| evented(&id.to_string(), 0) == "ignored"));
    assert_eq!(evented("new", 0), "unfollowed");
    assert_eq!(evented("2", 0), "ignored");
    (0..100).for_each(|number| {
        event.kind = EventKind::Unknown(number);
        observer.event(at(1000), &event, 0);
    });
    let events = observer.summary(at(0), &WatchTotals::default()).events;
    assert_eq!(events["STARTED"], limits::WATCHED as u64 + 4);
    assert_eq!(events["UNKNOWN"], 100);
}

#[test]
fn pods_share_the_evented_caches_bytes() {
    let mut observer = Observer::new(at(0), Profile::Cache);
    observer.opened(at(0), false);
    let mut evented = |uid: &str, bytes| {
        let event = of_pod(uid, "c");
        match observer.event(at(1000), &event, bytes) {
            Notice::Event(seen) => seen.evented,
            other => panic!("{other:?}"),
        }
    };
    let half = limits::WATCHED_BYTES / 2;
    assert_eq!(evented("a", half), "taken");
    assert_eq!(evented("b", half), "taken");
    assert_eq!(evented("c", 1), "unfollowed");
    assert_eq!(evented("a", 1), "taken", "it replaces the one before");
    assert_eq!(evented("c", 1), "taken");
}

/// A STARTED of a pod with this UID.
fn of_pod(uid: &str, container: &str) -> Event {
    let mut event = started(container, None);
    let sandbox = event.sandbox.as_mut().expect("it has one");
    sandbox.metadata = Some(SandboxMetadata {
        uid: PodUid::from(uid),
        ..SandboxMetadata::default()
    });
    event
}

#[test]
fn a_flood_is_judged_in_parts_while_no_call_ends() {
    let mut node = Node::new();
    node.relist(100);
    let parts = 3;
    for number in 0..=parts * limits::WATCH_POD_ENTRIES {
        node.arrives(1000, of_pod("u", &number.to_string()));
    }
    node.arrives(1000, of_pod("u", &"x".repeat(limits::WATCHED_NAME + 1)));
    // Events that show nothing new, which are not kept.
    for number in 0..2 * limits::WATCH_POD_ENTRIES {
        let mut event = of_pod("v", "c");
        event.kind = EventKind::Unknown(9 + i32::try_from(number).unwrap());
        node.arrives(1000, event);
    }
    let report = node.verdicts.report(None);
    let judged = report.watch.expect("it is a watch").judged;
    assert_eq!(judged, parts as u64 + 2);
    let left_out = "1 events were not tracked, with ids or names of more than 256 bytes; the first \
                    0.0 s before the end";
    assert!(
        report.faults.contains(&left_out.to_owned()),
        "{:?}",
        report.faults
    );
}
