//! Listening for a time in which nothing may come.

use tokio::time::Instant;

use super::{Abort, Effect, StepContext};
use crate::case::StaysSilentStep;
use crate::history::{Body, PodUid, StreamEnd};

impl Effect for StaysSilentStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        // The last event of a marker may come when what it proves has been taken for proven.
        let marker = ctx.session().marker_uid().await;
        let mut reader = ctx.session().recorder().reader();
        ctx.take(&self.steps).await?;
        // The time is the requirement.
        let deadline = Instant::now() + self.time;
        let is_over = loop {
            let news = reader
                .drain()
                .map_err(|fault| Abort::Error(fault.to_string()))?;
            let marker = marker.as_ref();
            if news.iter().any(|entry| disturbs(&entry.body, marker)) {
                break false;
            }
            tokio::select! {
                () = reader.changed() => {}
                () = tokio::time::sleep_until(deadline) => break true,
                () = ctx.session().stop().cancelled() => return Err(Abort::interrupted()),
            }
        };
        let wanted = format!("the end of {:?} without an event", self.time);
        ctx.case.waits.record(wanted, is_over, self.time);
        if is_over { Ok(()) } else { Err(Abort::Unmet) }
    }
}

/// Whether something breaks the silence: any event but those of the marker pod, and the end of a
/// stream that the suite has not given up.
fn disturbs(body: &Body, marker: Option<&PodUid>) -> bool {
    match body {
        Body::Event { event, .. } => marker.is_none() || event.pod_uid() != marker,
        Body::SubscriptionEnded { end, .. } => *end != StreamEnd::Cancelled,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::history::{
        ContainerId, Event, EventKind, RuntimeNanos, SandboxId, SandboxMetadata, SandboxStatus,
        SubscriptionId,
    };

    /// An event of a pod, or one without a sandbox.
    fn event(uid: Option<&str>) -> Body {
        let sandbox = uid.map(|uid| SandboxStatus {
            id: SandboxId::from("s"),
            metadata: Some(SandboxMetadata {
                uid: PodUid::from(uid),
                ..SandboxMetadata::default()
            }),
            created_at: RuntimeNanos(1),
            ..SandboxStatus::default()
        });
        Body::Event {
            subscription: SubscriptionId(0),
            event: Event {
                container: ContainerId::from("c"),
                kind: EventKind::Deleted,
                created_at: RuntimeNanos(2),
                sandbox: sandbox.map(Into::into),
                containers: Vec::new(),
            },
            message: Bytes::new(),
        }
    }

    #[test]
    fn the_last_event_of_a_marker_disturbs_nothing() {
        let marker = PodUid::from("marker");
        assert!(!disturbs(&event(Some("marker")), Some(&marker)));
        assert!(disturbs(&event(Some("other")), Some(&marker)));
        assert!(disturbs(&event(None), Some(&marker)));
        assert!(disturbs(&event(Some("marker")), None));
        assert!(disturbs(&event(None), None));
    }

    #[test]
    fn the_end_of_a_stream_disturbs_unless_it_is_ours() {
        let ended = |end| Body::SubscriptionEnded {
            subscription: SubscriptionId(0),
            end,
        };
        assert!(!disturbs(&ended(StreamEnd::Cancelled), None));
        assert!(disturbs(&ended(StreamEnd::Closed), None));
        let subscription = SubscriptionId(0);
        assert!(!disturbs(&Body::SubscriptionProven { subscription }, None));
    }
}
