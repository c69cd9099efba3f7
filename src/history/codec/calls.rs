//! Entries with messages of the CRI: calls and events. The message is kept byte for byte; what it
//! does not say is stored in fields of its own.

use std::sync::Arc;

use bytes::Bytes;

use super::entry::{Unreadable, fault_from_wire, fault_to_wire};
use super::wire;
use crate::history::messages::{
    decode_event, decode_reply, decode_request, encode_event, encode_reply, encode_request,
};
use crate::history::{
    Body, CallFault, CallId, CaseRun, ContainerFilter, Event, NoEventCall, Reply, Request,
    SandboxFilter, SubscriptionId,
};

pub(super) fn began_to_wire(
    call: CallId,
    case: Option<CaseRun>,
    request: &Request,
    message: &Bytes,
) -> wire::CallBegan {
    wire::CallBegan {
        call: call.0,
        case_run: case.map(|case| case.0),
        method: request.method().to_owned(),
        request: verbatim(message, || encode_request(request)),
        intent: Some(intent(request)).filter(|intent| *intent != wire::Intent::default()),
    }
}

pub(super) fn began_from_wire(began: wire::CallBegan) -> Result<Body, Unreadable> {
    let request = decode_request(&began.method, &began.request)?;
    Ok(Body::CallBegan {
        call: CallId(began.call),
        case: began.case_run.map(CaseRun),
        request: with_intent(request, began.intent.unwrap_or_default()),
        message: began.request.into(),
    })
}

pub(super) fn ended_to_wire(
    call: CallId,
    result: &Result<Reply, CallFault>,
    message: &Bytes,
) -> wire::CallEnded {
    wire::CallEnded {
        call: call.0,
        fault: result.as_ref().err().map(fault_to_wire),
        response: result.as_ref().map_or("", Reply::response).to_owned(),
        message: verbatim(message, || {
            let reply = result.as_ref().ok().cloned();
            reply.map(encode_reply).unwrap_or_default()
        }),
    }
}

pub(super) fn ended_from_wire(ended: wire::CallEnded) -> Result<Body, Unreadable> {
    Ok(Body::CallEnded {
        call: CallId(ended.call),
        result: match ended.fault {
            Some(fault) => Err(fault_from_wire(fault)),
            None => Ok(decode_reply(&ended.response, &ended.message)?),
        },
        message: ended.message.into(),
    })
}

pub(super) fn event_to_wire(
    subscription: SubscriptionId,
    event: &Event,
    message: &Bytes,
) -> wire::EventArrived {
    wire::EventArrived {
        subscription: subscription.0,
        message: verbatim(message, || encode_event(event.clone())),
    }
}

pub(super) fn event_from_wire(arrived: wire::EventArrived) -> Result<Body, Unreadable> {
    Ok(Body::Event {
        subscription: SubscriptionId(arrived.subscription),
        event: decode_event(&arrived.message)?,
        message: arrived.message.into(),
    })
}

/// The message as it was on the wire, if it is known.
fn verbatim(message: &Bytes, encode: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    if message.is_empty() {
        encode()
    } else {
        message.to_vec()
    }
}

/// What the message of a request does not say.
fn intent(request: &Request) -> wire::Intent {
    match request {
        Request::RunSandbox(spec) => wire::Intent {
            binding: spec.binding.clone(),
            ..wire::Intent::default()
        },
        Request::CreateContainer(spec) => wire::Intent {
            binding: spec.binding.clone(),
            sandbox_binding: spec.sandbox_spec.binding.clone(),
            sandbox_handler: spec.sandbox_spec.runtime_handler.clone(),
            declared_exit: spec.declared_exit,
            ..wire::Intent::default()
        },
        Request::FindSandboxes(_) | Request::FindContainers(_) => wire::Intent {
            by_filter: true,
            ..wire::Intent::default()
        },
        Request::NoEventCall(..) => wire::Intent {
            no_event: true,
            ..wire::Intent::default()
        },
        _ => wire::Intent::default(),
    }
}

fn with_intent(request: Request, intent: wire::Intent) -> Request {
    match request {
        Request::RunSandbox(mut spec) => {
            Arc::make_mut(&mut spec).binding = intent.binding;
            Request::RunSandbox(spec)
        }
        Request::CreateContainer(mut spec) => {
            let container = Arc::make_mut(&mut spec);
            let is_other_name = container.binding != intent.binding;
            let name = std::mem::replace(&mut container.binding, intent.binding);
            container.name = is_other_name.then_some(name);
            container.declared_exit = intent.declared_exit;
            let sandbox = Arc::make_mut(&mut container.sandbox_spec);
            sandbox.binding = intent.sandbox_binding;
            sandbox.runtime_handler = intent.sandbox_handler;
            Request::CreateContainer(spec)
        }
        Request::ListSandboxes(labels) if intent.by_filter => {
            Request::FindSandboxes(SandboxFilter {
                labels,
                ..SandboxFilter::default()
            })
        }
        Request::ListContainers { sandbox, labels } if intent.by_filter => {
            Request::FindContainers(ContainerFilter {
                sandbox,
                labels,
                ..ContainerFilter::default()
            })
        }
        Request::RuntimeStatus if intent.no_event => {
            Request::NoEventCall(NoEventCall::Status, String::new())
        }
        other => other,
    }
}
