//! Groups of operations, as real nodes have them.

use super::Generator;
use crate::case::Need;
use crate::explore::plan::{Command, ContainerKind, Moment, Op, Plan, PodKind, Work};
use crate::explore::world::{Life, PodState};

impl Generator<'_> {
    /// A group of operations on one pod or a new one.
    pub(super) fn group(&mut self) -> Plan {
        match self.below(32) {
            0..6 => self.life(),
            6..9 => self.crash_loop(),
            9..12 => self.rolling_restart(),
            12..15 => self.probes(),
            15..22 => self.poke(),
            22..24 => self.teardown(),
            24..26 => self.another_pod(),
            26..29 => self.questions(),
            29..31 => self.failure(),
            _ => self.pid_target(),
        }
    }

    /// A sandbox with something in it.
    pub(super) fn pod(&mut self) -> Plan {
        let kinds = [
            PodKind::Plain,
            PodKind::Plain,
            PodKind::Plain,
            PodKind::Plain,
            PodKind::Labelled,
            PodKind::SharedPid,
            PodKind::Network,
            PodKind::Memory,
            PodKind::Faulty,
        ];
        let kind = self.pick(&kinds).unwrap_or_default();
        let kind = match kind {
            PodKind::Network if !self.can.meets(Need::Network) => PodKind::Plain,
            PodKind::Memory if !self.can.meets(Need::PodCgroup) => PodKind::Plain,
            PodKind::Faulty if !self.can.meets(Need::FaultyHandler) => PodKind::Plain,
            kind => kind,
        };
        let name = self.name("p");
        let sandbox = Op::Sandbox {
            name: name.clone(),
            attempt_of: None,
            kind,
        };
        let mut ops = vec![sandbox];
        if kind == PodKind::Faulty {
            ops.extend(self.crash(name));
        } else {
            ops.extend(self.life_in(&name));
        }
        ops
    }

    fn another_pod(&mut self) -> Plan {
        let ready = self.world.pods_in(PodState::Ready).len();
        if ready >= self.pods {
            return self.teardown();
        }
        let stopped = [PodState::Stopped, PodState::Removed]
            .map(|state| self.world.pods_in(state))
            .concat();
        if let Some(earlier) = self.pick(&stopped)
            && self.chance(60)
        {
            let name = self.name("p");
            let next = Op::Sandbox {
                name: name.clone(),
                attempt_of: Some(earlier),
                kind: PodKind::Plain,
            };
            let mut ops = vec![next];
            ops.extend(self.life_in(&name));
            return ops;
        }
        self.pod()
    }

    fn life(&mut self) -> Plan {
        match self.some_pod() {
            Some(pod) => self.life_in(&pod),
            None => self.another_pod(),
        }
    }

    /// A container from its creation to somewhere in its life.
    fn life_in(&mut self, pod: &str) -> Plan {
        let (work, kind) = (self.work(), self.kind());
        let (work, kind) = match kind {
            ContainerKind::StopSignal => (Work::UntilSignal, kind),
            _ => (work, kind),
        };
        let name = self.name("c");
        let mut ops = vec![create(&name, pod, work, kind, None)];
        if self.chance(5) {
            ops.push(Op::Remove(name));
            return ops;
        }
        ops.push(Op::Start(name.clone(), None));
        ops.extend(self.rest_of_life(&name, work));
        ops
    }

    fn rest_of_life(&mut self, name: &str, work: Work) -> Plan {
        let name = || name.to_owned();
        let mut ops = Vec::new();
        if work == Work::MissingProgram {
            ops.push(Op::Remove(name()));
            return ops;
        }
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
        }
        ops
    }

    fn work(&mut self) -> Work {
        let code = self.pick(&[0, 0, 0, 1, 1, 2, 42, 127, 137, 143, 255]).unwrap_or_default();
        let after_ms = self.pick(&[0, 50, 300, 300, 500, 1_000]).unwrap_or_default();
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
        if is_possible { work } else { Work::Exit(1, 300) }
    }

    fn kind(&mut self) -> ContainerKind {
        let kinds = [
            ContainerKind::Tty,
            ContainerKind::Dressed,
            ContainerKind::Unlabelled,
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

    fn grace(&mut self) -> u8 {
        self.pick(&[0, 0, 1, 2, 2, 5]).unwrap_or_default()
    }

    fn command(&mut self) -> Command {
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
    fn crash_loop(&mut self) -> Plan {
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
    fn rolling_restart(&mut self) -> Plan {
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
        ops.push(create(&next, &pod, work, ContainerKind::NextAttempt, Some(&old)));
        ops.push(Op::Start(next, None));
        if self.chance(60) {
            ops.push(Op::Remove(old));
        }
        ops
    }

    fn probes(&mut self) -> Plan {
        let Some(container) = self.some(&[Life::Running, Life::Running, Life::Ending]) else {
            return self.life();
        };
        let count = 1 + self.below(2);
        (0..count)
            .map(|_| Op::Exec(container.clone(), self.command()))
            .collect()
    }

    /// One operation on whatever is there.
    fn poke(&mut self) -> Plan {
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

    fn teardown(&mut self) -> Plan {
        let pods = [PodState::Ready, PodState::Stopped].map(|state| self.world.pods_in(state));
        let Some(pod) = self.pick(&pods.concat()) else {
            return self.pod();
        };
        let mut ops = Vec::new();
        if self.chance(80) {
            ops.push(Op::StopSandbox(pod.clone()));
        }
        if self.chance(40) {
            let containers = self.world.names_in(&pod).into_iter();
            ops.extend(containers.map(Op::Remove));
        }
        if self.chance(60) {
            ops.push(Op::RemoveSandbox(pod.clone()));
        }
        if self.chance(20) {
            let name = self.name("c");
            ops.push(create(&name, &pod, Work::UntilTerm, ContainerKind::Plain, None));
        }
        ops
    }

    /// Calls that change nothing.
    fn questions(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.life();
        };
        match self.below(7) {
            0 => vec![Op::Relist(pod)],
            1 => {
                let streamed = self.chance(50) && self.can.meets(Need::StreamedLists);
                vec![Op::ListWithFilters(pod, streamed)]
            }
            2 => self.calls(&pod),
            3 => {
                let methods = ["StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"];
                let method = self.pick(&methods).unwrap_or("RemoveContainer");
                vec![Op::CallUnknown(method)]
            }
            4 => {
                let inner = self.life_in(&pod);
                vec![Op::Poll(pod, inner)]
            }
            5 => {
                let inner = self.life_in(&pod);
                vec![Op::Prompt(inner)]
            }
            _ => self.asked_at_event(&pod),
        }
    }

    fn calls(&mut self, pod: &str) -> Plan {
        let of_containers = ["UpdateContainerResources", "ReopenContainerLog", "ContainerStats"];
        let others = ["Version", "ListImages", "ImageStatus", "PullImage", "Status"];
        let method = match self.some(&[Life::Running]) {
            Some(container) if self.chance(60) => {
                let method = self.pick(&of_containers).unwrap_or("ContainerStats");
                return vec![Op::Call(method, Some(container))];
            }
            _ => self.pick(&others).unwrap_or("Version"),
        };
        if self.chance(30) {
            return vec![Op::Call("PodSandboxStats", Some(pod.to_owned()))];
        }
        vec![Op::Call(method, None)]
    }

    /// A life in which the runtime is asked the moment an event arrives.
    fn asked_at_event(&mut self, pod: &str) -> Plan {
        let name = self.name("c");
        let work = self.pick(&[Work::UntilTerm, Work::Exit(1, 300)]).unwrap_or(Work::UntilTerm);
        let start = Op::Start(name.clone(), None);
        let remove = Op::Remove(name.clone());
        let mut ops = vec![create(&name, pod, work, ContainerKind::Plain, None)];
        if work == Work::UntilTerm {
            let stop = Op::Stop(name.clone(), 0, None);
            ops.push(Op::OnEvent(name.clone(), Moment::Started, vec![start]));
            ops.push(Op::OnEvent(name.clone(), Moment::Stopped, vec![stop]));
        } else {
            ops.push(Op::OnEvent(name.clone(), Moment::Stopped, vec![start]));
        }
        if self.chance(50) {
            ops.push(Op::OnEvent(name, Moment::Deleted, vec![remove]));
        }
        ops
    }

    /// What cannot be made, or is given up.
    fn failure(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let name = self.name("c");
        let work = Work::UntilTerm;
        match self.below(5) {
            0 => vec![create(&name, &pod, work, ContainerKind::NoImage, None)],
            1 => {
                let lives = [Life::Running, Life::Created, Life::Exited];
                let Some(twin) = self.some(&lives) else {
                    return self.life();
                };
                let pod = self.pod_of(&twin);
                vec![create(&name, &pod, work, ContainerKind::Twin, Some(&twin))]
            }
            2 => vec![create(&name, &pod, work, ContainerKind::Abandoned, None)],
            3 => {
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
                ops.push(Op::Remove(name));
                ops
            }
        }
    }

    /// A container whose low-level runtime crashes.
    fn crash(&mut self, pod: String) -> Plan {
        let name = self.name("c");
        let kinds = [
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

    fn pid_target(&mut self) -> Plan {
        let Some(target) = self.some(&[Life::Running]) else {
            return self.life();
        };
        let pod = self.pod_of(&target);
        let name = self.name("c");
        let work = self.pick(&[Work::IgnoreTerm, Work::Exit(7, 300)]).unwrap_or(Work::IgnoreTerm);
        let kind = ContainerKind::PidTarget;
        let mut ops = vec![
            create(&name, &pod, work, kind, Some(&target)),
            Op::Start(name.clone(), None),
            Op::Await(name.clone(), Moment::Started),
        ];
        if work.ends() && self.chance(60) {
            ops.push(Op::Await(name, Moment::Stopped));
        }
        if self.chance(50) {
            ops.push(Op::Stop(target, 2, None));
        }
        ops
    }

    /// The same several times, or once for each runtime handler.
    pub(super) fn repeated(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        if self.can.meets(Need::Handlers) && self.chance(20) {
            let ops = self.pod();
            return vec![Op::EachHandler(ops)];
        }
        let times = self.pick(&[3, 5, 10]).unwrap_or(3);
        let workers = self.pick(&[1, 2, 4]).unwrap_or(1);
        let ops = if self.chance(30) { self.pod() } else { self.life_in(&pod) };
        vec![Op::Repeat(times, workers, ops)]
    }

    /// What concerns the streams, or takes the node a little further.
    pub(super) fn special(&mut self) -> Plan {
        let open: Vec<String> = self.world.streams.keys().cloned().collect();
        match self.below(if self.can.disruption { 14 } else { 8 }) {
            0 => {
                let mut ops = self.settle();
                ops.push(Op::Resubscribe(Vec::new()));
                ops
            }
            1 => {
                let mut ops = self.settle();
                let meanwhile = self.group();
                ops.push(Op::Resubscribe(meanwhile));
                ops
            }
            2 | 3 => match self.pick(&open) {
                Some(stream) if self.chance(60) => {
                    vec![Op::Unsubscribe(stream, self.chance(50))]
                }
                _ => {
                    let name = self.name("s");
                    vec![Op::Subscribe(name, false)]
                }
            },
            4 => {
                let name = self.name("s");
                let mut ops = vec![Op::Subscribe(name.clone(), true)];
                ops.extend(self.group());
                ops.push(Op::Resume(name));
                ops
            }
            5 | 6 => {
                let mut ops = self.settle();
                ops.push(Op::Silence(1));
                ops
            }
            7 => self.newest(5),
            8 | 9 => self.restart(),
            10 => match self.some(&[Life::Running]) {
                Some(container) => vec![Op::KillMonitor(container)],
                None => self.life(),
            },
            11 => match self.some_pod() {
                Some(pod) => vec![Op::KillSandbox(pod)],
                None => self.life(),
            },
            _ => match self.some(&[Life::Running]) {
                Some(container) => {
                    let mut inner = vec![Op::Kill(container.clone())];
                    inner.extend(self.life());
                    vec![Op::FreezeMonitor(container, inner)]
                }
                None => self.life(),
            },
        }
    }

    fn restart(&mut self) -> Plan {
        let mut ops = self.settle();
        let during = match self.some(&[Life::Running]) {
            Some(container) if self.chance(40) => vec![Op::Stop(container, 10, None)],
            _ => Vec::new(),
        };
        let meanwhile = match self.some(&[Life::Running]) {
            Some(container) if self.chance(50) => vec![Op::Kill(container)],
            _ => Vec::new(),
        };
        ops.push(Op::Restart {
            kill: self.chance(50),
            during,
            meanwhile,
        });
        ops.extend(self.poke());
        ops
    }

    /// Waits for the events that are to come.
    fn settle(&mut self) -> Plan {
        let pods = self.world.pods_in(PodState::Ready).into_iter();
        let mut ops: Plan = pods.map(|pod| Op::Await(pod, Moment::Started)).collect();
        for (name, container) in &self.world.containers {
            let last = container.events.as_ref().and_then(|events| events.last());
            ops.extend(last.map(|last| Op::Await(name.clone(), *last)));
        }
        ops
    }
}

fn create(name: &str, pod: &str, work: Work, kind: ContainerKind, other: Option<&str>) -> Op {
    Op::Create {
        name: name.to_owned(),
        pod: pod.to_owned(),
        work,
        kind,
        other: other.map(str::to_owned),
    }
}
