//! Removing all that a run has made, however it ended.

use std::time::Duration;

use crate::drive::{self, RecordingClient};
use crate::history::{Request, RunId, SandboxId, StatusCode};
use crate::host::{Kernel, LogDirectory};
use crate::limits::{self, TimeoutScale};
use crate::{host, terminal};

/// What a run has made beside its labelled pods, and how to remove all of it.
#[derive(Debug)]
pub(super) struct CleanUp {
    caller: RecordingClient,
    kernel: Kernel,
    run: RunId,
    /// How long a runtime that is gone may take to come back.
    patience: Duration,
    /// Whether a runtime that is gone is waited for at all.
    pub(super) waits: bool,
    /// The image that the user named, if the run had to pull it.
    pub(super) pulled: Option<String>,
    /// The directory of its containers' logs, once it is made.
    pub(super) logs: Option<LogDirectory>,
}

/// How an attempt went.
enum Attempt {
    Done(Vec<String>),
    /// The runtime is gone; what it said last.
    Gone(String),
}

impl CleanUp {
    /// What a run needs that has made nothing but labelled pods.
    pub(super) fn after(
        run: &RunId,
        (caller, kernel): (&RecordingClient, &Kernel),
        timeout_scale: TimeoutScale,
    ) -> Self {
        Self {
            caller: caller.clone(),
            kernel: kernel.clone(),
            run: run.clone(),
            patience: timeout_scale.scaled(limits::RUNTIME_RETURN),
            waits: true,
            pulled: None,
            logs: None,
        }
    }

    /// Removes all but these sandboxes and the images that they need; returns what could not be
    /// removed, and how to remove it later.
    pub(super) async fn all_but(&self, keep: &[SandboxId]) -> Vec<String> {
        // What is still being made could not be seen yet.
        self.caller.settled().await;
        let began = host::now();
        let mut pause = tokio::time::interval(limits::RUNTIME_LOOK);
        loop {
            match self.attempt(keep).await {
                Attempt::Done(failures) => return failures,
                // A runtime that restarts comes back; nothing tells when, but that it answers.
                Attempt::Gone(_) if self.waits && host::elapsed(began) < self.patience => {
                    pause.tick().await;
                }
                Attempt::Gone(fault) => {
                    return vec![format!("not cleaned up: {fault}; try {}", self.hint())];
                }
            }
        }
    }

    async fn attempt(&self, keep: &[SandboxId]) -> Attempt {
        let place = (&self.caller, &self.kernel);
        let swept = match drive::sweep(place, Some(&self.run), keep).await {
            Ok(swept) => swept,
            Err(fault) if is_gone(fault.fault.code) => return Attempt::Gone(fault.to_string()),
            Err(fault) => {
                return Attempt::Done(vec![format!(
                    "not cleaned up: {fault}; try {}",
                    self.hint()
                )]);
            }
        };
        for process in &swept.processes {
            let line = format!("the runtime had left {process}: ended");
            terminal::say(&line);
        }
        let hint = |fault: &String| {
            let again = self.hint();
            format!(
                "not removed: {fault}; try {again}, and if that fails restart the runtime before"
            )
        };
        let mut failures: Vec<String> = swept.failures.iter().map(hint).collect();
        if let (Some(image), true) = (&self.pulled, keep.is_empty()) {
            let removed = self
                .caller
                .call(None, Request::RemoveImage(image.clone()))
                .await;
            failures.extend(
                removed
                    .err()
                    .map(|fault| format!("not removed: {image}: {fault}")),
            );
        }
        if let (Some(logs), true) = (&self.logs, keep.is_empty()) {
            let removed = logs.remove().err();
            failures.extend(removed.map(|fault| {
                format!(
                    "not removed: {}: {fault}; try {}",
                    logs.path().display(),
                    self.hint()
                )
            }));
        }
        // What failed because the runtime went away meanwhile is tried again when it is back.
        match self.caller.call(None, Request::Version).await {
            Err(fault) if !failures.is_empty() && is_gone(fault.code) => {
                Attempt::Gone(failures.swap_remove(0))
            }
            Ok(_) | Err(_) => Attempt::Done(failures),
        }
    }

    fn hint(&self) -> String {
        format!("cri-event-conformance cleanup --run-id {}", self.run)
    }
}

/// Whether a runtime that answers so may be restarting: containerd 1.7 says UNKNOWN, "server is not
/// initialized yet", until it is up.
fn is_gone(code: StatusCode) -> bool {
    [StatusCode::UNAVAILABLE, StatusCode::UNKNOWN].contains(&code)
}
