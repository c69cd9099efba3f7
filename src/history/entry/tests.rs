//! The memory that entries use.

use super::*;
use crate::history::{EventKind, RuntimeNanos};

fn event(status: ContainerStatus) -> Entry {
    let event = Event {
        container: status.id.clone(),
        kind: EventKind::Started,
        created_at: RuntimeNanos(1),
        sandbox: None,
        containers: vec![status.into()],
    };
    Entry {
        seq: Seq::default(),
        at: HostInstant::default(),
        body: Body::Event {
            subscription: SubscriptionId(0),
            event,
            message: vec![0; 1 << 20].into(),
        },
    }
}

#[test]
fn long_annotations_are_dropped_and_other_long_fields_are_counted() {
    let text = "x".repeat(1 << 20);
    let annotations = Labels::from([("a".to_owned(), text.clone())]);
    let annotated = event(ContainerStatus {
        annotations,
        ..ContainerStatus::default()
    });
    assert!(annotated.approximate_bytes() > 2 << 20);
    assert!(annotated.compact().approximate_bytes() < 4 << 10);
    let named = event(ContainerStatus {
        image: Some(text.into()),
        ..ContainerStatus::default()
    });
    assert!(named.compact().approximate_bytes() > 2 << 20);
}
