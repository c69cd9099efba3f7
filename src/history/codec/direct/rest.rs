//! What a history tells beside events, sandboxes and containers: marks of cases and streams, waits,
//! facts, images, versions and faults.

use std::time::Duration;

use super::{Parts, container_state, items, once, read_labels, sandbox_state};
use crate::history::wire::{Field, Fields, Value};
use crate::history::{
    Aside, Body, CallFault, CaseRun, ContainerFilter, ContainerId, ContainerMetadata, HostFact,
    ImageListing, Observer, Reply, Request, RuntimeStatus, RuntimeVersion, SandboxFilter,
    StatusCode, StepsEnd, StreamEnd, SubscriptionId, Took,
};

/// An entry of the field with this number.
pub(super) fn body(tag: u64, message: &[u8]) -> Option<Body> {
    Some(match tag {
        5 => case_began(message)?,
        6 => steps_ended(message)?,
        7 => Body::CaseEnded {
            case: CaseRun(mark(message)?),
        },
        10 => subscription_opened(message)?,
        11 => Body::SubscriptionProven {
            subscription: SubscriptionId(mark(message)?),
        },
        12 => subscription_ended(message)?,
        20 => Body::SubscriptionAnswered {
            subscription: SubscriptionId(mark(message)?),
        },
        14 => waited(message)?,
        15 => fact(message)?,
        21 => held_up(message)?,
        _ => return None,
    })
}

pub(super) fn request(tag: u64, value: Value<'_>, parts: &mut Parts) -> Option<Request> {
    Some(match tag {
        3 => nothing(value, Request::Version)?,
        15 => Request::ImageStatus(value.text()?),
        16 => Request::PullImage(value.text()?),
        17 => Request::RemoveImage(value.text()?),
        18 => nothing(value, Request::ListImages)?,
        19 => exec_sync(value.bytes()?, parts)?,
        20 => aside(value.bytes()?)?,
        21 => find_sandboxes(value.bytes()?, parts)?,
        22 => find_containers(value.bytes()?, parts)?,
        23 => nothing(value, Request::RuntimeStatus)?,
        _ => return None,
    })
}

pub(super) fn container_metadata(message: &[u8], parts: &mut Parts) -> Option<ContainerMetadata> {
    let mut metadata = ContainerMetadata::default();
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => metadata.name = parts.text(value)?,
            2 => metadata.attempt = value.short()?,
            _ => return None,
        }
    }
    Some(metadata)
}

pub(super) fn stop_container(message: &[u8], parts: &mut Parts) -> Option<Request> {
    let (mut container, mut grace) = (ContainerId::default(), Duration::ZERO);
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => container = parts.id(value)?,
            2 => grace = Duration::from_nanos(value.number()?),
            _ => return None,
        }
    }
    Some(Request::StopContainer { container, grace })
}

fn exec_sync(message: &[u8], parts: &mut Parts) -> Option<Request> {
    let (mut container, mut command) = (ContainerId::default(), Vec::new());
    let mut timeout = Duration::ZERO;
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => container = parts.id(value)?,
            2 => command.push(value.text()?),
            3 => timeout = Duration::from_nanos(value.number()?),
            _ => return None,
        }
    }
    Some(Request::ExecSync {
        container,
        command,
        timeout,
    })
}

fn find_sandboxes(message: &[u8], parts: &mut Parts) -> Option<Request> {
    let mut filter = SandboxFilter::default();
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => filter.id = Some(parts.id(value)?),
            2 => filter.state = Some(sandbox_state(value.short_signed()?)),
            3 => read_labels(&mut filter.labels, &mut fields, parts)?,
            4 => filter.streamed = value.number()? != 0,
            _ => return None,
        }
    }
    Some(Request::FindSandboxes(filter))
}

fn find_containers(message: &[u8], parts: &mut Parts) -> Option<Request> {
    let mut filter = ContainerFilter::default();
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => filter.id = Some(parts.id(value)?),
            2 => filter.state = Some(container_state(value.short_signed()?)),
            3 => filter.sandbox = Some(parts.id(value)?),
            4 => read_labels(&mut filter.labels, &mut fields, parts)?,
            5 => filter.streamed = value.number()? != 0,
            _ => return None,
        }
    }
    Some(Request::FindContainers(filter))
}

fn runtime_status(message: &[u8]) -> Option<Reply> {
    let mut status = RuntimeStatus::default();
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => status.conditions.push(value.text()?),
            2 => status.handlers.push(value.text()?),
            _ => return None,
        }
    }
    Some(Reply::RuntimeStatus(status))
}

pub(super) fn reply(tag: u64, value: Value<'_>) -> Option<Reply> {
    Some(match tag {
        3 => nothing(value, Reply::Done)?,
        4 => Reply::Version(version(value.bytes()?)?),
        11 => image_found(value.bytes()?)?,
        12 => Reply::Pulled(value.text()?),
        13 => Reply::Images(items(value, image)?),
        16 => Reply::Exec(value.zigzag()?),
        17 => runtime_status(value.bytes()?)?,
        _ => return None,
    })
}

pub(super) fn call_fault(message: &[u8]) -> Option<CallFault> {
    let mut fault = CallFault {
        code: StatusCode(0),
        message: String::new(),
        deadline: Duration::ZERO,
    };
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => fault.code = StatusCode(value.short_signed()?),
            2 => fault.message = value.text()?,
            3 => fault.deadline = Duration::from_nanos(value.number()?),
            _ => return None,
        }
    }
    Some(fault)
}

/// What a message means that tells nothing more.
fn nothing<T>(value: Value<'_>, meaning: T) -> Option<T> {
    value.bytes()?.is_empty().then_some(meaning)
}

/// The number of a case or of a stream, which is all that its message has.
fn mark(message: &[u8]) -> Option<u32> {
    let mut number = 0;
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => number = value.short()?,
            _ => return None,
        }
    }
    Some(number)
}

fn subscription_opened(message: &[u8]) -> Option<Body> {
    let (mut subscription, mut observer) = (SubscriptionId(0), None);
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => subscription = SubscriptionId(value.short()?),
            2 => once(&mut observer, self::observer(value.bytes()?)?)?,
            _ => return None,
        }
    }
    Some(Body::SubscriptionOpened {
        subscription,
        observer,
    })
}

fn observer(message: &[u8]) -> Option<Observer> {
    let mut observer = Observer::default();
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => observer.case = Some(CaseRun(value.short()?)),
            2 => observer.binding = value.text()?,
            3 => observer.stalls = value.number()? != 0,
            4 => observer.deadline = Some(Duration::from_nanos(value.number()?)),
            5 => observer.unknown_fields = value.number()? != 0,
            6 => observer.authority = Some(value.text()?),
            _ => return None,
        }
    }
    Some(observer)
}

fn case_began(message: &[u8]) -> Option<Body> {
    let (mut case, mut id) = (CaseRun(0), String::new());
    let (mut definition, mut timeout_percent) = (String::new(), 0);
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => case = CaseRun(value.short()?),
            2 => id = value.text()?,
            3 => definition = value.text()?,
            4 => timeout_percent = value.short()?,
            _ => return None,
        }
    }
    Some(Body::CaseBegan {
        case,
        id,
        definition,
        timeout_percent,
    })
}

fn steps_ended(message: &[u8]) -> Option<Body> {
    let (mut case, mut end) = (CaseRun(0), None);
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => case = CaseRun(value.short()?),
            2 => once(&mut end, nothing(value, StepsEnd::Complete)?)?,
            3 => once(&mut end, nothing(value, StepsEnd::Unmet)?)?,
            4 => once(&mut end, StepsEnd::Inconclusive(value.text()?))?,
            5 => once(&mut end, StepsEnd::Error(value.text()?))?,
            6 => once(&mut end, StepsEnd::NotApplicable(value.text()?))?,
            _ => return None,
        }
    }
    let end = end?;
    Some(Body::StepsEnded { case, end })
}

fn subscription_ended(message: &[u8]) -> Option<Body> {
    let (mut subscription, mut end) = (SubscriptionId(0), None);
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => subscription = SubscriptionId(value.short()?),
            2 => once(&mut end, nothing(value, StreamEnd::Cancelled)?)?,
            3 => once(&mut end, nothing(value, StreamEnd::Closed)?)?,
            4 => once(&mut end, StreamEnd::Failed(call_fault(value.bytes()?)?))?,
            _ => return None,
        }
    }
    let end = end?;
    Some(Body::SubscriptionEnded { subscription, end })
}

fn waited(message: &[u8]) -> Option<Body> {
    let (mut case, mut wanted) = (CaseRun(0), String::new());
    let (mut met, mut bound, mut took) = (false, Duration::ZERO, None);
    let mut instead = String::new();
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => case = CaseRun(value.short()?),
            2 => wanted = value.text()?,
            3 => met = value.number()? != 0,
            4 => bound = Duration::from_nanos(value.number()?),
            5 => once(
                &mut took,
                Took::Event(Duration::from_nanos(value.number()?)),
            )?,
            6 => once(&mut took, Took::End(Duration::from_nanos(value.number()?)))?,
            7 => instead = value.text()?,
            _ => return None,
        }
    }
    Some(Body::Waited {
        case,
        wanted,
        met,
        bound,
        took,
        instead,
    })
}

fn fact(message: &[u8]) -> Option<Body> {
    let (mut case, mut fact) = (CaseRun(0), None);
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => case = CaseRun(value.short()?),
            2 => once(&mut fact, HostFact::OomKills(value.number()?))?,
            _ => return None,
        }
    }
    let fact = fact?;
    Some(Body::Fact { case, fact })
}

fn aside(message: &[u8]) -> Option<Request> {
    let (mut method, mut id) = (String::new(), String::new());
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => method = value.text()?,
            2 => id = value.text()?,
            _ => return None,
        }
    }
    Some(Request::Aside(Aside::named(&method)?, id))
}

fn version(message: &[u8]) -> Option<RuntimeVersion> {
    let mut version = RuntimeVersion::default();
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => version.runtime_name = value.text()?,
            2 => version.runtime_version = value.text()?,
            3 => version.api_version = value.text()?,
            _ => return None,
        }
    }
    Some(version)
}

fn image_found(message: &[u8]) -> Option<Reply> {
    let mut found = None;
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => once(&mut found, image(value.bytes()?)?)?,
            _ => return None,
        }
    }
    Some(Reply::Image(found))
}

fn image(message: &[u8]) -> Option<ImageListing> {
    let (mut id, mut tags) = (String::new(), Vec::new());
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => id = value.text()?,
            2 => tags.push(value.text()?),
            _ => return None,
        }
    }
    Some(ImageListing { id, tags })
}

fn held_up(message: &[u8]) -> Option<Body> {
    let mut by = Duration::ZERO;
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => by = Duration::from_nanos(value.number()?),
            _ => return None,
        }
    }
    Some(Body::HeldUp { by })
}
