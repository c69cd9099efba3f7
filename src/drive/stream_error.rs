//! Why the event stream cannot be relied on, in words that a user can act on.

use std::time::Duration;

use crate::cri::ConnectError;
use crate::escape::printable;
use crate::history::{CallFault, StatusCode, StreamEnd};
use crate::recorder::Overrun;

/// Why the event stream cannot be relied on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("open the event stream: {0}")]
    Connect(#[from] ConnectError),
    /// The marker pod cannot be made, or no marker in it.
    #[error("{method} for the marker that proves the event stream: {fault}{}", image_advice(.fault))]
    Marker {
        method: &'static str,
        fault: CallFault,
    },
    #[error(
        "the runtime has no event stream: it answered GetContainerEvents with UNIMPLEMENTED ({0}). \
         containerd has it since 1.7, CRI-O since 1.26"
    )]
    Unimplemented(String),
    /// The runtime has the call, and is not set up for it.
    #[error("container events are switched off: the runtime refused the event stream ({0})")]
    Refused(String),
    /// The runtime ended the stream with OK before it sent anything.
    #[error(
        "container events are switched off: the runtime ended the event stream with OK, without \
         an event. For CRI-O set `enable_pod_events = true` under [crio.runtime] and restart it"
    )]
    Disabled,
    #[error("the runtime ended the event stream, with status OK")]
    Closed,
    #[error("the event stream ended: {0}")]
    Ended(String),
    #[error(
        "no event has come within {0:?} though containers were created meanwhile: the event stream \
         is open and silent"
    )]
    Silent(Duration),
    /// The stream brings events of foreign objects, and none of the suite's.
    #[error(
        "no event of the suite's own containers has come within {within:?} though some \
         were created meanwhile: the event stream is open, and has brought {others} other events"
    )]
    OthersAlone {
        /// How long it was waited.
        within: Duration,
        others: u64,
    },
    /// The history overflowed.
    #[error(transparent)]
    Overrun(#[from] Overrun),
    #[error("interrupted")]
    Interrupted,
}

impl StreamError {
    /// Whether a runtime that answers has refused a marker.
    pub(super) fn is_refused_marker(&self) -> bool {
        let gone = [StatusCode::UNAVAILABLE, StatusCode::DEADLINE_EXCEEDED];
        matches!(self, Self::Marker { fault, .. } if !gone.contains(&fault.code))
    }

    /// Whether the runtime has no events to offer, or none any more until it is set up otherwise.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Disabled | Self::Unimplemented(_) | Self::Refused(_)
        )
    }

    /// The error for a stream without a marker's event and with so many other events.
    pub(super) fn silent(within: Duration, others: u64) -> Self {
        match others {
            0 => Self::Silent(within),
            others => Self::OthersAlone { within, others },
        }
    }

    /// The error for the end of a first stream that has not brought an event.
    pub fn of_the_first(end: &StreamEnd) -> Self {
        stream_ended(end).at_opening()
    }

    /// The error for a stream that ends with OK before its first event.
    pub(super) fn at_opening(self) -> Self {
        match self {
            Self::Closed => Self::Disabled,
            other => other,
        }
    }
}

/// Advice for a runtime that lacks the image of sandboxes, as without internet: the suite's image
/// can replace it. containerd and CRI-O name the image in quotes.
fn image_advice(fault: &CallFault) -> String {
    let Some((_, named)) = fault.message.split_once("sandbox image \"") else {
        return String::new();
    };
    let image = named.split('"').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./:_@-".contains(c);
    if image.is_empty() || !image.chars().all(is_plain) {
        return String::new();
    }
    format!(
        "\nThe runtime lacks its own sandbox image, and the suite's can stand for it:\n  \
         cri-event-conformance image --format docker-archive --tag {image} --output pause.tar\n  \
         ctr --namespace k8s.io images import pause.tar"
    )
}

/// The error for the end of a stream that should stay open.
pub(super) fn stream_ended(end: &StreamEnd) -> StreamError {
    match end {
        StreamEnd::Closed => StreamError::Closed,
        StreamEnd::Cancelled => StreamError::Interrupted,
        StreamEnd::Failed(fault) if fault.code == StatusCode::UNIMPLEMENTED => {
            StreamError::Unimplemented(printable(&fault.message).into_owned())
        }
        StreamEnd::Failed(fault) if fault.code == StatusCode::FAILED_PRECONDITION => {
            StreamError::Refused(printable(&fault.message).into_owned())
        }
        StreamEnd::Failed(fault) => StreamError::Ended(fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn failed(code: StatusCode) -> StreamError {
        let message = "no".to_owned();
        let deadline = Duration::ZERO;
        StreamError::of_the_first(&StreamEnd::Failed(CallFault {
            code,
            message,
            deadline,
        }))
    }

    #[test]
    fn where_the_sandbox_image_is_missing_another_is_named() {
        let text = |message: &str| {
            let fault = CallFault {
                code: StatusCode::UNKNOWN,
                message: message.to_owned(),
                deadline: Duration::ZERO,
            };
            let method = "RunPodSandbox";
            StreamError::Marker { method, fault }.to_string()
        };
        let missing = text("failed to get sandbox image \"registry.k8s.io/pause:3.10\": no route");
        assert!(
            missing.contains("--tag registry.k8s.io/pause:3.10 --output pause.tar"),
            "{missing}"
        );
        for other in ["failed to make a sandbox", "sandbox image \"$(reboot)\""] {
            assert!(!text(other).contains("--tag"), "{other}");
        }
    }

    #[test]
    fn only_missing_events_are_a_refusal() {
        assert!(StreamError::of_the_first(&StreamEnd::Closed).is_refusal());
        assert!(failed(StatusCode::UNIMPLEMENTED).is_refusal());
        assert!(failed(StatusCode::FAILED_PRECONDITION).is_refusal());
        assert!(!failed(StatusCode::UNAVAILABLE).is_refusal());
        assert!(!stream_ended(&StreamEnd::Closed).is_refusal());
    }
}
