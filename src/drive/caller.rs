//! Calls that stand in the history.

use std::time::Duration;

use crate::cri::Client;
use crate::history::{Body, CallFault, CaseRun, Reply, Request};
use crate::recorder::Recorder;

/// Sends calls and records both their ends. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The runtime.
    pub client: Client,
    /// The history.
    pub recorder: Recorder,
}

impl Caller {
    /// A caller with a history of its own.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            recorder: Recorder::new(),
        }
    }

    /// Sends a call for a case, or for the run itself, and records both its ends.
    ///
    /// # Errors
    /// Whatever the runtime returned.
    pub async fn call(&self, case: Option<CaseRun>, request: Request) -> Result<Reply, CallFault> {
        self.call_within(case, request, None).await
    }

    /// Sends a call with a deadline of its own, if there is one, and records both its ends.
    ///
    /// # Errors
    /// As [`call`](Self::call) does.
    pub async fn call_within(
        &self,
        case: Option<CaseRun>,
        request: Request,
        deadline: Option<Duration>,
    ) -> Result<Reply, CallFault> {
        let call = self.recorder.next_call();
        self.recorder.record(Body::CallBegan {
            call,
            case,
            request: request.clone(),
        });
        let result = match deadline {
            Some(deadline) => self.client.call_within(&request, deadline).await,
            None => self.client.call(&request).await,
        };
        self.recorder.record(Body::CallEnded {
            call,
            result: result.clone(),
        });
        result
    }
}
