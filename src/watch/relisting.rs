//! The duration of the relist under way.

use std::time::Duration;

use super::notice::Notice;
use super::stream::notice;
use crate::history::{Body, CallId, Entry, HostInstant, Request};
use crate::limits;

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

impl RelistUnderWay {
    pub(super) fn look_at(&mut self, entry: &Entry) {
        match &entry.body {
            Body::CallBegan {
                call,
                case: None,
                request,
                ..
            } => {
                if matches!(request, Request::ListSandboxes(_)) {
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
