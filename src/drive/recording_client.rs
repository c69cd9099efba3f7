//! Calls that are recorded in the history.
//!
//! A call that has been sent is never taken back: a runtime may leave processes behind that no
//! call of the CRI reaches any more (containerd 2.1, after a cancelled `StartContainer`). So each
//! call has a task of its own, which goes on to the call's end though nobody waits for it any more.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::cri::{self, Client, ConnectError, Endpoint};
use crate::history::{Body, CallFault, CaseRun, Reply, Request};
use crate::host::LogDirectory;
use crate::recorder::Recorder;

/// Sends calls and records both their ends. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RecordingClient {
    /// The runtime.
    pub client: Client,
    /// The history.
    pub recorder: Recorder,
    /// The calls that have not ended, those of all clones among them.
    under_way: TaskTracker,
    /// The ids of all sandboxes and containers that were made, by all clones.
    made: Arc<Mutex<BTreeSet<String>>>,
    /// Where they are noted, too, for the `cleanup` of a run that is killed.
    notes: Arc<OnceLock<LogDirectory>>,
}

impl RecordingClient {
    /// A client with a history of its own.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::recording(client, Recorder::new())
    }

    /// A client whose calls are recorded in this history.
    #[must_use]
    pub fn recording(client: Client, recorder: Recorder) -> Self {
        let under_way = TaskTracker::new();
        Self {
            client,
            recorder,
            under_way,
            made: Arc::default(),
            notes: Arc::default(),
        }
    }

    /// From now on notes in this directory what is made.
    pub fn note_in(&self, logs: &LogDirectory) {
        // A run has one such directory.
        let _ = self.notes.set(logs.clone());
    }

    /// Another client with the same history and a connection of its own.
    ///
    /// # Errors
    /// If the endpoint, which must be that of this one, takes no more connections.
    pub async fn with_own_connection(&self, endpoint: &Endpoint) -> Result<Self, ConnectError> {
        let client = self.client.another(endpoint).await?;
        Ok(Self {
            client,
            ..self.clone()
        })
    }

    /// Sends a call for a case, or for the run itself, and records both its ends.
    ///
    /// # Errors
    /// The error that the runtime returned.
    pub async fn call(&self, case: Option<CaseRun>, request: Request) -> Result<Reply, CallFault> {
        self.call_within(case, request, None).await
    }

    /// Sends a call with a deadline of its own, if there is one, and records both its ends.
    /// Dropped, it is not waited for, and goes on.
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
        let message = cri::encode(&request);
        self.recorder.record(Body::CallBegan {
            call,
            case,
            request: request.clone(),
            message: message.clone(),
        });
        let this = self.clone();
        let sent = self.under_way.spawn(async move {
            let answer = this.client.exchange(&request, message, deadline).await;
            this.note(&answer.result);
            this.recorder.record(Body::CallEnded {
                call,
                result: answer.result.clone(),
                message: answer.message,
            });
            answer.result
        });
        match sent.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(result) => result,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The process ends, and all tasks with it.
            Err(Err(_)) => pending().await,
        }
    }

    fn note(&self, result: &Result<Reply, CallFault>) {
        let id = match result {
            Ok(Reply::Sandbox(id)) => id.to_string(),
            Ok(Reply::Container(id)) => id.to_string(),
            Ok(_) | Err(_) => return,
        };
        if let Some(logs) = self.notes.get() {
            // What cannot be noted may still be found by its label.
            let _ = logs.note(&id);
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(id);
    }

    /// The ids of all sandboxes and containers that were made.
    pub(super) fn made(&self) -> BTreeSet<String> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.clone()
    }

    /// Waits until each call that was sent has ended, which its deadline bounds.
    pub async fn settled(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }
}
