//! What concerns the streams, or takes the runtime or its node further.

use super::{Generator, create};
use crate::explore::plan::{Branch, ContainerKind, Moment, Op, Plan, PodKind, Reader, Work};
use crate::explore::world::{Life, PodState};

impl Generator<'_> {
    /// What concerns the streams, or takes the runtime or its node further.
    pub(super) fn special(&mut self) -> Plan {
        match self.below(if self.can.disruption { 19 } else { 11 }) {
            0 => {
                let mut ops = self.settle();
                ops.push(Op::Resubscribe(Vec::new()));
                ops
            }
            1 => {
                let mut ops = self.settle();
                let meanwhile = self.group();
                ops.push(Op::Resubscribe(meanwhile));
                if self.chance(50) {
                    ops.push(Op::Subscribe(self.name("s"), Reader::Reads));
                }
                ops
            }
            2..5 => self.subscribers(),
            5 => self.slow_reader(),
            6..8 => self.silence(),
            8 => self.rivals(),
            9 => {
                let mut inner = self.life();
                inner.extend(self.life());
                let back = self.chance(50);
                vec![Op::StepClock(back, inner)]
            }
            10 => self.newest(5),
            11..14 => self.restart(),
            14 => self.pod_with(Op::KillMonitor),
            15 => self.dying_sandbox(),
            16 => {
                let kill = |name: String| Op::FillDisk(name.clone(), vec![Op::Kill(name)]);
                self.pod_with(kill)
            }
            _ => {
                let others = self.pod();
                self.pod_with(|name| {
                    let kill = vec![Op::Kill(name.clone())];
                    Op::FreezeMonitor(name, [kill, others].concat())
                })
            }
        }
    }

    /// A pod with one container, to which something happens.
    fn pod_with(&mut self, happens: impl FnOnce(String) -> Op) -> Plan {
        let (pod, name) = (self.name("p"), self.name("c"));
        let sandbox = Op::Sandbox {
            name: pod.clone(),
            attempt_of: None,
            kind: PodKind::Plain,
        };
        let (work, kind) = (Work::UntilTerm, ContainerKind::Plain);
        vec![
            sandbox,
            create(&name, &pod, work, kind, None),
            Op::Start(name.clone(), None),
            Op::Await(name.clone(), Moment::Started),
            happens(name.clone()),
            Op::Await(name.clone(), Moment::Stopped),
            Op::ProcessExited(name),
        ]
    }

    /// A sandbox that dies, with a container that only SIGKILL can end.
    fn dying_sandbox(&mut self) -> Plan {
        let (pod, name) = (self.name("p"), self.name("c"));
        let sandbox = Op::Sandbox {
            name: pod.clone(),
            attempt_of: None,
            kind: PodKind::Plain,
        };
        let (work, kind) = (Work::IgnoreTerm, ContainerKind::Plain);
        vec![
            sandbox,
            create(&name, &pod, work, kind, None),
            Op::Start(name, None),
            Op::KillSandbox(pod),
        ]
    }

    fn subscribers(&mut self) -> Plan {
        let open: Vec<String> = self.world.streams.keys().cloned().collect();
        match self.pick(&open) {
            Some(stream) if self.chance(40) => self.left(stream),
            _ => {
                let name = self.name("s");
                match self.below(5) {
                    0 => vec![Op::Deadline(name)],
                    2 => {
                        let mut ops = vec![Op::Subscribe(name.clone(), Reader::Reads)];
                        ops.extend(self.left(name));
                        ops
                    }
                    1 => {
                        let mut ops = vec![Op::Subscribe(name, Reader::Early)];
                        ops.extend(self.life());
                        ops
                    }
                    _ => vec![Op::Subscribe(name, Reader::Reads)],
                }
            }
        }
    }

    /// A subscriber that goes, and events after it.
    fn left(&mut self, stream: String) -> Plan {
        let mut ops = vec![Op::Unsubscribe(stream, self.chance(50))];
        ops.extend(self.life());
        ops
    }

    /// A subscriber that does not read for a while, in which much may happen.
    fn slow_reader(&mut self) -> Plan {
        let name = self.name("s");
        let readers = [Reader::Stalls, Reader::StoppedProcess];
        let reader = self.pick(&readers).unwrap_or(Reader::Stalls);
        let mut ops = vec![Op::Subscribe(name.clone(), reader)];
        if self.chance(50) {
            ops.extend(self.group());
        } else if let Some(pod) = self.some_pod() {
            let container = self.name("c");
            let (work, kind) = (Work::UntilTerm, ContainerKind::Plain);
            let inner = vec![
                create(&container, &pod, work, kind, None),
                Op::Remove(container),
            ];
            ops.push(Op::Repeat(100, 4, inner));
            ops.push(Op::Prompt(10, vec![Op::Relist(pod.clone())]));
            let after = self.name("c");
            ops.push(create(&after, &pod, work, ContainerKind::Plain, None));
            ops.push(Op::Await(after, Moment::Created));
        }
        let end = if self.chance(70) {
            Op::Resume(name)
        } else {
            Op::Unsubscribe(name, true)
        };
        ops.push(end);
        ops
    }

    /// A time in which nothing may come of what is called.
    pub(super) fn silence(&mut self) -> Plan {
        let mut ops = self.settle();
        let mut inner = Vec::new();
        for _ in 0..self.below(3) {
            let methods = ["StopContainer", "RemoveContainer", "StopPodSandbox"];
            let method = self.pick(&methods).unwrap_or("RemoveContainer");
            inner.push(match self.some(&[Life::Running]) {
                Some(container) if self.chance(40) => Op::Freeze(container),
                Some(container) if self.chance(30) => Op::Exec(container, self.command()),
                _ if self.chance(40) => Op::OutsideCri,
                _ if self.chance(40) => Op::Call(self.image_call(), None),
                _ => Op::CallUnknown(method),
            });
        }
        let seconds = self.pick(&[1, 1, 1, 1, 1, 1, 3, 35]).unwrap_or(1);
        ops.push(Op::Silence(seconds, inner));
        ops
    }

    /// Two stops of one container at once, the shorter of which must not wait for the longer.
    fn rivals(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let name = self.name("c");
        let work = Work::IgnoreTerm;
        let stop = |grace_s, name: &str| Op::Stop(name.to_owned(), grace_s, None);
        let soon = Op::Prompt(10, vec![stop(0, &name)]);
        let branch = |ops| Branch {
            other_client: true,
            ops,
        };
        vec![
            create(&name, &pod, work, ContainerKind::Plain, None),
            Op::Start(name.clone(), None),
            Op::Await(name.clone(), Moment::Started),
            Op::Parallel(vec![branch(vec![stop(20, &name)]), branch(vec![soon])]),
        ]
    }

    /// The runtime is ended and started again, while something is under way or happens meanwhile.
    pub(super) fn restart(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let name = self.name("c");
        let over = self.name("c");
        let plain = ContainerKind::Plain;
        let mut ops = vec![
            create(&name, &pod, Work::IgnoreTerm, plain, None),
            Op::Start(name.clone(), None),
            create(&over, &pod, Work::Exit(3, 1_500), plain, None),
            Op::Start(over.clone(), None),
            Op::Await(name.clone(), Moment::Started),
        ];
        if self.chance(30) {
            ops.push(Op::Subscribe(self.name("s"), Reader::Reads));
        }
        ops.extend(self.settle());
        let kill = self.chance(50);
        let (mut during, mut meanwhile, mut after) = (Vec::new(), Vec::new(), Vec::new());
        match self.below(4) {
            0 => {
                during.push(Op::Stop(name.clone(), 20, None));
                after.push(Op::Kill(name));
            }
            1 => meanwhile.push(Op::Kill(name)),
            2 => after.push(Op::Kill(name)),
            _ => after.extend(self.poke()),
        }
        ops.push(Op::Restart {
            kill: kill || !during.is_empty(),
            back_off: self.chance(30),
            during,
            meanwhile,
        });
        ops.extend(after);
        ops.push(Op::ProcessExited(over));
        let later = self.name("c");
        ops.extend([
            create(&later, &pod, Work::Exit(0, 3_000), plain, None),
            Op::Start(later.clone(), None),
            Op::Await(later, Moment::Stopped),
        ]);
        ops.push(Op::Relist(pod));
        ops
    }

    /// Waits for the events that are to come.
    pub(super) fn settle(&mut self) -> Plan {
        let pods = self.world.pods_in(PodState::Ready).into_iter();
        let mut ops: Plan = pods.map(|pod| Op::Await(pod, Moment::Started)).collect();
        for (name, container) in &self.world.containers {
            let last = container.events.as_ref().and_then(|events| events.last());
            ops.extend(last.map(|last| Op::Await(name.clone(), *last)));
        }
        ops
    }
}
