//! Removes everything that a run has created, however the run ended.

use std::time::Duration;

use super::kubelet::KubeletGuard;
use crate::drive::{self, RecordingClient};
use crate::history::{Request, RunId, SandboxId, StatusCode};
use crate::host::{Kernel, LogDirectory};
use crate::limits::{self, TimeoutScale};
use crate::outcome::{NOT_CLEANED_UP, NOT_REMOVED};
use crate::workload::Registry;
use crate::{host, terminal};

/// The objects that a run has created, and how to remove them.
#[derive(Debug)]
pub(super) struct CleanUp {
    caller: RecordingClient,
    kernel: Kernel,
    run: RunId,
    /// The command that removes leftovers.
    again: String,
    /// The time to wait for a lost runtime to come back.
    patience: Duration,
    /// Whether to wait for a lost runtime at all.
    pub(super) waits: bool,
    /// The user's image, if the run had to pull it.
    pub(super) pulled: Option<String>,
    /// The registry of the suite's image, if a case needs it after the pull.
    pub(super) registry: Option<Registry>,
    /// The directory of its containers' logs, once it exists.
    pub(super) logs: Option<LogDirectory>,
    /// The kubelet of the node. A paused one is started last, at the latest when this is dropped.
    pub(super) kubelet: Option<KubeletGuard>,
}

enum Attempt {
    Done(Vec<String>),
    /// The runtime is lost, with its last error.
    Gone(String),
}

impl CleanUp {
    /// The clean-up of a run that has created only labelled pods so far.
    pub(super) fn new(
        (run, again): (&RunId, String),
        caller: &RecordingClient,
        kernel: &Kernel,
        timeout_scale: TimeoutScale,
    ) -> Self {
        Self {
            caller: caller.clone(),
            kernel: kernel.clone(),
            run: run.clone(),
            again,
            patience: timeout_scale.scaled(limits::RUNTIME_RETURN),
            waits: true,
            pulled: None,
            registry: None,
            logs: None,
            kubelet: None,
        }
    }

    /// Removes everything but these sandboxes and the images that they need, looks for a kubelet
    /// again, and starts a paused one; returns whether all is removed, and the errors.
    pub(super) async fn end(&mut self, keep: &[SandboxId]) -> (bool, Vec<String>) {
        let mut faults = self.all_but(keep).await;
        let removed = faults.is_empty();
        if let Some(guard) = self.kubelet.take() {
            faults.extend(guard.end(&self.caller).await);
        }
        (removed, faults)
    }

    /// Removes everything but these sandboxes and the images that they need; returns the leftovers,
    /// and how to remove them later.
    async fn all_but(&self, keep: &[SandboxId]) -> Vec<String> {
        // Objects of calls in progress are not listed yet.
        self.caller.settled().await;
        let began = host::now();
        let mut pause = tokio::time::interval(limits::RUNTIME_LOOK);
        loop {
            match self.attempt(keep).await {
                Attempt::Done(failures) => return failures,
                // A restarting runtime is back when it answers; there is no other signal.
                Attempt::Gone(_) if self.waits && host::elapsed(began) < self.patience => {
                    pause.tick().await;
                }
                Attempt::Gone(fault) => {
                    return vec![format!("{NOT_CLEANED_UP}{fault}; try {}", self.again)];
                }
            }
        }
    }

    async fn attempt(&self, keep: &[SandboxId]) -> Attempt {
        let place = (&self.caller, &self.kernel);
        let swept = match drive::sweep(place, &self.run, keep).await {
            Ok(swept) => swept,
            Err(fault) if is_gone(fault.fault.code) => return Attempt::Gone(fault.to_string()),
            Err(fault) => {
                return Attempt::Done(vec![format!("{NOT_CLEANED_UP}{fault}; try {}", self.again)]);
            }
        };
        for process in &swept.processes {
            let line = format!("killed {process}, which the runtime had left behind");
            terminal::say(&line);
        }
        let hint = |fault: &String| {
            let again = &self.again;
            format!(
                "{NOT_REMOVED}{fault}; try {again}, and if that fails, restart the runtime first"
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
                    .map(|fault| format!("{NOT_REMOVED}{image}: {fault}")),
            );
        }
        if let (Some(logs), true) = (&self.logs, keep.is_empty()) {
            let removed = logs.remove().err();
            failures.extend(removed.map(|fault| {
                format!(
                    "{NOT_REMOVED}{}: {fault}; try {}",
                    logs.path().display(),
                    self.again
                )
            }));
        }
        // Removals that failed because the runtime was lost are retried when it is back.
        match self.caller.call(None, Request::Version).await {
            Err(fault) if !failures.is_empty() && is_gone(fault.code) => {
                Attempt::Gone(failures.swap_remove(0))
            }
            Ok(_) | Err(_) => Attempt::Done(failures),
        }
    }
}

/// Whether an error can come from a restarting runtime: containerd 1.7 returns UNKNOWN, "server is
/// not initialized yet", until it is up.
fn is_gone(code: StatusCode) -> bool {
    [StatusCode::UNAVAILABLE, StatusCode::UNKNOWN].contains(&code)
}
