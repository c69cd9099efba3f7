//! The step words of a case, in a file for each family: the keys of each word, and its rule, which
//! checks the keys and declares their needs. `drive::steps` has a file of the same name with the
//! effects.

mod blocks;
mod calls;
mod faults;
mod observe;
mod waits;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validate::Walk;

pub use blocks::*;
pub use calls::*;
pub use faults::*;
pub use observe::*;
pub use waits::*;

/// Defines mappings of a case file, each with its form, for error messages. A key of the type
/// `bool` or [`CallOutcome`], of an `Option` or of a map may be absent.
macro_rules! keys {
    ($($(#[$meta:meta])* $name:ident: $form:literal { $($keys:tt)* })+) => {
        $(keys! { [$(#[$meta])* $name: $form] [] $($keys)* })+
    };
    ([$(#[$meta:meta])* $name:ident: $form:literal] [$($done:tt)*]) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = $form)]
        pub struct $name { $($done)* }
    };
    ($of:tt $done:tt $(#[$meta:meta])* $key:ident: bool, $($rest:tt)*) => {
        keys! { $of $done [$(#[$meta])* #[serde(default)] pub $key: bool] $($rest)* }
    };
    ($of:tt $done:tt $(#[$meta:meta])* $key:ident: CallOutcome, $($rest:tt)*) => {
        keys! { $of $done [$(#[$meta])* #[serde(default)] pub $key: CallOutcome] $($rest)* }
    };
    ($of:tt $done:tt $(#[$meta:meta])* $key:ident: Duration, $($rest:tt)*) => {
        keys! { $of $done [$(#[$meta])* #[serde(with = "Span")] pub $key: Duration] $($rest)* }
    };
    ($of:tt $done:tt $(#[$meta:meta])* $key:ident: Option<Duration>, $($rest:tt)*) => {
        keys! { $of $done [
            $(#[$meta])*
            #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
            pub $key: Option<Duration>
        ] $($rest)* }
    };
    ($of:tt $done:tt $(#[$meta:meta])* $key:ident: Option<$type:ty>, $($rest:tt)*) => {
        keys! { $of $done [
            $(#[$meta])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $key: Option<$type>
        ] $($rest)* }
    };
    ($of:tt $done:tt $(#[$meta:meta])* $key:ident: BTreeMap<$($type:ty),+>, $($rest:tt)*) => {
        keys! { $of $done [
            $(#[$meta])*
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub $key: BTreeMap<$($type),+>
        ] $($rest)* }
    };
    ($of:tt $done:tt $(#[$meta:meta])* $key:ident: EventKind, $($rest:tt)*) => {
        keys! { $of $done [
            $(#[$meta])*
            #[serde(deserialize_with = "kind_words::one")]
            #[schemars(with = "kind_words::Word")]
            pub $key: EventKind
        ] $($rest)* }
    };
    ($of:tt [$($done:tt)*] [$($key:tt)*] $($rest:tt)*) => {
        keys! { $of [$($done)* $($key)*,] $($rest)* }
    };
    ($of:tt $done:tt $(#[$meta:meta])* $key:ident: $type:ty, $($rest:tt)*) => {
        keys! { $of $done [$(#[$meta])* pub $key: $type] $($rest)* }
    };
}
pub(super) use keys;

/// Gives another macro the list of all step words: a line for each, with its meaning, the word and
/// its type.
macro_rules! for_each_step {
    ($then:ident) => {
        $then! {
            /// Run a sandbox.
            "sandbox" Sandbox(SandboxStep),
            /// Create a container.
            "create" Create(CreateStep),
            /// Start a container.
            "start" Start(StartStep),
            /// Stop a container: the stop signal, and after the grace period the kill.
            "stop" Stop(StopStep),
            /// Remove a container.
            "remove" Remove(RemoveStep),
            /// Stop a sandbox.
            "stop-sandbox" StopSandbox(StopSandboxStep),
            /// Remove a sandbox.
            "remove-sandbox" RemoveSandbox(RemoveSandboxStep),
            /// Kill a sandbox's own process from the host.
            "kill-sandbox" KillSandbox(KillSandboxStep),
            /// Kill a container's process from the host.
            "kill" Kill(KillStep),
            /// Send a signal to a container's process from the host.
            "signal" Signal(SignalStep),
            /// Take steps while a container is paused from the host.
            "pause" Pause(PauseStep),
            /// Kill the runtime's monitor of a container from the host.
            "kill-monitor" KillMonitor(KillMonitorStep),
            /// Take steps while the runtime's monitor of a container is frozen.
            "freeze-monitor" FreezeMonitor(FreezeMonitorStep),
            /// Take steps while the runtime's monitor of a container has no room on the disk.
            "fill-disk" FillDisk(FillDiskStep),
            /// Wait until an event has arrived.
            "await" Await(AwaitStep),
            /// Wait until the host shows no process of a container.
            "process-exited" ProcessExited(ProcessExitedStep),
            /// List a sandbox's containers and read the status of each.
            "relist" Relist(RelistStep),
            /// Close the event stream and open a new one, proven live before the next step.
            "resubscribe" Resubscribe(ResubscribeStep),
            /// Open a subscription in addition to the stream that all cases read.
            "subscribe" Subscribe(SubscribeStep),
            /// Close a subscription.
            "unsubscribe" Unsubscribe(UnsubscribeStep),
            /// Let a subscriber that has stopped reading read on.
            "resume" Resume(ResumeStep),
            /// Wait until the runtime has ended a subscription.
            "await-end" AwaitEnd(AwaitEndStep),
            /// Require that for a time no event arrives and no stream ends.
            "stays-silent" StaysSilent(StaysSilentStep),
            /// Take steps each call of which must return within a time.
            "calls-return-within" CallsReturnWithin(CallsReturnWithinStep),
            /// Take lists of steps concurrently. Names bound in one are local to it.
            "parallel" Parallel(ParallelStep),
            /// List containers and sandboxes by each filter that the CRI has.
            "list-with-filters" ListWithFilters(ListWithFiltersStep),
            /// Take steps once for each runtime handler that `Status` reports.
            "for-each-handler" ForEachHandler(ForEachHandlerStep),
            /// Take steps, and ask the runtime the moment an event arrives.
            "on-event" OnEvent(OnEventStep),
            /// Take steps, and make calls repeatedly until they are over.
            "poll-during" PollDuring(PollDuringStep),
            /// Set resources of a container.
            "update" Update(UpdateStep),
            /// Make a checkpoint of a container, which runs on.
            "checkpoint" Checkpoint(CheckpointStep),
            /// Run a command in a container.
            "exec" Exec(ExecStep),
            /// Make a call that no other step makes, by the name of its method in the CRI.
            "call" Call(CallStep),
            /// Take steps as another client of the runtime.
            "another-client" AnotherClient(AnotherClientStep),
            /// Take steps while the host's wall clock is wrong.
            "step-clock" StepClock(StepClockStep),
            /// Run a container that is not created through the CRI.
            "outside-cri" OutsideCri(OutsideCriStep),
            /// End the runtime and start it again.
            "restart-runtime" RestartRuntime(RestartRuntimeStep),
            /// Count resources of the runtime or of the case's pods.
            "measure" Measure(MeasureStep),
            /// Take steps several times.
            "repeat" Repeat(RepeatStep),
        }
    };
}
pub(crate) use for_each_step;

macro_rules! define_step {
    ($($(#[$doc:meta])* $word:literal $variant:ident($shape:ty),)+) => {
        /// One thing to do.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(expecting = "a step such as `sandbox: {as: pod}`")]
        pub enum Step {
            $(
                $(#[$doc])*
                #[serde(rename = $word)]
                $variant($shape),
            )+
        }

        impl Step {
            /// The word that names the step in a case file.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $word,)+
                }
            }

            /// Reports the problems of the keys, and declares the needs, names and calls of the
            /// step.
            pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
                match self {
                    $(Self::$variant(step) => step.check(walk),)+
                }
            }
        }
    };
}
for_each_step!(define_step);

impl Step {
    /// Whether it only says how the steps inside it are taken, and has no effect itself.
    pub fn is_block(&self) -> bool {
        matches!(
            self,
            Self::Parallel(_)
                | Self::Repeat(_)
                | Self::AnotherClient(_)
                | Self::CallsReturnWithin(_)
                | Self::StepClock(_)
        )
    }

    /// Whether it makes calls to the runtime.
    fn makes_calls(&self) -> bool {
        let without = matches!(
            self,
            Self::Kill(_) | Self::KillSandbox(_) | Self::Pause(_) | Self::ProcessExited(_)
        );
        !without
    }

    /// Whether it has a use in a case about a runtime without events.
    pub(super) fn works_without_events(&self) -> bool {
        match self {
            Self::Subscribe(_) | Self::Unsubscribe(_) | Self::AwaitEnd(_) => true,
            Self::Call(step) => step.method == Method::Version,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::case::diagnose::Diagnostic;
    use crate::case::{Case, Need, parse};

    /// A case with these keys and this one step more.
    fn case(keys: &str, step: &str) -> Result<Case, Vec<Diagnostic>> {
        let text = format!(
            "id: ORD-01\ntitle: A claim.\nwhy: Someone is harmed.\nsources: [the CRI]\n\
             levels: {{cache: must}}\nexclusive: true\n{keys}steps:\n  - sandbox: {{as: pod}}\n  \
             - create: {{as: c, in: pod, workload: until-term}}\n  - {step}\nexpect:\n  \
             - never: {{of: c, event: deleted}}\n"
        );
        parse(Path::new("order/needs.yaml"), &text)
    }

    #[track_caller]
    fn check(keys: &str, step: &str, expected: &[Need]) {
        let case = case(keys, step);
        assert_eq!(
            case.map(|case| case.needs).as_deref(),
            Ok(expected),
            "{step}"
        );
    }

    #[test]
    fn a_subscriber_that_does_not_read_is_found_in_blocks_too() {
        let stalls = |step: &str| {
            let case =
                case("needs: [broadcast]\n", step).unwrap_or_else(|found| panic!("{found:?}"));
            case.stalls_a_subscriber
        };
        assert!(stalls("subscribe: {as: s, stalls: true}"));
        let inside = "another-client: {steps: [{subscribe: {as: s, stalls: true}}]}";
        assert!(stalls(inside));
        assert!(!stalls("subscribe: {as: s}"));
    }

    #[test]
    fn needs_follow_from_the_steps() {
        for (step, needs) in [
            ("sandbox: {as: s, own-network: true}", &[Need::Network][..]),
            ("sandbox: {as: s, faulty: true}", &[Need::FaultyHandler]),
            (
                "sandbox: {as: s, memory-mib: 64}",
                &[Need::MemoryLimit, Need::PodCgroup],
            ),
            (
                "create: {as: d, in: pod, workload: until-term, memory-mib: 16, oom-group: true}",
                &[Need::MemoryLimit, Need::CgroupV2],
            ),
            (
                "create: {as: d, in: pod, workload: until-term, stop-signal: SIGUSR1}",
                &[Need::StopSignal],
            ),
            (
                "create: {as: d, in: pod, workload: until-term, flaw: crash-at-kill}",
                &[Need::FaultyHandler],
            ),
            (
                "create: {as: d, in: pod, workload: {dump-core: {signal: 11}}}",
                &[Need::CorePipe],
            ),
            ("kill-sandbox: {sandbox: pod}", &[Need::HostPid]),
            ("kill: {container: c}", &[Need::ContainerPid]),
            (
                "signal: {container: c, signal: SIGSTOP}",
                &[Need::ContainerPid],
            ),
            ("process-exited: {container: c}", &[Need::ContainerPid]),
            ("kill-monitor: {container: c}", &[Need::Monitor]),
            (
                "freeze-monitor: {container: c, steps: [{kill: {container: c}}]}",
                &[Need::Monitor, Need::ContainerPid],
            ),
            (
                "fill-disk: {container: c, steps: [{kill: {container: c}}]}",
                &[Need::SmallDisk, Need::ContainerPid],
            ),
            (
                "measure: {of: log, steps: [{kill: {container: c}}]}",
                &[Need::RuntimeLog, Need::ContainerPid],
            ),
            (
                "list-with-filters: {sandbox: pod, streamed: true}",
                &[Need::StreamedLists],
            ),
            (
                "for-each-handler: {steps: [{sandbox: {as: s}}]}",
                &[Need::Handlers],
            ),
            (
                "step-clock: {back: 10s, steps: [{kill: {container: c}}]}",
                &[Need::ClockSteps, Need::ContainerPid],
            ),
            ("outside-cri: {}", &[Need::OutsideCri]),
            ("restart-runtime: {}", &[Need::RuntimeRestart]),
            ("measure: {of: pods}", &[Need::RuntimeProcess]),
            ("relist: {sandbox: pod}", &[]),
        ] {
            check("", step, needs);
        }
    }

    #[test]
    fn pauses_and_checkpoints_have_needs() {
        for (step, needs) in [
            (
                "pause: {container: c, steps: [{relist: {sandbox: pod}}]}",
                &[Need::ContainerPid][..],
            ),
            ("checkpoint: {container: c}", &[Need::Checkpoint]),
            (
                "pause: {container: c, steps: [{checkpoint: {container: c}}, \
                 {create: {as: d, in: pod, workload: until-term, checkpoint-of: c}}]}",
                &[Need::ContainerPid, Need::Checkpoint, Need::Restore],
            ),
        ] {
            check("", step, needs);
        }
    }

    #[test]
    fn stated_needs_come_first() {
        let kill = "kill: {container: c}";
        let needs = [Need::Broadcast, Need::ContainerPid];
        check("needs: [broadcast]\n", kill, &needs);
        check(
            "provokes: oom-kill\n",
            "relist: {sandbox: pod}",
            &[Need::MemoryLimit],
        );
    }
}
