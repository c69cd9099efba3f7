//! Calls that stand in the history.

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
        let call = self.recorder.next_call();
        self.recorder.record(Body::CallBegan {
            call,
            case,
            request: request.clone(),
        });
        let result = self.client.call(&request).await;
        self.recorder.record(Body::CallEnded {
            call,
            result: result.clone(),
        });
        result
    }
}
