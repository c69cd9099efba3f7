//! The workload that a case asks for, with the numbers and times of the moment.

use std::time::Duration;

use super::scope::Scope;
use crate::case::{
    AllocateInChildSpec, AllocateOnTermSpec, AllocateSpec, Delay, DieSpec, ExitAtSpec, ExitSpec,
    Number, UntilSignalSpec, WorkloadSpec,
};
use crate::history::HostInstant;
use crate::workload::Workload;

impl Scope {
    /// What a container or a command does.
    pub(super) fn workload(&self, spec: &WorkloadSpec) -> Workload {
        match spec {
            WorkloadSpec::Exit(ExitSpec { code, after }) => Workload::Exit {
                code: self.number(*code),
                after: self.delay(*after),
            },
            WorkloadSpec::ExitAt(ExitAtSpec { code, time }) => Workload::ExitAt {
                code: self.number(*code),
                unix_ms: unix_ms(self.clock.began) + millis(self.clock.scaled(*time)),
            },
            WorkloadSpec::OrphanChild(ExitSpec { code, after }) => Workload::OrphanChild {
                code: self.number(*code),
                after: self.delay(*after),
            },
            WorkloadSpec::Die(DieSpec { signal, after }) => Workload::Die {
                signal: self.number(*signal),
                after: self.delay(*after),
            },
            WorkloadSpec::DumpCore(DieSpec { signal, after }) => Workload::DumpCore {
                signal: self.number(*signal),
                after: self.delay(*after),
            },
            WorkloadSpec::UntilTerm => Workload::UntilTerm,
            WorkloadSpec::IgnoreTerm => Workload::IgnoreTerm,
            WorkloadSpec::UntilSignal(UntilSignalSpec { signal, code }) => Workload::UntilSignal {
                signal: signal.number(),
                code: self.number(*code),
            },
            WorkloadSpec::Allocate(AllocateSpec { mib, after }) => Workload::Allocate {
                mebibytes: *mib,
                after: self.clock.scaled(*after),
            },
            WorkloadSpec::AllocateOnTerm(AllocateOnTermSpec { mib }) => {
                Workload::AllocateOnTerm { mebibytes: *mib }
            }
            WorkloadSpec::AllocateInChild(AllocateInChildSpec {
                mib,
                after,
                then,
                code,
            }) => Workload::AllocateInChild {
                mebibytes: *mib,
                after: self.clock.scaled(*after),
                then: self.clock.scaled(*then),
                code: self.number(*code),
            },
            WorkloadSpec::MissingProgram => Workload::MissingProgram,
            WorkloadSpec::NotExecutable => Workload::NotExecutable,
            WorkloadSpec::Zombies(count) => Workload::Zombies { count: *count },
        }
    }

    fn delay(&self, delay: Delay) -> Duration {
        self.clock.scaled(match delay {
            Delay::Given(duration) => duration,
            Delay::Item => Duration::from_millis(self.item.unwrap_or_default().into()),
        })
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
    fn what_a_workload_waits_is_scaled_and_never_shortened() {
        let eat = WorkloadSpec::Allocate(AllocateSpec {
            mib: 64,
            after: Duration::from_millis(500),
        });
        for (percent, waits_ms) in [(100, 500), (300, 1_500), (50, 500)] {
            let scope = Scope::new(HostInstant::default(), percent);
            let eaten = Workload::Allocate {
                mebibytes: 64,
                after: Duration::from_millis(waits_ms),
            };
            assert_eq!(scope.workload(&eat), eaten);
        }
    }
}
