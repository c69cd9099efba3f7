//! Calls that change nothing, alone and while something happens; steps on the streams; and steps
//! that disturb the runtime or its node.

use serde_json::{Value, json};

use super::Generator;
use super::lives::{exits, ignore_term, started, until_term};
use crate::case::{Need, Step};
use crate::explore::plan::{
    Plan, create, ends, kill, parallel, process_exited, relist, remove, sandbox, signal, start,
    step, stop, wait,
};
use crate::explore::world::{Life, PodState};
use crate::history::EventKind;

impl Generator<'_> {
    /// Calls that change nothing.
    pub(super) fn questions(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.life();
        };
        match self.below(7) {
            0 => vec![relist(&pod)],
            1 => {
                let streamed = self.chance(50) && self.can.meet(&[Need::StreamedLists]);
                let keys = json!({"sandbox": pod, "streamed": streamed});
                vec![step("list-with-filters", keys)]
            }
            2 => self.calls(&pod),
            3 => {
                let methods = [
                    "StopContainer",
                    "RemoveContainer",
                    "StopPodSandbox",
                    "RemovePodSandbox",
                ];
                vec![self.call_unknown(&methods)]
            }
            4 => {
                let read = ["containers", "sandboxes", "sandbox-status"];
                let steps = self.life_in(&pod);
                let keys = json!({"of": pod, "read": read, "steps": steps});
                vec![step("poll-during", keys)]
            }
            5 => {
                let keys = json!({"time": "30s", "steps": self.life_in(&pod)});
                vec![step("calls-return-within", keys)]
            }
            _ => self.asked_at_event(&pod),
        }
    }

    fn calls(&mut self, pod: &str) -> Plan {
        let of_containers = ["ReopenContainerLog", "ContainerStats"];
        let call = match self.some(&[Life::Running]) {
            Some(container) if self.chance(60) => {
                let method = self.pick(&of_containers).unwrap_or("ContainerStats");
                return vec![step("call", json!({"method": method, "of": container}))];
            }
            _ if self.chance(60) => self.image_call(),
            _ => {
                let method = self.pick(&["Version", "Status"]).unwrap_or("Version");
                step("call", json!({"method": method}))
            }
        };
        if self.chance(30) {
            let keys = json!({"method": "PodSandboxStats", "of": pod});
            return vec![step("call", keys)];
        }
        vec![call]
    }

    /// A call to the image service.
    fn image_call(&mut self) -> Step {
        let methods = ["ListImages", "ImageStatus", "PullImage"];
        let method = self.pick(&methods).unwrap_or("ListImages");
        step("call", json!({"method": method}))
    }

    /// A call on an id that does not exist.
    fn call_unknown(&mut self, methods: &[&str]) -> Step {
        let method = self.pick(methods).unwrap_or("RemoveContainer");
        step("call", json!({"method": method, "unknown-id": true}))
    }

    /// A life in which the runtime is asked the moment an event arrives.
    fn asked_at_event(&mut self, pod: &str) -> Plan {
        let name = self.name("c");
        let works = [until_term(), exits(1, 300)];
        let work = self.pick(&works).unwrap_or_else(until_term);
        let kinds = [
            json!({}),
            json!({
                "mounted": true,
                "labels": {"app": "web"},
                "annotations": {"io.kubernetes.container.hash": "8f3c"},
            }),
        ];
        let kind = self.pick(&kinds).unwrap_or_default();
        let container = create(&name, pod, &[&work, &kind]);
        let at = |event: EventKind, steps: Plan| {
            let read = match event {
                EventKind::Deleted => &["containers"][..],
                _ => &["containers", "container-status", "sandbox-status"],
            };
            let keys = json!({"of": name, "event": event, "read": read, "steps": steps});
            step("on-event", keys)
        };
        let is_short = ends(&container);
        let mut steps = vec![Step::Create(container)];
        if is_short {
            steps.push(at(EventKind::Stopped, vec![start(&name)]));
        } else {
            steps.push(at(EventKind::Started, vec![start(&name)]));
            steps.push(at(EventKind::Stopped, vec![stop(&name, 0)]));
        }
        if self.chance(50) {
            steps.push(at(EventKind::Deleted, vec![remove(&name)]));
        }
        steps
    }

    /// Steps on the streams, and steps that disturb the runtime or its node.
    pub(super) fn special(&mut self) -> Plan {
        match self.below(if self.can.disruption { 19 } else { 11 }) {
            0 => {
                let mut steps = self.settle();
                steps.push(step("resubscribe", json!({})));
                steps
            }
            1 => {
                let mut steps = self.settle();
                let meanwhile = self.group();
                steps.push(step("resubscribe", json!({"meanwhile": meanwhile})));
                if self.chance(50) {
                    steps.push(subscribe(&self.name("s"), json!({})));
                }
                steps
            }
            2..5 => self.subscribers(),
            5 => self.slow_reader(),
            6..8 => self.silence(),
            8 => self.rivals(),
            9 => {
                let mut steps = self.life();
                steps.extend(self.life());
                let way = if self.chance(50) { "back" } else { "forward" };
                vec![step("step-clock", json!({way: "10s", "steps": steps}))]
            }
            10 => self.newest(5),
            11..14 => self.restart(),
            14 => self.pod_with(|name| step("kill-monitor", json!({"container": name}))),
            15 => self.dying_sandbox(),
            16 => self.pod_with(|name| {
                let keys = json!({"container": name, "steps": [kill(name)]});
                step("fill-disk", keys)
            }),
            _ => {
                let others = self.pod();
                self.pod_with(|name| {
                    let steps = [vec![kill(name)], others].concat();
                    step("freeze-monitor", json!({"container": name, "steps": steps}))
                })
            }
        }
    }

    /// A pod with one container, to which something happens.
    fn pod_with(&mut self, happens: impl FnOnce(&str) -> Step) -> Plan {
        let (pod, name) = (self.name("p"), self.name("c"));
        let mut steps = vec![sandbox(&pod)];
        steps.extend(started(&name, &pod, &[&until_term()]));
        steps.extend([
            wait(&name, EventKind::Started),
            happens(&name),
            wait(&name, EventKind::Stopped),
            process_exited(&name),
        ]);
        steps
    }

    /// A sandbox that dies, with a container that only SIGKILL can end.
    fn dying_sandbox(&mut self) -> Plan {
        let (pod, name) = (self.name("p"), self.name("c"));
        let mut steps = vec![sandbox(&pod)];
        steps.extend(started(&name, &pod, &[&ignore_term()]));
        steps.push(step("kill-sandbox", json!({"sandbox": pod})));
        steps
    }

    fn subscribers(&mut self) -> Plan {
        let open: Vec<String> = self.world.streams.keys().cloned().collect();
        match self.pick(&open) {
            Some(stream) if self.chance(40) => self.left(&stream),
            _ => {
                let name = self.name("s");
                match self.below(5) {
                    0 => vec![subscribe(&name, json!({"deadline": "2s"}))],
                    2 => {
                        let mut steps = vec![subscribe(&name, json!({}))];
                        steps.extend(self.left(&name));
                        steps
                    }
                    1 => {
                        let mut steps = vec![subscribe(&name, json!({"effective": "250ms"}))];
                        steps.extend(self.life());
                        steps
                    }
                    _ => vec![subscribe(&name, json!({}))],
                }
            }
        }
    }

    /// A subscriber that goes, and events after it.
    fn left(&mut self, stream: &str) -> Plan {
        let mut steps = vec![unsubscribe(stream, self.chance(50))];
        steps.extend(self.life());
        steps
    }

    /// A subscriber that does not read for a while, in which much may happen.
    fn slow_reader(&mut self) -> Plan {
        let name = self.name("s");
        let own_process = self.pick(&[false, true]).unwrap_or_default();
        let keys = json!({"stalls": true, "own-process": own_process});
        let mut steps = vec![subscribe(&name, keys)];
        if self.chance(50) {
            steps.extend(self.group());
        } else if let Some(pod) = self.some_pod() {
            let container = self.name("c");
            let made = Step::Create(create(&container, &pod, &[&until_term()]));
            let inner = [made, remove(&container)];
            let keys = json!({"times": 100, "workers": 4, "steps": inner});
            steps.push(step("repeat", keys));
            steps.push(soon(&relist(&pod)));
            let after = self.name("c");
            steps.push(Step::Create(create(&after, &pod, &[&until_term()])));
            steps.push(wait(&after, EventKind::Created));
        }
        let end = if self.chance(70) {
            step("resume", json!({"subscription": name}))
        } else {
            unsubscribe(&name, true)
        };
        steps.push(end);
        steps
    }

    /// A time without events, with calls that cause none.
    pub(super) fn silence(&mut self) -> Plan {
        let mut steps = self.settle();
        let mut inner = Vec::new();
        for _ in 0..self.below(3) {
            let call = self.call_unknown(&["StopContainer", "RemoveContainer", "StopPodSandbox"]);
            inner.push(match self.some(&[Life::Running]) {
                Some(container) if self.chance(40) => signal(&container, "SIGSTOP"),
                Some(container) if self.chance(30) => self.exec(&container),
                _ if self.chance(40) => step("outside-cri", json!({})),
                _ if self.chance(40) => self.image_call(),
                _ => call,
            });
        }
        let seconds = self.pick(&[1, 1, 1, 1, 1, 1, 3, 35]).unwrap_or(1);
        let keys = json!({"for": format!("{seconds}s"), "steps": inner});
        steps.push(step("stays-silent", keys));
        steps
    }

    /// Two stops of one container at once, the shorter of which must not wait for the longer.
    fn rivals(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let name = self.name("c");
        let mut steps = started(&name, &pod, &[&ignore_term()]);
        let slow = vec![stop(&name, 20)];
        let fast = vec![soon(&stop(&name, 0))];
        steps.push(wait(&name, EventKind::Started));
        steps.push(parallel([(true, slow), (true, fast)]));
        steps
    }

    /// The runtime is ended and started again, while something is under way or happens meanwhile.
    fn restart(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let name = self.name("c");
        let over = self.name("c");
        let mut steps = started(&name, &pod, &[&ignore_term()]);
        steps.extend(started(&over, &pod, &[&exits(3, 1_500)]));
        steps.push(wait(&name, EventKind::Started));
        if self.chance(30) {
            steps.push(subscribe(&self.name("s"), json!({})));
        }
        steps.extend(self.settle());
        let kills = self.chance(50);
        let (mut during, mut meanwhile, mut after) = (Vec::new(), Vec::new(), Vec::new());
        match self.below(4) {
            0 => {
                during.push(stop(&name, 20));
                after.push(kill(&name));
            }
            1 => meanwhile.push(kill(&name)),
            2 => after.push(kill(&name)),
            _ => after.extend(self.poke()),
        }
        let mut keys = if kills || !during.is_empty() {
            json!({"by": "kill"})
        } else {
            json!({"within": "30s"})
        };
        if self.chance(30) {
            keys["back-off"] = true.into();
            keys["down"] = "1s".into();
        }
        keys["during"] = json!(during);
        keys["meanwhile"] = json!(meanwhile);
        steps.push(step("restart-runtime", keys));
        steps.extend(after);
        steps.push(process_exited(&over));
        let later = self.name("c");
        steps.extend(started(&later, &pod, &[&exits(0, 3_000)]));
        steps.push(wait(&later, EventKind::Stopped));
        steps.push(relist(&pod));
        steps
    }

    /// Waits for the events that are to come.
    fn settle(&mut self) -> Plan {
        let pods = self.world.pods_in(PodState::Ready);
        let of_pods = pods.iter().map(|pod| wait(pod, EventKind::Started));
        let containers = self.world.containers.iter();
        let of_containers = containers.filter_map(|(name, container)| {
            let last = container.events.as_ref()?.last()?;
            Some(wait(name, *last))
        });
        of_pods.chain(of_containers).collect()
    }
}

fn subscribe(name: &str, mut keys: Value) -> Step {
    keys["as"] = name.into();
    step("subscribe", keys)
}

/// Closes a subscription, or hangs up.
fn unsubscribe(name: &str, hang_up: bool) -> Step {
    let keys = json!({"subscription": name, "hang-up": hang_up});
    step("unsubscribe", keys)
}

/// A step whose calls must return soon.
fn soon(inner: &Step) -> Step {
    step(
        "calls-return-within",
        json!({"time": "10s", "steps": [inner]}),
    )
}
