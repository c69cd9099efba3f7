//! Steps by which the host or the user disturbs containers, monitors and the runtime.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, keys};
use crate::case::validate::{Context, Walk};
use crate::case::{Need, Span, limits};
use crate::history::Signal;

keys! {
    /// Kill a container's process from the host.
    KillStep: "a container such as `{container: c}`" {
        /// The container.
        container: String,
    }

    /// Kill a sandbox's own process from the host.
    KillSandboxStep: "a sandbox such as `{sandbox: pod}`" {
        /// The sandbox.
        sandbox: String,
    }

    /// Send a signal to a container's process from the host, without waiting for its effect.
    SignalStep: "a container and a signal such as `{container: c, signal: SIGTERM}`" {
        /// The container.
        container: String,
        /// The signal.
        signal: ProcessSignal,
    }

    /// Take steps while a container is paused, which the CRI has no call for: the freezer of its
    /// cgroup holds its processes, as `runc pause` has it do. With cgroup v1 not even SIGKILL ends
    /// them. They run on when the steps are over.
    PauseStep: "a container and steps such as `{container: c, steps: […]}`" {
        /// The container.
        container: String,
        /// The steps.
        steps: Vec<Step>,
    }

    /// Kill the runtime's monitor of a container from the host: the parent of the container's
    /// process, such as containerd-shim, which all containers of the sandbox share, or conmon.
    KillMonitorStep: "a container such as `{container: c}`" {
        /// The container.
        container: String,
        /// The container's process is killed as well, while the monitor is frozen: it does not
        /// notice.
        with_container: bool,
    }

    /// Take steps while the runtime's monitor of a container is frozen by SIGSTOP: the parent of
    /// the container's process, such as containerd-shim, which all containers of the sandbox share,
    /// or conmon. It is continued when they are over.
    FreezeMonitorStep: "a container and steps such as `{container: c, steps: […]}`" {
        /// The container.
        container: String,
        /// The steps.
        steps: Vec<Step>,
    }

    /// Take steps while the file system is full on which the runtime's monitor of a container
    /// writes: conmon the exit code, containerd-shim the state of the sandbox. It has room again
    /// when they are over.
    FillDiskStep: "a container and steps such as `{container: c, steps: […]}`" {
        /// The container.
        container: String,
        /// The steps.
        steps: Vec<Step>,
    }

    /// Take steps while the host's wall clock is wrong. It is set right when they are over.
    StepClockStep: "a step of the clock such as `{back: 10s, steps: […]}`" {
        /// How far it is set back.
        back: Option<Duration>,
        /// How far it is set forward.
        forward: Option<Duration>,
        /// The steps.
        steps: Vec<Step>,
    }

    /// Run the user's command that runs a container outside the CRI, until the command ends.
    OutsideCriStep: "nothing, as in `outside-cri: {}`" {}

    /// End the runtime and start it again, by the user's commands. The event stream is closed
    /// before, and a new one is opened and proven live after.
    #[derive(Default)]
    RestartRuntimeStep: "how it ends, as in `restart-runtime: {by: kill}`" {
        /// How it ends.
        #[serde(default, skip_serializing_if = "RuntimeEndSpec::is_stop")]
        by: RuntimeEndSpec,
        /// The longest time that a conformant runtime may take to stop.
        within: Option<Duration>,
        /// How long it stays down, at least.
        down: Option<Duration>,
        /// The event stream is opened again as KEP-3386 plans it for a kubelet: at once when the
        /// runtime has ended, and then after pauses of 1 s, 2 s, 4 s and so on. The first attempt
        /// must succeed before which the runtime has answered a list.
        back_off: bool,
        /// Steps that begin before it ends, and whose calls are under way then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        during: Vec<Step>,
        /// Steps between its end and its start, which make no calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        meanwhile: Vec<Step>,
    }
}

impl KillStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::ContainerPid]);
        walk.container("container", &self.container);
    }
}

impl KillSandboxStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::HostPid]);
        walk.sandbox("sandbox", &self.sandbox);
    }
}

/// A signal that the host sends to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "a signal such as `SIGTERM`")]
pub enum ProcessSignal {
    /// `SIGHUP`.
    #[serde(rename = "SIGHUP")]
    Hangup,
    /// `SIGQUIT`.
    #[serde(rename = "SIGQUIT")]
    Quit,
    /// `SIGKILL`, which ends every process.
    #[serde(rename = "SIGKILL")]
    Kill,
    /// `SIGUSR1`.
    #[serde(rename = "SIGUSR1")]
    User1,
    /// `SIGUSR2`.
    #[serde(rename = "SIGUSR2")]
    User2,
    /// `SIGTERM`.
    #[serde(rename = "SIGTERM")]
    Terminate,
    /// `SIGCONT`, which lets a frozen process run on.
    #[serde(rename = "SIGCONT")]
    Continue,
    /// `SIGSTOP`, which freezes every process.
    #[serde(rename = "SIGSTOP")]
    Stop,
}

impl From<ProcessSignal> for Signal {
    fn from(signal: ProcessSignal) -> Self {
        match signal {
            ProcessSignal::Hangup => Self::HANGUP,
            ProcessSignal::Quit => Self::QUIT,
            ProcessSignal::Kill => Self::KILL,
            ProcessSignal::User1 => Self::USER_1,
            ProcessSignal::User2 => Self::USER_2,
            ProcessSignal::Terminate => Self::TERMINATE,
            ProcessSignal::Continue => Self::CONTINUE,
            ProcessSignal::Stop => Self::STOP,
        }
    }
}

impl SignalStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::ContainerPid]);
        walk.container("container", &self.container);
    }
}

impl PauseStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::ContainerPid]);
        walk.container("container", &self.container);
        walk.steps(&self.steps);
    }
}

impl KillMonitorStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::Monitor]);
        walk.container("container", &self.container);
    }
}

impl FreezeMonitorStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::Monitor]);
        walk.forbid_other_cases("the runtime may be slow for other cases, too");
        walk.container("container", &self.container);
        walk.steps(&self.steps);
    }
}

impl FillDiskStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::SmallDisk]);
        walk.forbid_other_cases("other cases would have no room, either");
        walk.container("container", &self.container);
        walk.steps(&self.steps);
    }
}

impl StepClockStep {
    /// The change of the clock in nanoseconds; negative for back.
    pub fn by_ns(&self) -> i64 {
        let ns = |span: Option<Duration>| {
            let ns = span.unwrap_or_default().as_nanos();
            i64::try_from(ns).unwrap_or(i64::MAX)
        };
        ns(self.forward).saturating_sub(ns(self.back))
    }

    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::ClockSteps]);
        walk.forbid_other_cases("the clock would be wrong for other cases, too");
        if self.back.is_some() == self.forward.is_some() {
            walk.error("the clock is set either `back` or `forward`");
        }
        let most = limits::CLOCK_STEP;
        for (key, span) in [("back", self.back), ("forward", self.forward)] {
            if span.is_some_and(|span| span > most) {
                let message = format!("the clock can be wrong by {most:?} at most");
                walk.error_at(key, message);
            }
        }
        walk.steps(&self.steps);
    }
}

impl OutsideCriStep {
    #[expect(clippy::unused_self, reason = "each step has this function")]
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::OutsideCri]);
    }
}

/// How the runtime ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(expecting = "how the runtime ends: `stop` or `kill`")]
pub enum RuntimeEndSpec {
    /// It is stopped, as by `systemctl stop`.
    #[default]
    Stop,
    /// It is killed by SIGKILL.
    Kill,
}

impl RuntimeEndSpec {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_stop(&self) -> bool {
        *self == Self::Stop
    }
}

impl RestartRuntimeStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::RuntimeRestart]);
        walk.needs((self.by == RuntimeEndSpec::Kill).then_some(Need::RuntimeKill));
        walk.forbid_listeners();
        walk.span("within", self.within);
        walk.span("down", self.down);
        if self.within.is_some() && self.by == RuntimeEndSpec::Kill {
            walk.error_at("within", "a runtime that is killed ends at once");
        }
        if !self.during.is_empty() {
            let at_once = Context {
                parallel: true,
                ..walk.around
            };
            walk.within(at_once, |walk| walk.nested_scope("during", &self.during));
        }
        if self.meanwhile.iter().any(Step::makes_calls) {
            walk.error_at("meanwhile", "no call can be made while the runtime is down")
                .help("take such steps before or after");
        }
        walk.optional("meanwhile", &self.meanwhile);
    }
}
