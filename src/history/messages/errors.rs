//! Why a message cannot be used.

use prost::DecodeError;

use crate::history::protobuf::Unreadable;

/// Why a reply cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplyError {
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("the runtime answered {0} with OK and without a status")]
    NoStatus(String),
    /// It has more items than the suite reads.
    #[error("the answer lists {listed}, and the suite looks at no more than {limit}")]
    TooLong {
        /// How many items it has.
        listed: usize,
        /// The most that are accepted.
        limit: usize,
    },
    /// It has many items without the requested labels.
    #[error("the answer lists {0} that do not have the labels that were asked for")]
    Unasked(usize),
    #[error("no such response")]
    UnknownResponse,
}

/// Why a request cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    #[error("the request cannot be read: {0}")]
    Unreadable(#[from] Unreadable),
    #[error("no such method")]
    UnknownMethod,
}

impl From<RequestError> for Unreadable {
    fn from(fault: RequestError) -> Self {
        match fault {
            RequestError::Unreadable(fault) => fault,
            RequestError::UnknownMethod => Self::Lacks("method"),
        }
    }
}

impl From<ReplyError> for Unreadable {
    fn from(fault: ReplyError) -> Self {
        match fault {
            ReplyError::Unreadable(fault) => fault,
            ReplyError::NoStatus(_) => Self::Lacks("status"),
            ReplyError::TooLong { .. } | ReplyError::Unasked(_) => Self::Lacks("list"),
            ReplyError::UnknownResponse => Self::Lacks("response"),
        }
    }
}

impl From<DecodeError> for RequestError {
    fn from(fault: DecodeError) -> Self {
        Self::Unreadable(fault.into())
    }
}
