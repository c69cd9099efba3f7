//! What the names of a case stand for while its steps are done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::caller::Caller;
use crate::case::{
    ChildEatSpec, Delay, DieSpec, EatOnTermSpec, EatSpec, ExitAtSpec, ExitSpec, HeedSpec, Number,
    WorkloadSpec,
};
use crate::history::{
    ContainerId, ContainerSpec, HostInstant, SandboxId, SandboxSpec, SubscriptionId,
};
use crate::workload::Workload;

/// The names that one line of execution sees: a round of a `repeat` has a copy of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    sandboxes: BTreeMap<String, (SandboxId, Arc<SandboxSpec>)>,
    containers: BTreeMap<String, (ContainerId, Arc<ContainerSpec>)>,
    subscriptions: BTreeMap<String, SubscriptionId>,
    item: Option<u8>,
    handler: Option<String>,
    /// How soon each call must return.
    prompt: Option<Duration>,
    /// Who makes the calls, if it is another client.
    client: Option<Caller>,
    /// When the steps began.
    began: HostInstant,
    /// By how many percent the time that workloads take is stretched, if by more than 100.
    timeout_percent: u32,
}

impl Scope {
    /// One in which there is nothing yet, at the beginning of the steps.
    pub(super) fn beginning(began: HostInstant, timeout_percent: u32) -> Self {
        Self {
            began,
            timeout_percent,
            ..Self::default()
        }
    }

    pub(super) fn with_item(mut self, item: Option<u8>) -> Self {
        self.item = item.or(self.item);
        self
    }

    pub(super) fn with_handler(mut self, handler: String) -> Self {
        self.handler = Some(handler);
        self
    }

    /// The runtime handler that all sandboxes have here, if they do.
    pub(super) fn handler(&self) -> Option<&String> {
        self.handler.as_ref()
    }

    pub(super) fn bind_sandbox(&mut self, name: &str, id: SandboxId, spec: Arc<SandboxSpec>) {
        self.sandboxes.insert(name.to_owned(), (id, spec));
    }

    pub(super) fn bind_container(&mut self, name: &str, id: ContainerId, spec: Arc<ContainerSpec>) {
        self.containers.insert(name.to_owned(), (id, spec));
    }

    pub(super) fn bind_subscription(&mut self, name: &str, id: SubscriptionId) {
        self.subscriptions.insert(name.to_owned(), id);
    }

    pub(super) fn subscription(&self, name: &str) -> Option<SubscriptionId> {
        self.subscriptions.get(name).copied()
    }

    /// Sets how soon each call must return, and returns how it was before.
    pub(super) fn set_prompt(&mut self, prompt: Option<Duration>) -> Option<Duration> {
        std::mem::replace(&mut self.prompt, prompt)
    }

    /// Sets who makes the calls, and returns who did before.
    pub(super) fn set_client(&mut self, client: Option<Caller>) -> Option<Caller> {
        std::mem::replace(&mut self.client, client)
    }

    /// Who makes the calls, if it is another client than the run.
    pub(super) fn client(&self) -> Option<&Caller> {
        self.client.as_ref()
    }

    pub(super) fn prompt(&self) -> Option<Duration> {
        self.prompt
    }

    pub(super) fn sandbox(&self, name: &str) -> Option<&(SandboxId, Arc<SandboxSpec>)> {
        self.sandboxes.get(name)
    }

    pub(super) fn container(&self, name: &str) -> Option<&ContainerId> {
        self.containers.get(name).map(|(id, _)| id)
    }

    /// How a container was asked for.
    pub(super) fn container_spec(&self, name: &str) -> Option<&Arc<ContainerSpec>> {
        self.containers.get(name).map(|(_, spec)| spec)
    }

    /// The id that events about this name carry.
    pub(super) fn subject(&self, name: &str) -> Option<ContainerId> {
        let container = self.container(name).cloned();
        container.or_else(|| self.sandbox(name).map(|(id, _)| ContainerId::from(id)))
    }

    pub(super) fn workload(&self, spec: &WorkloadSpec) -> Workload {
        match spec {
            WorkloadSpec::Exit(ExitSpec { code, after }) => Workload::Exit {
                code: self.number(*code),
                after: self.delay(*after),
            },
            WorkloadSpec::ExitAt(ExitAtSpec { code, time }) => Workload::ExitAt {
                code: self.number(*code),
                unix_ms: unix_ms(self.began) + millis(self.stretched(*time)),
            },
            WorkloadSpec::Leave(ExitSpec { code, after }) => Workload::Leave {
                code: self.number(*code),
                after: self.delay(*after),
            },
            WorkloadSpec::Die(DieSpec { signal, after }) => Workload::Die {
                signal: self.number(*signal),
                after: self.delay(*after),
            },
            WorkloadSpec::Dump(DieSpec { signal, after }) => Workload::Dump {
                signal: self.number(*signal),
                after: self.delay(*after),
            },
            WorkloadSpec::Obey => Workload::Obey,
            WorkloadSpec::Ignore => Workload::Ignore,
            WorkloadSpec::Heed(HeedSpec { signal, code }) => Workload::Heed {
                signal: signal.number(),
                code: self.number(*code),
            },
            WorkloadSpec::Eat(EatSpec { mib, after }) => Workload::Eat {
                mebibytes: *mib,
                after: self.stretched(*after),
            },
            WorkloadSpec::EatOnTerm(EatOnTermSpec { mib }) => {
                Workload::EatOnTerm { mebibytes: *mib }
            }
            WorkloadSpec::ChildEat(ChildEatSpec {
                mib,
                after,
                then,
                code,
            }) => Workload::ChildEat {
                mebibytes: *mib,
                after: self.stretched(*after),
                then: self.stretched(*then),
                code: self.number(*code),
            },
            WorkloadSpec::Missing => Workload::Missing,
            WorkloadSpec::NoProgram => Workload::NoProgram,
            WorkloadSpec::Zombies(count) => Workload::Zombies { count: *count },
        }
    }

    fn delay(&self, delay: Delay) -> Duration {
        self.stretched(match delay {
            Delay::Given(duration) => duration,
            Delay::Item => Duration::from_millis(self.item.unwrap_or_default().into()),
        })
    }

    /// The time that a workload takes: on a slow node, too, it is to be past its first moments. It
    /// is never shorter than the case says.
    fn stretched(&self, time: Duration) -> Duration {
        time * self.timeout_percent.max(100) / 100
    }

    /// The same of what the runtime is asked to wait, in whole seconds.
    pub(super) fn whole_seconds(&self, time: Duration) -> Duration {
        let time = self.stretched(time);
        Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
    }

    fn number(&self, number: Number) -> u8 {
        match number {
            Number::Given(number) => number,
            Number::Item => self.item.unwrap_or_default(),
        }
    }
}

/// A moment in milliseconds of the wall clock.
fn unix_ms(at: HostInstant) -> u64 {
    u64::try_from(at.realtime_ns / 1_000_000).unwrap_or_default()
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_workload_waits_is_stretched_and_never_shortened() {
        let eat = WorkloadSpec::Eat(EatSpec {
            mib: 64,
            after: Duration::from_millis(500),
        });
        for (percent, waits_ms) in [(100, 500), (300, 1_500), (50, 500)] {
            let scope = Scope::beginning(HostInstant::default(), percent);
            let eaten = Workload::Eat {
                mebibytes: 64,
                after: Duration::from_millis(waits_ms),
            };
            assert_eq!(scope.workload(&eat), eaten);
        }
    }
}
