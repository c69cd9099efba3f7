//! What cannot be made, is given up or crashes.

use super::{Generator, create};
use crate::explore::plan::{ContainerKind, Moment, Op, Plan, PodKind, Work};
use crate::explore::world::Life;

impl Generator<'_> {
    /// What cannot be made, or is given up.
    pub(super) fn failure(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let name = self.name("c");
        let work = Work::UntilTerm;
        match self.below(6) {
            0 | 1 => vec![create(&name, &pod, work, ContainerKind::NoImage, None)],
            2 => {
                let lives = [Life::Running, Life::Created, Life::Exited];
                let Some(twin) = self.some(&lives) else {
                    return self.life();
                };
                let pod = self.pod_of(&twin);
                vec![create(&name, &pod, work, ContainerKind::Twin, Some(&twin))]
            }
            3 => vec![create(&name, &pod, work, ContainerKind::Abandoned, None)],
            4 => {
                let name = self.name("p");
                vec![Op::Sandbox {
                    name,
                    attempt_of: None,
                    kind: PodKind::Refused,
                }]
            }
            _ => {
                let mut ops = vec![create(&name, &pod, work, ContainerKind::Plain, None)];
                ops.push(Op::Start(name.clone(), Some(5)));
                ops.push(Op::Stop(name.clone(), 0, None));
                ops.push(Op::Remove(name));
                ops
            }
        }
    }

    /// A container whose low-level runtime crashes.
    pub(super) fn crash(&mut self, pod: String) -> Plan {
        let name = self.name("c");
        let kinds = [
            ContainerKind::CrashAtCreate,
            ContainerKind::CrashAtStart,
            ContainerKind::CrashAtKill,
            ContainerKind::CrashAtDelete,
        ];
        let kind = self.pick(&kinds).unwrap_or(ContainerKind::CrashAtStart);
        let work = match kind {
            ContainerKind::CrashAtDelete => Work::Exit(42, 1_000),
            _ => Work::UntilTerm,
        };
        let mut ops = vec![
            create(&name, &pod, work, kind, None),
            Op::Start(name.clone(), None),
        ];
        if kind == ContainerKind::CrashAtKill {
            ops.push(Op::Await(name.clone(), Moment::Started));
            ops.push(Op::Stop(name.clone(), 2, None));
        } else {
            ops.push(Op::Await(name.clone(), Moment::Stopped));
        }
        ops.push(Op::Relist(pod));
        ops.push(Op::Remove(name.clone()));
        ops.push(Op::Remove(name));
        ops
    }
}
