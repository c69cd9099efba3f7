//! Keeps an event stream open: opens it, reports its state, and reopens it after a pause. Reports
//! relists that take long, and repeated occurrences once per second.

use std::time::Duration;

use super::notice::Notice;
use crate::cri::{Endpoint, Subscription};
use crate::history::{Body, CallId, Entry, HostInstant, Request, StreamEnd, SubscriptionId};
use crate::metrics::Metrics;
use crate::pleg::{Moment, Next, Policy, Reconnect, StreamFate};
use crate::recorder::Recorder;
use crate::report::{nanos, span};
use crate::{host, limits};

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

/// The result of the last relist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relisting {
    NotYet,
    Works,
    Fails,
}

/// The relist under way, from its calls, which are sequential.
#[derive(Debug, Default)]
pub(super) struct RelistUnderWay {
    began: Option<HostInstant>,
    ended: HostInstant,
    call: Option<(CallId, &'static str, HostInstant)>,
    /// Whether relists were reported as late, and none has been in time since.
    is_late: bool,
}

/// The minimum interval between two reports.
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throttle {
    unreported: u64,
    reported: Option<HostInstant>,
}

/// The effect of a stream's end on a kubelet: measured with 1.36.2 and containerd 2.1, of which
/// one restart uses up all five retries within 0.5 ms.
pub(super) const KUBELETS_GAVE_UP: &str = "if the runtime has restarted, a kubelet up to 1.37 has \
     used up its retries and follows no events until it is restarted, too";

pub(super) fn notice(what: &'static str, detail: String) -> Notice {
    Notice::Stream { what, detail }
}

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

impl RelistUnderWay {
    pub(super) fn look_at(&mut self, entry: &Entry) {
        match &entry.body {
            Body::CallBegan {
                call,
                case: None,
                request,
                ..
            } => {
                if matches!(request, Request::ListSandboxes { .. }) {
                    let last = self.began.replace(entry.at);
                    let took = last.map(|began| self.ended.since(began));
                    self.is_late &= took.is_some_and(|took| took > limits::LATE_RELIST);
                }
                self.call = Some((*call, request.method(), entry.at));
            }
            Body::CallEnded { call, .. } if self.call.is_some_and(|(of, ..)| of == *call) => {
                (self.call, self.ended) = (None, entry.at);
            }
            _ => {}
        }
    }

    /// The time until the relist is late; `None` without a relist, or if it was already reported.
    pub(super) fn late_in(&self, now: HostInstant) -> Option<Duration> {
        let began = self
            .began
            .filter(|_| self.call.is_some() && !self.is_late)?;
        Some(limits::LATE_RELIST.saturating_sub(now.since(began)))
    }

    /// Reports that the relist is late, and in which call.
    pub(super) fn late(&mut self, now: HostInstant) -> Option<Notice> {
        let (began, (_, method, asked)) = self.began.zip(self.call)?;
        self.is_late = true;
        let [all, call] = [began, asked].map(|since| now.since(since).as_secs_f64());
        let detail = format!(
            "the relist has taken {all:.1} s so far: {method} has not answered for {call:.1} s; a \
             kubelet gives it up after 2 minutes, and its node is not ready after 3 minutes"
        );
        Some(notice("relist-late", detail))
    }
}

impl Throttle {
    /// Counts an occurrence. Returns the number since the last report, if one is due.
    pub(super) fn happened(&mut self, now: HostInstant) -> Option<u64> {
        self.unreported += 1;
        self.due(now)
    }

    /// The number of occurrences since the last report, if there are any and a report is due.
    pub(super) fn due(&mut self, now: HostInstant) -> Option<u64> {
        let is_due = self
            .reported
            .is_none_or(|reported| now.since(reported) >= PERIOD);
        if self.unreported == 0 || !is_due {
            return None;
        }
        self.reported = Some(now);
        Some(std::mem::take(&mut self.unreported))
    }
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
    HostInstant {
        monotonic_ns: at.monotonic_ns.saturating_add(nanos(by)),
        ..at
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::history::{ContainerId, Labels, Reply, Seq};

    fn at(ms: u64) -> HostInstant {
        HostInstant {
            monotonic_ns: ms * 1_000_000,
            ..HostInstant::default()
        }
    }

    #[test]
    fn it_is_said_at_once_and_then_once_a_second() {
        let mut repeated = Throttle::default();
        assert_eq!(repeated.due(at(0)), None);
        assert_eq!(repeated.happened(at(1)), Some(1));
        for ms in 2..1000 {
            assert_eq!(repeated.happened(at(ms)), None);
        }
        assert_eq!(repeated.happened(at(1001)), Some(999));
        assert_eq!(repeated.due(at(5000)), None);
        assert_eq!(repeated.happened(at(5001)), Some(1));
    }

    /// The lines for calls that begin and end at these seconds: `+` a list of sandboxes, the first
    /// call of a relist; `?` a status of a container; `-` the end of either.
    fn late_lines(calls: &str) -> Vec<String> {
        let mut under_way = RelistUnderWay::default();
        let (mut lines, mut now, mut call) = (Vec::new(), at(0), CallId(0));
        for (seq, word) in (1..).zip(calls.split_whitespace()) {
            let (kind, second) = word.split_at(1);
            let then = at(second.parse::<u64>().unwrap() * 1000);
            // The loop wakes when the relist is late.
            let late = under_way.late_in(now).map(|left| later(now, left));
            if let Some(Notice::Stream { detail, .. }) = late
                .filter(|late| *late <= then)
                .and_then(|late| under_way.late(late))
            {
                lines.push(detail.split(';').next().unwrap().to_owned());
            }
            let request = match kind {
                "+" => Some(Request::sandboxes(Labels::new())),
                "?" => Some(Request::ContainerStatus(ContainerId::from("c"))),
                _ => None,
            };
            let (message, result) = (Bytes::new(), Ok(Reply::Sandboxes(Vec::new())));
            let body = if let Some(request) = request {
                call = CallId(seq);
                let case = None;
                Body::CallBegan {
                    call,
                    case,
                    request,
                    message,
                }
            } else {
                Body::CallEnded {
                    call,
                    result,
                    message,
                }
            };
            under_way.look_at(&Entry {
                seq: Seq(seq),
                at: then,
                body,
            });
            now = then;
        }
        lines
    }

    #[test]
    fn a_late_relist_is_reported_once_with_its_call() {
        let hangs =
            "the relist has taken 10.0 s so far: ContainerStatus has not answered for 9.0 s";
        assert_eq!(late_lines("+0 -1 ?1 -60"), [hangs]);
        let next_too = "+0 -1 ?1 -60 +61 -62 ?62 -90";
        assert_eq!(late_lines(next_too), [hangs]);
        let works_between = "+0 -1 ?1 -60 +61 -62 +63 -64 ?64 -90";
        assert_eq!(late_lines(works_between), [hangs, hangs]);
        assert_eq!(late_lines("+0 -6 +7 -13 ?13 -16"), [""; 0]);
        let list = "the relist has taken 10.0 s so far: ListPodSandbox has not answered for 10.0 s";
        assert_eq!(late_lines("+0 -11"), [list]);
    }
}
