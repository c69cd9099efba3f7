//! The fault of a call, as gRPC and the layers below report it.

use std::time::Duration;

use tonic::Status;

use crate::history::messages::ReplyError;
use crate::history::{CallFault, StatusCode};

pub(super) fn fault(status: &Status, deadline: Duration) -> CallFault {
    // A broken transport hides its cause behind "transport error": report the cause.
    let cause = std::error::Error::source(status).map(innermost);
    let hidden = cause.filter(|cause| cause != status.message());
    let message = match hidden {
        Some(cause) => format!("{}: {cause}", status.message()),
        None => status.message().to_owned(),
    };
    CallFault {
        code: code(status),
        message,
        deadline,
    }
}

/// The runtime's status code, or `UNAVAILABLE` if it did not reply, for which tonic has many codes:
/// `UNKNOWN`, `INTERNAL` and `CANCELLED` among them.
fn code(status: &Status) -> StatusCode {
    // Only a local error has a source.
    match std::error::Error::source(status) {
        None => StatusCode(status.code() as i32),
        Some(_) => StatusCode::UNAVAILABLE,
    }
}

/// Why a unary call without a usable reply failed: `DATA_LOSS` if there was one that gRPC could not
/// decode.
pub(super) fn status_fault(status: &Status, deadline: Duration) -> CallFault {
    let fault = fault(status, deadline);
    if !is_unreadable(status) {
        return fault;
    }
    CallFault {
        code: StatusCode::DATA_LOSS,
        ..fault
    }
}

/// Why a reply cannot be used: `DATA_LOSS` if it cannot be read.
pub(super) fn reply_fault(fault: &ReplyError, deadline: Duration) -> CallFault {
    let code = match fault {
        ReplyError::Unreadable(_) | ReplyError::NoStatus(_) | ReplyError::UnknownResponse => {
            StatusCode::DATA_LOSS
        }
        ReplyError::TooLong { .. } | ReplyError::Unasked(_) => StatusCode::RESOURCE_EXHAUSTED,
    };
    CallFault {
        code,
        message: fault.to_string(),
        deadline,
    }
}

/// Whether it says that a message cannot be decoded, or exceeds our limit: tonic creates such a
/// status itself, and one from a runtime has headers.
fn is_unreadable(status: &Status) -> bool {
    let says_so = matches!(
        status.code(),
        tonic::Code::Internal | tonic::Code::OutOfRange
    );
    let is_own = std::error::Error::source(status).is_none();
    says_so && is_own && status.metadata().is_empty()
}

/// The innermost cause: `No such file or directory` rather than `transport error`.
pub(super) fn innermost(fault: &Cause) -> String {
    deepest(fault).to_string()
}

type Cause = dyn std::error::Error + 'static;

pub(super) fn deepest(fault: &Cause) -> &Cause {
    let mut deepest = fault;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Unreadable;

    #[track_caller]
    fn check_status(status: &Status, code: StatusCode) {
        assert_eq!(status_fault(status, Duration::from_secs(1)).code, code);
    }

    #[track_caller]
    fn check_reply(fault: &ReplyError, code: StatusCode) {
        assert_eq!(reply_fault(fault, Duration::from_secs(1)).code, code);
    }

    #[test]
    fn a_cause_is_stated_once() {
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = tonic::Status::from_error(refused().into());
        let message = fault(&status, Duration::ZERO).message;
        assert_eq!(
            message.matches(&refused().to_string()).count(),
            1,
            "{message}"
        );
    }

    #[test]
    fn an_unanswered_call_is_distinguished_from_a_refused_one() {
        let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        check_status(&Status::from_error(broken.into()), StatusCode::UNAVAILABLE);
        let unimplemented = Status::unimplemented("no such method");
        check_status(&unimplemented, StatusCode::UNIMPLEMENTED);
        check_status(&Status::cancelled("by the runtime"), StatusCode::CANCELLED);
        let unreadable = <() as prost::Message>::decode(&[0xff][..]).unwrap_err();
        check_reply(
            &ReplyError::from(Unreadable::from(unreadable)),
            StatusCode::DATA_LOSS,
        );
        check_reply(
            &ReplyError::NoStatus("Status".to_owned()),
            StatusCode::DATA_LOSS,
        );
        check_reply(&ReplyError::Unasked(2), StatusCode::RESOURCE_EXHAUSTED);
        check_status(&Status::out_of_range("too large"), StatusCode::DATA_LOSS);
        let mut internal = Status::internal("of the runtime's own");
        internal
            .metadata_mut()
            .insert("content-type", "application/grpc".parse().unwrap());
        check_status(&internal, StatusCode(13));
    }
}
