//! Entries in the types of the format, and back. Every entry has a place there, so that writing
//! cannot fail; reading fails where a message lacks what its entry cannot do without.

use std::sync::Arc;
use std::time::Duration;

use super::{calls, run, wire};
use crate::history::messages::{ReplyError, RequestError};
use crate::history::{
    Body, CallFault, CaseRun, ContainerId, Entry, HostFact, HostInstant, Observer, Resource, Seq,
    StatusCode, StepsEnd, StreamEnd, SubscriptionId, Took,
};

/// Why an entry cannot be read.
#[derive(Clone, Debug)]
pub(super) enum Unreadable {
    /// It lacks this.
    Absent(&'static str),
    /// The message of the CRI in it does not follow protobuf's rules.
    Malformed(prost::DecodeError),
}

impl From<prost::DecodeError> for Unreadable {
    fn from(fault: prost::DecodeError) -> Self {
        Self::Malformed(fault)
    }
}

impl From<RequestError> for Unreadable {
    fn from(fault: RequestError) -> Self {
        match fault {
            RequestError::Undecodable(fault) => Self::Malformed(fault),
            RequestError::Lacks(what) => Self::Absent(what),
            RequestError::UnknownMethod => Self::Absent("method"),
        }
    }
}

impl From<ReplyError> for Unreadable {
    fn from(fault: ReplyError) -> Self {
        match fault {
            ReplyError::Undecodable(fault) => Self::Malformed(fault),
            ReplyError::NoStatus(_) => Self::Absent("status"),
            ReplyError::TooLong { .. } | ReplyError::Unasked(_) => Self::Absent("list"),
            ReplyError::UnknownResponse => Self::Absent("response"),
        }
    }
}

pub(super) fn to_wire(entry: &Entry) -> wire::Entry {
    wire::Entry {
        seq: entry.seq.0,
        monotonic_ns: entry.at.monotonic_ns,
        realtime_ns: entry.at.realtime_ns,
        body: Some(body_to_wire(&entry.body)),
    }
}

pub(super) fn from_wire(entry: wire::Entry) -> Result<Entry, Unreadable> {
    Ok(Entry {
        seq: Seq(entry.seq),
        at: HostInstant {
            monotonic_ns: entry.monotonic_ns,
            realtime_ns: entry.realtime_ns,
        },
        body: body_from_wire(entry.body.ok_or(Unreadable::Absent("body"))?)?,
    })
}

fn body_to_wire(body: &Body) -> wire::entry::Body {
    use wire::entry::Body as To;
    match body {
        Body::RunBegan(info) => To::RunBegan(run::began_to_wire(info)),
        Body::RunPlanned(plan) => To::RunPlanned(run::planned_to_wire(plan)),
        Body::RunEnded(end) => To::RunEnded(run::ended_to_wire(end)),
        Body::CallBegan {
            call,
            case,
            request,
            message,
        } => To::CallBegan(calls::began_to_wire(*call, *case, request, message)),
        Body::CallEnded {
            call,
            result,
            message,
        } => To::CallEnded(calls::ended_to_wire(*call, result, message)),
        Body::Event {
            subscription,
            event,
            message,
        } => To::Event(calls::event_to_wire(*subscription, event, message)),
        Body::SubscriptionOpened { .. }
        | Body::SubscriptionAnswered { .. }
        | Body::SubscriptionProven { .. }
        | Body::SubscriptionEnded { .. } => subscription_to_wire(body),
        _ => case_to_wire(body),
    }
}

fn body_from_wire(body: wire::entry::Body) -> Result<Body, Unreadable> {
    use wire::entry::Body as From;
    Ok(match body {
        From::RunBegan(run) => Body::RunBegan(Arc::new(run::began_from_wire(run))),
        From::RunPlanned(plan) => Body::RunPlanned(Arc::new(run::planned_from_wire(plan))),
        From::RunEnded(end) => Body::RunEnded(run::ended_from_wire(end)),
        From::CallBegan(began) => calls::began_from_wire(began)?,
        From::CallEnded(ended) => calls::ended_from_wire(ended)?,
        From::Event(arrived) => calls::event_from_wire(arrived)?,
        From::SubscriptionOpened(_)
        | From::SubscriptionAnswered(_)
        | From::SubscriptionProven(_)
        | From::SubscriptionEnded(_) => subscription_from_wire(body)?,
        _ => case_from_wire(body)?,
    })
}

fn subscription_to_wire(body: &Body) -> wire::entry::Body {
    use wire::entry::Body as To;
    let mark = |subscription: &SubscriptionId| wire::Subscription {
        subscription: subscription.0,
    };
    match body {
        Body::SubscriptionOpened {
            subscription,
            observer,
        } => To::SubscriptionOpened(wire::SubscriptionOpened {
            subscription: subscription.0,
            observer: observer.as_ref().map(observer_to_wire),
        }),
        Body::SubscriptionAnswered { subscription } => To::SubscriptionAnswered(mark(subscription)),
        Body::SubscriptionProven { subscription } => To::SubscriptionProven(mark(subscription)),
        Body::SubscriptionEnded { subscription, end } => {
            use wire::subscription_ended::End;
            To::SubscriptionEnded(wire::SubscriptionEnded {
                subscription: subscription.0,
                end: Some(match end {
                    StreamEnd::Cancelled => End::Cancelled(wire::Empty {}),
                    StreamEnd::Closed => End::Closed(wire::Empty {}),
                    StreamEnd::Failed(fault) => End::Failed(fault_to_wire(fault)),
                }),
            })
        }
        _ => unreachable!("`body_to_wire` has dealt with all others"),
    }
}

fn subscription_from_wire(body: wire::entry::Body) -> Result<Body, Unreadable> {
    use wire::entry::Body as From;
    Ok(match body {
        From::SubscriptionOpened(opened) => Body::SubscriptionOpened {
            subscription: SubscriptionId(opened.subscription),
            observer: opened.observer.map(observer_from_wire),
        },
        From::SubscriptionAnswered(mark) => Body::SubscriptionAnswered {
            subscription: SubscriptionId(mark.subscription),
        },
        From::SubscriptionProven(mark) => Body::SubscriptionProven {
            subscription: SubscriptionId(mark.subscription),
        },
        From::SubscriptionEnded(ended) => {
            use wire::subscription_ended::End;
            Body::SubscriptionEnded {
                subscription: SubscriptionId(ended.subscription),
                end: match ended.end.ok_or(Unreadable::Absent("end of a stream"))? {
                    End::Cancelled(wire::Empty {}) => StreamEnd::Cancelled,
                    End::Closed(wire::Empty {}) => StreamEnd::Closed,
                    End::Failed(fault) => StreamEnd::Failed(fault_from_wire(fault)),
                },
            }
        }
        _ => unreachable!("`body_from_wire` has dealt with all others"),
    })
}

fn case_to_wire(body: &Body) -> wire::entry::Body {
    use wire::entry::Body as To;
    match body {
        Body::CaseBegan {
            case,
            id,
            definition,
            timeout_percent,
        } => To::CaseBegan(wire::CaseBegan {
            case_run: case.0,
            id: id.clone(),
            definition: definition.clone(),
            timeout_percent: *timeout_percent,
        }),
        Body::StepsEnded { case, end } => To::StepsEnded(wire::StepsEnded {
            case_run: case.0,
            end: Some(steps_end_to_wire(end)),
        }),
        Body::CaseEnded { case } => To::CaseEnded(wire::CaseMark { case_run: case.0 }),
        Body::Waited {
            case,
            wanted,
            met,
            bound,
            took,
            instead,
        } => To::Waited(wire::Waited {
            case_run: case.0,
            wanted: wanted.clone(),
            met: *met,
            bound_ns: nanos(*bound),
            took: took.map(|took| match took {
                Took::Event(time) => wire::waited::Took::EventNs(nanos(time)),
                Took::End(time) => wire::waited::Took::EndNs(nanos(time)),
            }),
            instead: instead.clone(),
        }),
        Body::Fact { case, fact } => To::Fact(wire::Fact {
            case_run: case.0,
            fact: Some(fact_to_wire(fact)),
        }),
        Body::Unjudged {
            case,
            skipped,
            reason,
        } => To::Unjudged(wire::Unjudged {
            case_run: case.0,
            skipped: *skipped,
            reason: reason.clone(),
        }),
        Body::CasesEnded => To::CasesEnded(wire::Empty {}),
        Body::HeldUp { by } => To::HeldUp(wire::HeldUp { by_ns: nanos(*by) }),
        _ => unreachable!("`body_to_wire` has dealt with all others"),
    }
}

fn case_from_wire(body: wire::entry::Body) -> Result<Body, Unreadable> {
    use wire::entry::Body as From;
    Ok(match body {
        From::CaseBegan(began) => Body::CaseBegan {
            case: CaseRun(began.case_run),
            id: began.id,
            definition: began.definition,
            timeout_percent: began.timeout_percent,
        },
        From::StepsEnded(ended) => Body::StepsEnded {
            case: CaseRun(ended.case_run),
            end: steps_end_from_wire(
                ended
                    .end
                    .ok_or(Unreadable::Absent("end of a case's steps"))?,
            ),
        },
        From::CaseEnded(mark) => Body::CaseEnded {
            case: CaseRun(mark.case_run),
        },
        From::Waited(waited) => Body::Waited {
            case: CaseRun(waited.case_run),
            wanted: waited.wanted,
            met: waited.met,
            bound: Duration::from_nanos(waited.bound_ns),
            took: waited.took.map(|took| match took {
                wire::waited::Took::EventNs(time) => Took::Event(Duration::from_nanos(time)),
                wire::waited::Took::EndNs(time) => Took::End(Duration::from_nanos(time)),
            }),
            instead: waited.instead,
        },
        From::Fact(fact) => Body::Fact {
            case: CaseRun(fact.case_run),
            fact: fact_from_wire(fact.fact.ok_or(Unreadable::Absent("fact"))?)?,
        },
        From::Unjudged(unjudged) => Body::Unjudged {
            case: CaseRun(unjudged.case_run),
            skipped: unjudged.skipped,
            reason: unjudged.reason,
        },
        From::CasesEnded(wire::Empty {}) => Body::CasesEnded,
        From::HeldUp(wire::HeldUp { by_ns }) => Body::HeldUp {
            by: Duration::from_nanos(by_ns),
        },
        _ => unreachable!("`body_from_wire` has dealt with all others"),
    })
}

fn fact_to_wire(fact: &HostFact) -> wire::fact::Fact {
    match fact {
        HostFact::OomKills(count) => wire::fact::Fact::OomKills(*count),
        HostFact::Held(resource, count) => wire::fact::Fact::Held(wire::Held {
            resource: resource.number(),
            count: *count,
        }),
        HostFact::ProcessGone(container, pid) => wire::fact::Fact::ProcessGone(wire::ProcessGone {
            container: container.to_string(),
            pid: *pid,
        }),
    }
}

fn fact_from_wire(fact: wire::fact::Fact) -> Result<HostFact, Unreadable> {
    Ok(match fact {
        wire::fact::Fact::OomKills(count) => HostFact::OomKills(count),
        wire::fact::Fact::Held(held) => {
            let resource = Resource::from_number(held.resource);
            HostFact::Held(resource.ok_or(Unreadable::Absent("resource"))?, held.count)
        }
        wire::fact::Fact::ProcessGone(gone) => {
            HostFact::ProcessGone(ContainerId::from(gone.container), gone.pid)
        }
    })
}

fn steps_end_to_wire(end: &StepsEnd) -> wire::steps_ended::End {
    use wire::steps_ended::End as To;
    match end {
        StepsEnd::Complete => To::Complete(wire::Empty {}),
        StepsEnd::Unmet => To::Unmet(wire::Empty {}),
        StepsEnd::Inconclusive(reason) => To::Inconclusive(reason.clone()),
        StepsEnd::NotApplicable(reason) => To::NotApplicable(reason.clone()),
        StepsEnd::Error(reason) => To::Error(reason.clone()),
    }
}

fn steps_end_from_wire(end: wire::steps_ended::End) -> StepsEnd {
    use wire::steps_ended::End as From;
    match end {
        From::Complete(wire::Empty {}) => StepsEnd::Complete,
        From::Unmet(wire::Empty {}) => StepsEnd::Unmet,
        From::Inconclusive(reason) => StepsEnd::Inconclusive(reason),
        From::NotApplicable(reason) => StepsEnd::NotApplicable(reason),
        From::Error(reason) => StepsEnd::Error(reason),
    }
}

fn observer_to_wire(observer: &Observer) -> wire::Observer {
    wire::Observer {
        case_run: observer.case.map(|case| case.0),
        binding: observer.binding.clone(),
        stalls: observer.stalls,
        own_process: observer.own_process,
        deadline_ns: observer.deadline.map(nanos),
        unknown_fields: observer.unknown_fields,
        authority: observer.authority.clone(),
    }
}

fn observer_from_wire(observer: wire::Observer) -> Observer {
    Observer {
        case: observer.case_run.map(CaseRun),
        binding: observer.binding,
        stalls: observer.stalls,
        own_process: observer.own_process,
        deadline: observer.deadline_ns.map(Duration::from_nanos),
        unknown_fields: observer.unknown_fields,
        authority: observer.authority,
    }
}

pub(super) fn fault_to_wire(fault: &CallFault) -> wire::CallFault {
    wire::CallFault {
        code: fault.code.0,
        message: fault.message.clone(),
        deadline_ns: nanos(fault.deadline),
    }
}

pub(super) fn fault_from_wire(fault: wire::CallFault) -> CallFault {
    CallFault {
        code: StatusCode(fault.code),
        message: fault.message,
        deadline: Duration::from_nanos(fault.deadline_ns),
    }
}

/// Durations here are deadlines and bounds; one of more than 584 years is written as that.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
