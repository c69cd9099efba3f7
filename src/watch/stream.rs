//! Keeps an event stream open: opens it, reports its state, and reopens it after a pause.

use std::time::Duration;

use super::notice::Notice;
use crate::cri::{Endpoint, Subscription};
use crate::history::{HostInstant, StreamEnd, SubscriptionId};
use crate::host;
use crate::metrics::Metrics;
use crate::pleg::{Moment, Next, Policy, Reconnect, StreamFate};
use crate::recorder::Recorder;
use crate::report::span;

/// The stream, if there is one, and when to reopen it.
pub(super) struct Stream {
    endpoint: Endpoint,
    recorder: Recorder,
    metrics: Metrics,
    reconnect: Reconnect,
    open: Option<Subscription>,
    due: Option<HostInstant>,
    opened: HostInstant,
    live: bool,
    proven: bool,
}

/// The time after its request at which an open stream counts as live: an earlier relist may show
/// changes from before the subscription was effective.
const LIVE_AFTER: Duration = Duration::from_millis(500);

impl Stream {
    pub(super) fn new(endpoint: Endpoint, recorder: Recorder, metrics: Metrics) -> Self {
        Self {
            endpoint,
            recorder,
            metrics,
            reconnect: Reconnect::new(Policy::BackOff),
            open: None,
            due: Some(HostInstant::default()),
            opened: HostInstant::default(),
            live: false,
            proven: false,
        }
    }

    /// Whether this is the open subscription.
    pub(super) fn is(&self, id: SubscriptionId) -> bool {
        self.open.as_ref().is_some_and(|open| open.id() == id)
    }

    /// The time until [`Stream::open`]; `None` while it is open.
    pub(super) fn pause(&self, now: HostInstant) -> Option<Duration> {
        let due = self.due?;
        Some(due.since(now))
    }

    /// Opens the stream; returns the time of the request, if it succeeded, and the notice.
    pub(super) async fn open(&mut self) -> (Option<HostInstant>, Notice) {
        self.due = None;
        let requested = host::now();
        match Subscription::open(&self.endpoint, &self.recorder).await {
            Ok(subscription) => {
                self.reconnect.opened(moment(requested));
                self.count();
                self.open = Some(subscription);
                self.opened = requested;
                (self.live, self.proven) = (false, false);
                let detail = "the event stream is requested; its first event will prove it";
                (Some(requested), notice("opened", detail.to_owned()))
            }
            Err(fault) => (None, self.ended(StreamFate::Refused, &fault.to_string())),
        }
    }

    /// The time until the open stream counts as live; `None` if it does, or without a stream.
    pub(super) fn unproven(&self, now: HostInstant) -> Option<Duration> {
        let is_waiting = self.open.is_some() && !self.proven;
        is_waiting.then(|| LIVE_AFTER.saturating_sub(now.since(self.opened)))
    }

    /// Marks the stream as live; returns its id if it was not.
    pub(super) fn prove(&mut self) -> Option<SubscriptionId> {
        let open = self.open.as_ref()?;
        (!std::mem::replace(&mut self.proven, true)).then(|| open.id())
    }

    /// Cancels the stream and opens another one at once.
    pub(super) fn begin_anew(&mut self) {
        self.open = None;
        self.due = Some(HostInstant::default());
    }

    /// Reopens the stream without further delay, after the runtime has answered again.
    pub(super) fn reopen_now(&mut self) {
        self.reconnect.start_over();
        if self.due.is_some() {
            self.due = Some(HostInstant::default());
        }
    }

    /// Records an event; returns a notice if it is the first one.
    pub(super) fn received(&mut self, at: HostInstant) -> Option<Notice> {
        if std::mem::replace(&mut self.live, true) {
            return None;
        }
        let after = span(at.since(self.opened));
        let detail = format!("the event stream is live: the first event arrived after {after}");
        Some(notice("live", detail))
    }

    pub(super) fn stream_ended(&mut self, end: &StreamEnd) -> Notice {
        self.open = None;
        match end {
            StreamEnd::Closed => self.ended(StreamFate::Closed, "the runtime closed it with OK"),
            StreamEnd::Cancelled => self.ended(StreamFate::Closed, "it was cancelled"),
            StreamEnd::Failed(fault) => self.ended(StreamFate::Failed, &fault.to_string()),
        }
    }

    fn ended(&mut self, fate: StreamFate, why: &str) -> Notice {
        let now = host::now();
        let jitter = (uuid::Uuid::new_v4().as_u128() % 1000) as u16;
        let then = self.reconnect.ended(fate, moment(now), jitter);
        let pause = match then.next {
            Next::Open(pause) => pause,
            Next::FallBack { .. } | Next::Disable => Policy::LONGEST_PAUSE,
        };
        self.due = Some(later(now, pause));
        self.count();
        let again = if pause.is_zero() {
            "retrying at once".to_owned()
        } else {
            format!("retrying in {}", span(pause))
        };
        notice(
            "ended",
            format!("there is no event stream: {why}; {again}; {KUBELETS_GAVE_UP}"),
        )
    }

    fn count(&self) {
        let (errors, successes) = (self.reconnect.errors(), self.reconnect.successes());
        self.metrics.connections(errors, successes);
    }
}

/// The effect of a stream's end on a kubelet: measured with 1.36.2 and containerd 2.1, of which
/// one restart uses up all five retries within 0.5 ms.
pub(super) const KUBELETS_GAVE_UP: &str = "if the runtime has restarted, a kubelet up to 1.37 has \
     used up its retries and follows no events until it is restarted, too";

pub(super) fn notice(what: &'static str, detail: String) -> Notice {
    Notice::Stream { what, detail }
}

/// A notice about events that were lost in the suite.
pub(super) fn overrun(times: u64) -> Notice {
    let count = match times {
        1 => String::new(),
        _ => format!(", {times} times"),
    };
    let detail =
        format!("events arrived faster than they could be shown, and some were lost{count}");
    notice("overrun", detail)
}

fn moment(at: HostInstant) -> Moment {
    Moment::from_ns(at.realtime_ns)
}

fn later(at: HostInstant, by: Duration) -> HostInstant {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    HostInstant {
        monotonic_ns: at.monotonic_ns.saturating_add(by),
        ..at
    }
}
