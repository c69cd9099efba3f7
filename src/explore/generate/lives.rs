//! What happens to containers on real nodes.

use super::{Generator, create};
use crate::case::Need;
use crate::explore::plan::{Command, ContainerKind, Moment, Op, Plan, PodKind, Work};
use crate::explore::world::Life;

impl Generator<'_> {
    pub(super) fn life(&mut self) -> Plan {
        match self.some_pod() {
            Some(pod) => self.life_in(&pod),
            None => self.another_pod(),
        }
    }

    /// A container from its creation to somewhere in its life.
    pub(super) fn life_in(&mut self, pod: &str) -> Plan {
        let (work, kind) = (self.work(), self.kind());
        let home = self.world.pods.get(pod).map(|pod| pod.kind);
        let by_pod = home == Some(PodKind::Memory) && self.chance(40);
        let (work, kind) = match kind {
            ContainerKind::StopSignal => (Work::UntilSignal, kind),
            _ if by_pod => (Work::OomByPod, ContainerKind::Plain),
            _ => (work, kind),
        };
        let name = self.name("c");
        let mut ops = vec![create(&name, pod, work, kind, None)];
        if self.chance(5) {
            ops.push(Op::Remove(name));
            return ops;
        }
        ops.push(Op::Start(name.clone(), None));
        if work == Work::MissingProgram {
            ops.push(Op::Relist(pod.to_owned()));
            if self.chance(50) {
                ops.push(Op::Remove(name));
            }
            return ops;
        }
        if kind == ContainerKind::Bulky && self.chance(50) {
            // An event has the statuses of all containers of its pod.
            let other = self.name("c");
            ops.push(create(&other, pod, work, kind, None));
        }
        if kind == ContainerKind::StopSignal && self.chance(60) {
            // A program that has begun obeys its own signal.
            ops.extend([
                Op::Await(name.clone(), Moment::Started),
                Op::Exec(name.clone(), Command::Exit(0)),
                Op::Stop(name, 2, None),
            ]);
            return ops;
        }
        ops.extend(self.rest_of_life(&name, work));
        ops
    }

    pub(super) fn rest_of_life(&mut self, name: &str, work: Work) -> Plan {
        let name = || name.to_owned();
        let mut ops = Vec::new();
        if work.ends() {
            if self.chance(70) {
                ops.push(Op::Await(name(), Moment::Stopped));
            } else if self.chance(30) {
                ops.push(Op::Stop(name(), self.grace(), None));
            }
        } else {
            if self.chance(60) {
                ops.push(Op::Await(name(), Moment::Started));
            }
            match self.below(8) {
                0 | 1 => ops.push(Op::Stop(name(), self.grace(), None)),
                2 => ops.extend([Op::Kill(name()), Op::Await(name(), Moment::Stopped)]),
                3 => ops.push(Op::Exec(name(), self.command())),
                4 => ops.push(Op::Freeze(name())),
                _ => return ops,
            }
        }
        if self.chance(40) {
            ops.push(Op::Remove(name()));
            if self.chance(20) {
                ops.push(Op::ProcessExited(name()));
            }
        }
        ops
    }

    pub(super) fn work(&mut self) -> Work {
        let code = self
            .pick(&[0, 0, 0, 1, 1, 2, 42, 127, 137, 143, 255])
            .unwrap_or_default();
        let after_ms = self
            .pick(&[0, 50, 300, 300, 500, 1_000])
            .unwrap_or_default();
        let signal = self.pick(&[4, 5, 7, 11]).unwrap_or(11);
        let works = [
            Work::UntilTerm,
            Work::UntilTerm,
            Work::UntilTerm,
            Work::UntilTerm,
            Work::IgnoreTerm,
            Work::IgnoreTerm,
            Work::Exit(code, after_ms),
            Work::Exit(code, after_ms),
            Work::Exit(code, after_ms),
            Work::Exit(0, 0),
            Work::Die(signal, after_ms.max(50)),
            Work::DumpCore,
            Work::Oom,
            Work::OomOfChild,
            Work::OomGroup,
            Work::OomOnTerm,
            Work::OrphanChild,
            Work::MissingProgram,
            Work::Zombies,
            Work::UntilSignal,
        ];
        let work = self.pick(&works).unwrap_or(Work::UntilTerm);
        let is_possible = match work {
            Work::DumpCore => self.can.meets(Need::CorePipe),
            Work::OomGroup => self.can.meets(Need::CgroupV2) && self.can.meets(Need::MemoryLimit),
            work => !work.needs_memory() || self.can.meets(Need::MemoryLimit),
        };
        if is_possible {
            work
        } else {
            Work::Exit(1, 300)
        }
    }

    pub(super) fn kind(&mut self) -> ContainerKind {
        let kinds = [
            ContainerKind::Tty,
            ContainerKind::WithMetadata,
            ContainerKind::Bulky,
            ContainerKind::StopSignal,
        ];
        if self.chance(75) {
            return ContainerKind::Plain;
        }
        match self.pick(&kinds) {
            Some(ContainerKind::StopSignal) if !self.can.meets(Need::StopSignal) => {
                ContainerKind::Plain
            }
            kind => kind.unwrap_or_default(),
        }
    }

    pub(super) fn grace(&mut self) -> u8 {
        self.pick(&[0, 0, 1, 2, 2, 5]).unwrap_or_default()
    }

    pub(super) fn command(&mut self) -> Command {
        let commands = [
            Command::Exit(0),
            Command::Exit(0),
            Command::Exit(1),
            Command::Slow(500),
            Command::Slow(1_500),
            Command::Killed,
            Command::TimesOut,
        ];
        self.pick(&commands).unwrap_or(Command::Exit(0))
    }

    /// A container that fails and is started anew, as a kubelet does: the last attempt is kept.
    pub(super) fn crash_loop(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let after_ms = self.pick(&[0, 50, 300]).unwrap_or_default();
        let work = Work::Exit(1, after_ms);
        let first = self.name("c");
        let mut ops = vec![
            create(&first, &pod, work, ContainerKind::Plain, None),
            Op::Start(first.clone(), None),
            Op::Await(first.clone(), Moment::Stopped),
        ];
        let mut earlier = first;
        for _ in 0..=self.below(2) {
            let next = self.name("c");
            let kind = ContainerKind::NextAttempt;
            ops.push(create(&next, &pod, work, kind, Some(&earlier)));
            ops.push(Op::Start(next.clone(), None));
            if self.chance(50) {
                ops.push(Op::Remove(earlier));
            }
            ops.push(Op::Await(next.clone(), Moment::Stopped));
            earlier = next;
        }
        ops
    }

    /// A container is stopped and started anew.
    pub(super) fn rolling_restart(&mut self) -> Plan {
        let Some(old) = self.some(&[Life::Running, Life::Exited]) else {
            return self.life();
        };
        let pod = self.pod_of(&old);
        let next = self.name("c");
        let work = self.work();
        let mut ops = vec![Op::Stop(old.clone(), self.grace(), None)];
        if self.chance(30) {
            ops.push(Op::Await(old.clone(), Moment::Stopped));
        }
        ops.push(create(
            &next,
            &pod,
            work,
            ContainerKind::NextAttempt,
            Some(&old),
        ));
        ops.push(Op::Start(next, None));
        if self.chance(60) {
            ops.push(Op::Remove(old));
        }
        ops
    }

    pub(super) fn probes(&mut self) -> Plan {
        let Some(container) = self.some(&[Life::Running, Life::Running, Life::Ending]) else {
            return self.life();
        };
        let count = 1 + self.below(2);
        (0..count)
            .map(|_| Op::Exec(container.clone(), self.command()))
            .collect()
    }

    /// One operation on whatever is there.
    pub(super) fn poke(&mut self) -> Plan {
        let lives = [
            Life::Created,
            Life::Running,
            Life::Running,
            Life::Ending,
            Life::Exited,
            Life::Unsure,
        ];
        let wanted = self.pick(&lives).unwrap_or(Life::Running);
        let found = self.some(&[wanted]);
        let Some(name) = found.or_else(|| self.some(&lives)) else {
            return self.life();
        };
        let op = match self.below(14) {
            0 | 1 => Op::Start(name, None),
            2 | 3 => Op::Stop(name, self.grace(), None),
            4 => Op::Stop(name, self.grace(), Some(20)),
            5..8 => Op::Remove(name),
            8 => Op::RemoveByPrefix(name),
            9 => Op::Kill(name),
            10 => Op::Freeze(name),
            11 => Op::Await(name, Moment::Stopped),
            12 => Op::Exec(name, self.command()),
            _ => Op::Start(name, Some(5)),
        };
        let is_stop = matches!(op, Op::Stop(_, _, None));
        let again = if is_stop && self.chance(30) {
            Some(op.clone())
        } else {
            None
        };
        [op].into_iter().chain(again).collect()
    }

    pub(super) fn pid_target(&mut self) -> Plan {
        let mut ops = Vec::new();
        let (target, pod) = match (self.some(&[Life::Running]), self.some_pod()) {
            (Some(target), _) => (target.clone(), self.pod_of(&target)),
            (None, Some(pod)) => {
                let target = self.name("c");
                let (work, kind) = (Work::UntilTerm, ContainerKind::Plain);
                ops.push(create(&target, &pod, work, kind, None));
                ops.push(Op::Start(target.clone(), None));
                (target, pod)
            }
            (None, None) => return self.life(),
        };
        let name = self.name("c");
        let work = self
            .pick(&[Work::IgnoreTerm, Work::Exit(7, 300)])
            .unwrap_or(Work::IgnoreTerm);
        let kind = ContainerKind::PidTarget;
        ops.extend([
            create(&name, &pod, work, kind, Some(&target)),
            Op::Start(name.clone(), None),
            Op::Await(name.clone(), Moment::Started),
        ]);
        if work.ends() && self.chance(60) {
            ops.push(Op::Await(name, Moment::Stopped));
        }
        if self.chance(50) {
            ops.push(Op::Stop(target, 2, None));
        }
        ops
    }

    /// A container that lives while another one is killed for the memory of their pod.
    pub(super) fn killed_sibling(&mut self, pod: &str) -> Plan {
        let (lives, hog) = (self.name("c"), self.name("c"));
        let plain = ContainerKind::Plain;
        vec![
            create(&lives, pod, Work::IgnoreTerm, plain, None),
            Op::Start(lives.clone(), None),
            create(&hog, pod, Work::OomByPod, plain, None),
            Op::Start(hog.clone(), None),
            Op::Await(hog, Moment::Stopped),
            Op::Stop(lives, self.grace(), None),
        ]
    }
}
