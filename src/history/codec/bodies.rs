//! Entries whose messages have other fields than the entries: the beginning of a run has the
//! version of the format, and calls and events have the CRI's message byte for byte, with fields
//! for the facts that it lacks.
#![expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "`oneof!` passes each field by reference"
)]

use std::sync::Arc;

use bytes::Bytes;

use super::FORMAT_VERSION;
use crate::history::messages::{
    decode_event, decode_reply, decode_request, encode_event, encode_request,
};
use crate::history::protobuf::{Unreadable, message, written_as};
use crate::history::{
    Body, CallFault, CallId, CaseRun, ContainerFilter, Event, NoEventCall, Reply, Request, RunInfo,
    SandboxFilter, SubscriptionId,
};

message! {
    pub struct RunBegan {
        format_version: u32 = 1,
        info: Arc<RunInfo>,
    }
}

impl RunBegan {
    pub fn new(info: &Arc<RunInfo>) -> Self {
        let (format_version, info) = (FORMAT_VERSION, info.clone());
        Self {
            format_version,
            info,
        }
    }

    pub fn open(self) -> Result<Body, Unreadable> {
        match self.format_version {
            FORMAT_VERSION => Ok(Body::RunBegan(self.info)),
            other => Err(Unreadable::Version(other)),
        }
    }
}

message! {
    pub struct CallBegan {
        call: CallId = 1,
        case: Option<CaseRun> = 2,
        method: String = 3,
        #[cfg_attr(test, arbitrary(default))]
        request: Bytes = 4,
        intent: Option<Intent> = 5,
    }
}

impl CallBegan {
    pub fn new(call: &CallId, case: &Option<CaseRun>, request: &Request, message: &Bytes) -> Self {
        Self {
            call: *call,
            case: *case,
            method: request.method().to_owned(),
            request: verbatim(message, || encode_request(request)),
            intent: Some(intent(request)).filter(|intent| *intent != Intent::default()),
        }
    }

    pub fn open(self) -> Result<Body, Unreadable> {
        let request = decode_request(&self.method, &self.request)?;
        Ok(Body::CallBegan {
            call: self.call,
            case: self.case,
            request: with_intent(request, self.intent.unwrap_or_default()),
            message: self.request,
        })
    }
}

message! {
    /// The facts of a request that its message lacks.
    #[derive(Default)]
    pub struct Intent {
        binding: String = 1,
        sandbox_binding: String = 2,
        sandbox_handler: String = 3,
        declared_exit: Option<ExitCode> = 4,
        no_event: bool = 5,
        by_filter: bool = 6,
    }
}

/// An exit code as a `sint32`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExitCode(i32);

written_as! {
    ExitCode as u32 {
        |code| ((code.0 << 1) ^ (code.0 >> 31)).cast_unsigned(),
        |zigzag| Ok(ExitCode((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed()))
    }
}

message! {
    pub struct CallEnded {
        call: CallId = 1,
        fault: Option<CallFault> = 2,
        response: String = 3,
        #[cfg_attr(test, arbitrary(default))]
        message: Bytes = 4,
    }
}

impl CallEnded {
    pub fn new(call: &CallId, result: &Result<Reply, CallFault>, message: &Bytes) -> Self {
        Self {
            call: *call,
            fault: result.as_ref().err().cloned(),
            response: result.as_ref().map_or("", Reply::response).to_owned(),
            message: verbatim(message, || {
                result.as_ref().map(Reply::to_bytes).unwrap_or_default()
            }),
        }
    }

    pub fn open(self) -> Result<Body, Unreadable> {
        Ok(Body::CallEnded {
            call: self.call,
            result: match self.fault {
                Some(fault) => Err(fault),
                None => Ok(decode_reply(&self.response, &self.message)?),
            },
            message: self.message,
        })
    }
}

message! {
    pub struct EventArrived {
        subscription: SubscriptionId = 1,
        #[cfg_attr(test, arbitrary(default))]
        message: Bytes = 2,
    }
}

impl EventArrived {
    pub fn new(subscription: &SubscriptionId, event: &Event, message: &Bytes) -> Self {
        Self {
            subscription: *subscription,
            message: verbatim(message, || encode_event(event)),
        }
    }

    pub fn open(self) -> Result<Body, Unreadable> {
        Ok(Body::Event {
            subscription: self.subscription,
            event: decode_event(&self.message)?,
            message: self.message,
        })
    }
}

/// The message as it was on the wire, if it is known.
fn verbatim(message: &Bytes, encode: impl FnOnce() -> Vec<u8>) -> Bytes {
    if message.is_empty() {
        encode().into()
    } else {
        message.clone()
    }
}

fn intent(request: &Request) -> Intent {
    match request {
        Request::RunSandbox(spec) => Intent {
            binding: spec.binding.clone(),
            ..Intent::default()
        },
        Request::CreateContainer(spec) => Intent {
            binding: spec.binding.clone(),
            sandbox_binding: spec.sandbox_spec.binding.clone(),
            sandbox_handler: spec.sandbox_spec.runtime_handler.clone(),
            declared_exit: spec.declared_exit.map(ExitCode),
            ..Intent::default()
        },
        Request::FindSandboxes(_) | Request::FindContainers(_) => Intent {
            by_filter: true,
            ..Intent::default()
        },
        Request::NoEventCall(..) => Intent {
            no_event: true,
            ..Intent::default()
        },
        _ => Intent::default(),
    }
}

fn with_intent(request: Request, intent: Intent) -> Request {
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
            container.declared_exit = intent.declared_exit.map(|code| code.0);
            let sandbox = Arc::make_mut(&mut container.sandbox_spec);
            sandbox.binding = intent.sandbox_binding;
            sandbox.runtime_handler = intent.sandbox_handler;
            Request::CreateContainer(spec)
        }
        Request::ListSandboxes { labels, streamed } if intent.by_filter => {
            Request::FindSandboxes(SandboxFilter {
                labels,
                streamed,
                ..SandboxFilter::default()
            })
        }
        Request::ListContainers {
            sandbox,
            labels,
            streamed,
        } if intent.by_filter => Request::FindContainers(ContainerFilter {
            sandbox,
            labels,
            streamed,
            ..ContainerFilter::default()
        }),
        Request::RuntimeStatus if intent.no_event => {
            Request::NoEventCall(NoEventCall::Status, String::new())
        }
        other => other,
    }
}
