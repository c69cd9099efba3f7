//! Calls that stand in the history.

use std::time::Duration;

use crate::cri::Client;
use crate::history::{Body, CallFault, CallId, CaseRun, Reply, Request};
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
        let call = self.begin(case, request.clone());
        self.end(call, self.client.call(&request).await)
    }

    /// The same, and gives up on the call after a time.
    ///
    /// # Errors
    /// Whatever the runtime returned, or `DEADLINE_EXCEEDED`.
    pub async fn call_within(
        &self,
        case: Option<CaseRun>,
        request: Request,
        deadline: Duration,
    ) -> Result<Reply, CallFault> {
        let call = self.begin(case, request.clone());
        self.end(call, self.client.call_within(&request, deadline).await)
    }

    fn begin(&self, case: Option<CaseRun>, request: Request) -> CallId {
        let call = self.recorder.next_call();
        self.recorder.record(Body::CallBegan {
            call,
            case,
            request,
        });
        call
    }

    fn end(&self, call: CallId, result: Result<Reply, CallFault>) -> Result<Reply, CallFault> {
        self.recorder.record(Body::CallEnded {
            call,
            result: result.clone(),
        });
        result
    }
}
