//! The calls and events of a watcher, and their bytes.

use std::collections::BTreeSet;

use crate::history::{Body, CallId, Entry, Request, SubscriptionId};

/// The traffic of a watcher. Bytes are those of the messages, without HTTP/2 framing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) calls: u64,
    /// The bytes of their requests and replies.
    pub(super) call_bytes: u64,
    pub(super) events: u64,
    pub(super) event_bytes: u64,
    under_way: BTreeSet<CallId>,
}

impl Traffic {
    /// Adds an entry: a call of a PLEG, or an event of one of these streams.
    pub(super) fn take(&mut self, entry: &Entry, streams: &[SubscriptionId]) {
        match &entry.body {
            Body::CallBegan {
                call,
                request,
                message,
                ..
            } if is_of_pleg(request) => {
                self.under_way.insert(*call);
                self.call_bytes += message.len() as u64;
            }
            Body::CallEnded { call, message, .. } if self.under_way.remove(call) => {
                self.calls += 1;
                self.call_bytes += message.len() as u64;
            }
            Body::Event {
                subscription,
                message,
                ..
            } if streams.contains(subscription) => {
                self.events += 1;
                self.event_bytes += message.len() as u64;
            }
            _ => {}
        }
    }
}

/// Whether a PLEG makes such a call; the calls that create and remove pods are excluded.
fn is_of_pleg(request: &Request) -> bool {
    matches!(
        request,
        Request::ListSandboxes(_)
            | Request::ListContainers { .. }
            | Request::SandboxStatus(_)
            | Request::ContainerStatus(_)
    )
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::history::{ContainerId, Event, Labels, Reply, Seq};

    fn took(bodies: Vec<Body>) -> Traffic {
        let mut traffic = Traffic::default();
        for (seq, body) in (0..).zip(bodies) {
            let entry = Entry {
                seq: Seq(seq),
                at: crate::history::HostInstant::default(),
                body,
            };
            traffic.take(&entry, &[SubscriptionId(1)]);
        }
        traffic
    }

    fn began(call: u64, request: Request) -> Body {
        Body::CallBegan {
            call: CallId(call),
            case: None,
            request,
            message: Bytes::from_static(b"12345"),
        }
    }

    fn ended(call: u64) -> Body {
        Body::CallEnded {
            call: CallId(call),
            result: Ok(Reply::Sandboxes(Vec::new())),
            message: Bytes::from_static(b"1234567"),
        }
    }

    fn event(subscription: u32) -> Body {
        Body::Event {
            subscription: SubscriptionId(subscription),
            event: Event {
                container: ContainerId::from("c"),
                kind: crate::history::EventKind::Stopped,
                created_at: crate::history::RuntimeNanos(0),
                sandbox: None,
                containers: Vec::new(),
            },
            message: Bytes::from_static(b"123"),
        }
    }

    #[test]
    fn calls_of_a_pleg_count_and_those_that_make_changes_do_not() {
        let removal = Request::RemoveContainer(ContainerId::from("c"));
        let traffic = took(vec![
            began(1, Request::ListSandboxes(Labels::new())),
            began(2, removal),
            ended(2),
            ended(1),
            ended(7),
        ]);
        assert_eq!((traffic.calls, traffic.call_bytes), (1, 12));
    }

    #[test]
    fn events_of_the_watchers_own_streams_count() {
        let traffic = took(vec![event(1), event(2), event(1)]);
        assert_eq!((traffic.events, traffic.event_bytes), (2, 6));
    }
}
