//! Whether containers can have a stop signal of their own (KEP-4960).

use std::sync::Arc;
use std::time::Duration;

use super::Unavailable;
use crate::drive::session::Session;
use crate::history::{ContainerSpec, ContainerState, Reply, Request, Signal};
use crate::workload::Workload;

/// What a trial container exits with by the signal that it waits for.
const HEEDED_CODE: u8 = 42;
const HEEDED: i32 = HEEDED_CODE as i32;
/// What it exits with by SIGTERM instead.
const TERMINATED: i32 = 143;
/// How long a stop of a trial container waits for its end before it is killed.
const SIGNAL_GRACE: Duration = Duration::from_secs(2);
/// How many trial containers may miss their signal.
const SIGNAL_TRIALS: u32 = 3;

/// What a container showed that was stopped, with a stop signal of its own.
#[derive(Clone, Copy, Debug, Default)]
struct SignalTrial {
    /// Whether `ContainerStatus` reports the signal.
    is_reported: bool,
    exit_code: Option<i32>,
}

/// A runtime knows a container's stop signal if it reports it in the container's status, or if a
/// container ends by it that has another exit code for SIGTERM: CRI-O does not report it.
pub(super) async fn probe_stop_signal(session: &Session) -> Result<(), Unavailable> {
    let mut is_reported = false;
    for attempt in 0..SIGNAL_TRIALS {
        let trial = try_stop_signal(session, attempt).await?;
        is_reported |= trial.is_reported;
        let sent = match trial.exit_code {
            Some(HEEDED) => true,
            Some(TERMINATED) => false,
            // A signal before the program has set how it takes it is lost.
            _ => continue,
        };
        session.probed.set_stop_signal_sent(sent);
        if sent || is_reported {
            return Ok(());
        }
        return Err(Unavailable::because(
            "a stop sends SIGTERM whatever stop signal the container was given, as was measured \
             when the run began: the runtime does not know this field of the CRI, which came with \
             Kubernetes 1.33 (KEP-4960), and to containerd with containerd/containerd#11774",
        ));
    }
    if is_reported {
        return Ok(());
    }
    let lack = format!(
        "which signal a stop sends could not be measured when the run began: it was lost in \
         {SIGNAL_TRIALS} of {SIGNAL_TRIALS} containers"
    );
    Err(lack.into())
}

/// Stops a trial container that has a stop signal of its own.
async fn try_stop_signal(session: &Session, attempt: u32) -> Result<SignalTrial, String> {
    let (sandbox, pod) = session
        .marker_pod()
        .await
        .map_err(|fault| fault.to_string())?;
    let heed = Workload::UntilSignal {
        signal: 10,
        code: HEEDED_CODE,
    };
    let spec = ContainerSpec {
        stop_signal: Signal::USER_1,
        ..session.container_spec((&sandbox, &pod), "stop-signal", attempt, &heed)
    };
    let create = Request::CreateContainer(Arc::new(spec));
    let refused = |fault| format!("no container can have a stop signal: {fault}");
    let Reply::Container(container) = session.call(None, create).await.map_err(refused)? else {
        return Err("CreateContainer was answered by something else".to_owned());
    };
    let mut trial = SignalTrial::default();
    for request in [
        Request::StartContainer(container.clone()),
        Request::StopContainer {
            container: container.clone(),
            grace: SIGNAL_GRACE,
        },
        Request::ContainerStatus(container.clone()),
    ] {
        let method = request.method();
        let failed = |fault| format!("{method} of a container with a stop signal: {fault}");
        if let Reply::ContainerStatus(report) = session.call(None, request).await.map_err(failed)? {
            let exited = report.status.state == ContainerState::Exited;
            trial = SignalTrial {
                is_reported: report.stop_signal == Signal::USER_1,
                exit_code: exited.then_some(report.status.exit_code),
            };
        }
    }
    // Leftovers are swept at the end of the run.
    let _ = session
        .call(None, Request::RemoveContainer(container))
        .await;
    Ok(trial)
}
