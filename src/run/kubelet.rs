//! A run and the kubelet of its node, which removes unknown pods: the run refuses to begin, or
//! pauses the kubelet.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::{PrepareError, RunOptions};
use crate::case::Tier;
use crate::drive::{self, Allowance, ForeignPods, RecordingClient};
use crate::history::{HostInstant, SandboxId};
use crate::host::{self, Kernel, KubeletProcess, PausedKubelet};
use crate::outcome::DISTURBED;
use crate::{limits, terminal};

/// The state of the node's kubelet; dropping it starts a kubelet that it has paused.
#[derive(Debug)]
pub(super) struct KubeletGuard {
    kernel: Kernel,
    socket: Option<PathBuf>,
    /// The evidence of a kubelet at the beginning of the run, which the user has allowed.
    allowed: Option<String>,
    /// The kubelet's pods at the beginning of the run.
    pods: BTreeSet<SandboxId>,
    pause: Option<Pause>,
}

#[derive(Debug)]
struct Pause {
    paused: PausedKubelet,
    overran: Arc<AtomicBool>,
    limit: AbortHandle,
    began: HostInstant,
}

/// Whether the selected cases end before a node without a kubelet is marked not ready.
pub(super) fn is_short_enough(options: &RunOptions) -> bool {
    let tier = options.selection.tier;
    !options.pause_kubelet || tier.is_some_and(|tier| tier <= Tier::Core)
}

/// Pauses the kubelet that uses the tested runtime if the user requests it. Fails if it runs and is
/// neither paused nor allowed; or if pods of an undetected kubelet exist.
pub(super) async fn guard(
    options: &RunOptions,
    kernel: &Kernel,
    foreign: ForeignPods,
    stop: &CancellationToken,
) -> Result<KubeletGuard, PrepareError> {
    let socket = options.target.socket();
    let mut guard = KubeletGuard {
        kernel: kernel.clone(),
        socket: socket.map(ToOwned::to_owned),
        allowed: None,
        pods: foreign.kubelets,
        pause: None,
    };
    let allows = options.drive.allow.contains(&Allowance::Kubelet);
    match kernel.kubelet(socket) {
        Some(kubelet) if options.pause_kubelet => {
            let paused = PausedKubelet::pause(&kubelet, socket, limits::KUBELET_PAUSE)?;
            if let Some(other) = kernel.kubelet(socket) {
                let unit = paused.unit();
                let sign = format!("{}, though {unit} was stopped", sign_of(&other));
                return Err(PrepareError::Kubelet(sign));
            }
            guard.pause = Some(Pause::new(paused, stop));
        }
        Some(kubelet) if allows => guard.allowed = Some(sign_of(&kubelet)),
        Some(kubelet) => return Err(PrepareError::Kubelet(sign_of(&kubelet))),
        None if guard.pods.is_empty() => {
            if options.pause_kubelet {
                // The timer of a run that was killed would start it during this one.
                PausedKubelet::check_none()?;
            }
        }
        None => {
            let pods = guard.pods.len();
            let hidden = match socket {
                Some(socket) => !host::is_server_visible(socket).await,
                None => false,
            };
            if !allows {
                return Err(PrepareError::PodsOfKubelet { pods, hidden });
            }
            let sign = format!("{pods} ready pods have a kubelet's labels, and it may be hidden");
            guard.allowed = hidden.then_some(sign);
        }
    }
    Ok(guard)
}

fn sign_of(kubelet: &KubeletProcess) -> String {
    format!("process {} is `{}`", kubelet.pid, kubelet.name)
}

impl KubeletGuard {
    /// Starts a paused kubelet; returns the disturbances of the run, which are a kubelet that ran
    /// beside it or was started meanwhile, and for how long one was paused.
    pub(super) async fn end(self, caller: &RecordingClient) -> (Vec<String>, Duration) {
        let mut faults = Vec::new();
        let seen = match self.kernel.kubelet(self.socket.as_deref()) {
            Some(kubelet) => Some(sign_of(&kubelet)),
            None if self.kernel.is_simulated() => None,
            None => self.new_pods(caller).await,
        };
        faults.extend(match (self.allowed, seen) {
            (Some(sign), _) => Some(format!("{DISTURBED}a kubelet ran beside this run: {sign}")),
            (None, Some(sign)) => Some(format!(
                "{DISTURBED}a kubelet was started during the run: {sign}"
            )),
            (None, None) => None,
        });
        for fault in &mut faults {
            fault.push_str(
                ". It removes pods that it does not know, so that nothing here proves anything of \
                 the runtime",
            );
        }
        let (of_pause, paused) = self.pause.map(Pause::end).unwrap_or_default();
        faults.extend(of_pause);
        (faults, paused)
    }

    /// The evidence that a kubelet has created pods since.
    async fn new_pods(&self, caller: &RecordingClient) -> Option<String> {
        let now = drive::foreign_pods(caller).await.ok()?;
        let new = now.kubelets.difference(&self.pods).count();
        (new > 0).then(|| format!("{new} new pods have a kubelet's labels"))
    }
}

impl Pause {
    /// Stops the run if it takes too long.
    fn new(paused: PausedKubelet, stop: &CancellationToken) -> Self {
        terminal::say(&format!(
            "{} is stopped for this run; at the latest, a timer starts it in {:?}",
            paused.unit(),
            limits::KUBELET_PAUSE
        ));
        let began = host::now();
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
            overran,
            limit: limit.abort_handle(),
            began,
        }
    }

    /// Starts the kubelet; returns the errors of the pause, and its length.
    fn end(self) -> (Vec<String>, Duration) {
        self.limit.abort();
        let unit = self.paused.unit().to_owned();
        let mut faults = Vec::new();
        if self.overran.load(Ordering::Relaxed) {
            let bound = limits::PAUSED_RUN;
            faults.push(format!(
                "stopped: the run took longer than {bound:?}, for which a kubelet may be paused"
            ));
        }
        match self.paused.resume() {
            Ok(()) => terminal::say(&format!("{unit} is started again")),
            Err(fault) => faults.push(format!(
                "{unit} does not start: {fault}; its timer tries it again, see: systemctl status \
                 {unit}"
            )),
        }
        (faults, host::elapsed(self.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Body, Entry, RunEnd, Seq};
    use crate::verdicts::{Scope, Verdicts};

    #[test]
    fn a_kubelet_is_paused_for_the_small_tiers_only() {
        let of = |pause_kubelet, tier| {
            let mut options = RunOptions {
                pause_kubelet,
                ..RunOptions::default()
            };
            options.selection.tier = tier;
            is_short_enough(&options)
        };
        assert!(of(true, Some(Tier::Core)));
        assert!(of(true, Some(Tier::Smoke)));
        for tier in [Some(Tier::Extended), Some(Tier::Full), None] {
            assert!(!of(true, tier));
            assert!(of(false, tier));
        }
    }

    #[test]
    fn a_report_says_for_how_long_a_kubelet_was_paused() {
        let notes = |seconds| {
            let end = RunEnd {
                kubelet_paused: Duration::from_secs(seconds),
                ..RunEnd::default()
            };
            let mut verdicts = Verdicts::new(Scope::default());
            for body in [Body::RunBegan(Arc::default()), Body::RunEnded(end)] {
                let (seq, at) = (Seq::default(), HostInstant::default());
                verdicts.push(&Arc::new(Entry { seq, at, body }));
            }
            verdicts.report(None).notes
        };
        assert_eq!(notes(0), Vec::<String>::new());
        assert_eq!(notes(40), ["the kubelet was paused for 40.0 s"]);
        let warned = "warning: the kubelet was paused for 41.0 s, and after 50 s its node";
        assert!(notes(41)[0].starts_with(warned));
    }

    #[test]
    fn a_run_that_takes_too_long_ends_before_its_timer() {
        let ended = limits::PAUSED_RUN + limits::RUNTIME_RETURN;
        assert!(ended < limits::KUBELET_PAUSE);
    }
}
