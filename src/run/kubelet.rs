//! A run and the kubelet of its node, which removes pods that it does not know: the run refuses to
//! begin, or pauses the kubelet.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::{PrepareError, RunOptions};
use crate::case::Tier;
use crate::drive::{Allowance, ForeignPods};
use crate::host::{Kernel, KubeletProcess, PausedKubelet};
use crate::{limits, terminal};

/// The pause of the node's kubelet, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct KubeletPause {
    paused: PausedKubelet,
    kernel: Kernel,
    socket: Option<PathBuf>,
    overran: Arc<AtomicBool>,
    limit: AbortHandle,
}

/// Whether the selected cases are over before a node without a kubelet has to be given up.
pub(super) fn is_short_enough(options: &RunOptions) -> bool {
    !options.drive.pause_kubelet || options.selection.tier == Some(Tier::Core)
}

/// Pauses the kubelet that uses the tested runtime if the user wants that; none if there is none,
/// or if the user allows it to run.
///
/// # Errors
/// If it runs, and cannot or shall not be paused.
pub(super) fn pause_or_refuse(
    options: &RunOptions,
    kernel: &Kernel,
    foreign: ForeignPods,
    stop: &CancellationToken,
) -> Result<Option<KubeletPause>, PrepareError> {
    let socket = options.target.socket();
    let found = kernel.kubelet(socket);
    match found {
        Some(kubelet) if options.drive.pause_kubelet => {
            let paused = PausedKubelet::pause(&kubelet, socket, limits::KUBELET_PAUSE)?;
            if let Some(other) = kernel.kubelet(socket) {
                let unit = paused.unit();
                let sign = format!("{}, though {unit} was stopped", sign_of(&other));
                return Err(PrepareError::Kubelet(sign));
            }
            let socket = socket.map(ToOwned::to_owned);
            Ok(Some(KubeletPause::new(paused, kernel, socket, stop)))
        }
        _ if options.drive.allow.contains(&Allowance::Kubelet) => Ok(None),
        Some(kubelet) => Err(PrepareError::Kubelet(sign_of(&kubelet))),
        None if foreign.kubelets > 0 => Err(PrepareError::Kubelet(format!(
            "{} ready pods have a kubelet's labels",
            foreign.kubelets
        ))),
        None if options.drive.pause_kubelet => {
            // The timer of a run that was killed would start it during this one.
            PausedKubelet::check_none()?;
            Ok(None)
        }
        None => Ok(None),
    }
}

fn sign_of(kubelet: &KubeletProcess) -> String {
    format!("process {} is `{}`", kubelet.pid, kubelet.name)
}

impl KubeletPause {
    /// Stops the run if it takes too long.
    fn new(
        paused: PausedKubelet,
        kernel: &Kernel,
        socket: Option<PathBuf>,
        stop: &CancellationToken,
    ) -> Self {
        terminal::say(&format!(
            "{} is stopped for this run; at the latest, a timer starts it in {:?}",
            paused.unit(),
            limits::KUBELET_PAUSE
        ));
        let overran = Arc::new(AtomicBool::new(false));
        let (stop, flag) = (stop.clone(), overran.clone());
        let limit = tokio::spawn(async move {
            // Only this limit ends the wait.
            let wait = tokio::time::timeout(limits::PAUSED_RUN, std::future::pending::<()>());
            drop(wait.await);
            flag.store(true, Ordering::Relaxed);
            stop.cancel();
        });
        Self {
            paused,
            kernel: kernel.clone(),
            socket,
            overran,
            limit: limit.abort_handle(),
        }
    }

    /// Starts the kubelet; returns what was wrong with the pause.
    pub(super) fn end(self) -> Vec<String> {
        self.limit.abort();
        let unit = self.paused.unit().to_owned();
        let mut faults = Vec::new();
        if self.overran.load(Ordering::Relaxed) {
            let bound = limits::PAUSED_RUN;
            faults.push(format!(
                "stopped: the run took longer than {bound:?}, for which a kubelet may be paused"
            ));
        }
        if self.kernel.kubelet(self.socket.as_deref()).is_some() {
            faults.push(
                "a kubelet was started during the run, and may have removed pods of the run"
                    .to_owned(),
            );
        }
        match self.paused.resume() {
            Ok(()) => terminal::say(&format!("{unit} is started again")),
            Err(fault) => faults.push(format!(
                "{unit} does not start: {fault}; its timer tries it again, see: systemctl status \
                 {unit}"
            )),
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_is_paused_for_the_core_tier_only() {
        let of = |pause_kubelet, tier| {
            let mut options = RunOptions::default();
            options.drive.pause_kubelet = pause_kubelet;
            options.selection.tier = tier;
            is_short_enough(&options)
        };
        assert!(of(true, Some(Tier::Core)));
        for tier in [Some(Tier::Extended), Some(Tier::Full), None] {
            assert!(!of(true, tier));
            assert!(of(false, tier));
        }
    }

    #[test]
    fn a_run_that_takes_too_long_ends_before_its_timer() {
        let ended = limits::PAUSED_RUN + limits::RUNTIME_RETURN;
        assert!(ended < limits::KUBELET_PAUSE);
    }
}
