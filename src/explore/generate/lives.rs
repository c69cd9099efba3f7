//! The lives of containers on real nodes, and their workloads, as keys of steps.

use serde_json::{Value, json};

use super::Generator;
use crate::case::{CreateStep, Step, WorkloadSpec};
use crate::explore::plan::{
    Plan, create, ends, kill, process_exited, relist, remove, sandbox, signal, start, step, stop,
    wait,
};
use crate::explore::world::Life;
use crate::history::EventKind;

/// Runs until SIGTERM.
pub(super) fn until_term() -> Value {
    json!({"workload": "until-term"})
}

/// Runs until SIGKILL.
pub(super) fn ignore_term() -> Value {
    json!({"workload": "ignore-term"})
}

pub(super) fn exits(code: u8, after_ms: u16) -> Value {
    json!({"workload": {"exit": {"code": code, "after": format!("{after_ms}ms")}}})
}

/// Runs until SIGUSR1, which is no SIGTERM.
pub(super) fn until_signal() -> Value {
    json!({"workload": {"until-signal": {"signal": "SIGUSR1", "code": 42}}})
}

/// Allocates more than its pod may have.
pub(super) fn allocates() -> Value {
    json!({"workload": {"allocate": {"mib": 128, "after": "500ms"}}})
}

/// Allocates more than it may have itself.
fn exceeds_limit(workload: &Value) -> Value {
    json!({"workload": workload, "memory-mib": 16})
}

/// A container that is created and started.
pub(super) fn started(name: &str, pod: &str, keys: &[&Value]) -> Plan {
    vec![Step::Create(create(name, pod, keys)), start(name)]
}

impl Generator<'_> {
    /// A workload.
    pub(super) fn work(&mut self) -> Value {
        let codes = [0, 0, 0, 1, 1, 2, 42, 127, 137, 143, 255];
        let code = self.pick(&codes).unwrap_or_default();
        let after_ms = self.pick(&[0, 50, 300, 300, 500, 1_000]);
        let after_ms = after_ms.unwrap_or_default();
        let signal = self.pick(&[4, 5, 7, 11]).unwrap_or(11);
        let dies_after = format!("{}ms", after_ms.max(50));
        let in_child = |then: &str| {
            let child = json!({"mib": 128, "after": "500ms", "then": then, "code": 0});
            json!({ "allocate-in-child": child })
        };
        let mut of_all = exceeds_limit(&in_child("5s"));
        of_all["oom-group"] = true.into();
        let works = [
            until_term(),
            until_term(),
            until_term(),
            until_term(),
            ignore_term(),
            ignore_term(),
            exits(code, after_ms),
            exits(code, after_ms),
            exits(code, after_ms),
            exits(0, 0),
            json!({"workload": {"die": {"signal": signal, "after": dies_after}}}),
            json!({"workload": {"dump-core": {"signal": 11, "after": "300ms"}}}),
            exceeds_limit(&json!({"allocate": {"mib": 128, "after": "500ms"}})),
            exceeds_limit(&in_child("1s")),
            of_all,
            exceeds_limit(&json!({"allocate-on-term": {"mib": 128}})),
            json!({"workload": {"orphan-child": {"code": 3, "after": "300ms"}}}),
            json!({"workload": "missing-program"}),
            json!({"workload": {"zombies": 20}}),
            until_signal(),
        ];
        let work = self.pick(&works).unwrap_or_else(until_term);
        if self.can_create(&work) {
            work
        } else {
            exits(1, 300)
        }
    }

    /// The special keys of a container, if any.
    pub(super) fn kind(&mut self) -> Value {
        let kinds = [
            json!({"tty": true}),
            json!({
                "mounted": true,
                "labels": {"app": "web"},
                "annotations": {"io.kubernetes.container.hash": "8f3c"},
            }),
            json!({"annotation-kib": 200}),
            json!({"stop-signal": "SIGUSR1"}),
        ];
        if self.chance(75) {
            return json!({});
        }
        let kind = self.pick(&kinds).unwrap_or_default();
        if self.can_create(&kind) {
            kind
        } else {
            json!({})
        }
    }

    /// Whether the runtime and its node can have a container with these keys.
    fn can_create(&self, keys: &Value) -> bool {
        let container = create("c", "p", &[&until_term(), keys]);
        self.can_take(&Step::Create(container))
    }

    pub(super) fn grace(&mut self) -> u8 {
        self.pick(&[0, 0, 1, 2, 2, 5]).unwrap_or_default()
    }

    pub(super) fn life(&mut self) -> Plan {
        match self.some_pod() {
            Some(pod) => self.life_in(&pod),
            None => self.another_pod(),
        }
    }

    /// A container from its creation to somewhere in its life.
    pub(super) fn life_in(&mut self, pod: &str) -> Plan {
        let (mut work, mut kind) = (self.work(), self.kind());
        let home = self.world.pods.get(pod);
        let is_limited = home.is_some_and(|home| home.spec.memory_mib.is_some());
        let by_pod = is_limited && self.chance(40);
        if kind.get("stop-signal").is_some() {
            work = until_signal();
        } else if by_pod {
            (work, kind) = (allocates(), json!({}));
        }
        let name = self.name("c");
        let container = create(&name, pod, &[&work, &kind]);
        let mut steps = vec![Step::Create(container.clone())];
        if self.chance(5) {
            steps.push(remove(&name));
            return steps;
        }
        steps.push(start(&name));
        if container.workload == WorkloadSpec::MissingProgram {
            steps.push(relist(pod));
            if self.chance(50) {
                steps.push(remove(&name));
            }
            return steps;
        }
        if container.annotation_kib.is_some() && self.chance(50) {
            // An event has the statuses of all containers of its pod.
            let other = self.name("c");
            steps.push(Step::Create(create(&other, pod, &[&work, &kind])));
        }
        if container.stop_signal.is_some() && self.chance(60) {
            // A program that has begun obeys its own signal.
            let runs = json!({"exit": {"code": 0}});
            let keys = json!({"container": name, "runs": runs, "timeout": "10s"});
            let begun = step("exec", keys);
            steps.extend([wait(&name, EventKind::Started), begun, stop(&name, 2)]);
            return steps;
        }
        steps.extend(self.rest_of_life(&container));
        steps
    }

    fn rest_of_life(&mut self, container: &CreateStep) -> Plan {
        let name = &container.binding;
        let mut steps = Vec::new();
        if ends(container) {
            if self.chance(70) {
                steps.push(wait(name, EventKind::Stopped));
            } else if self.chance(30) {
                steps.push(stop(name, self.grace()));
            }
        } else {
            if self.chance(60) {
                steps.push(wait(name, EventKind::Started));
            }
            match self.below(8) {
                0 | 1 => steps.push(stop(name, self.grace())),
                2 => steps.extend([kill(name), wait(name, EventKind::Stopped)]),
                3 => steps.push(self.exec(name)),
                4 => steps.push(signal(name, "SIGSTOP")),
                _ => return steps,
            }
        }
        if self.chance(40) {
            steps.push(remove(name));
            if self.chance(20) {
                steps.push(process_exited(name));
            }
        }
        steps
    }

    /// A command: short or slow, killed, or one that does not end in time.
    pub(super) fn exec(&mut self, name: &str) -> Step {
        let exit = |code: u8, after: &str| json!({"exit": {"code": code, "after": after}});
        let commands = [
            (exit(0, "0s"), "10s"),
            (exit(0, "0s"), "10s"),
            (exit(1, "0s"), "10s"),
            (exit(0, "500ms"), "10s"),
            (exit(0, "1500ms"), "10s"),
            (json!({"die": {"signal": 9}}), "10s"),
            (json!("ignore-term"), "1s"),
            (json!("missing-program"), "10s"),
        ];
        let (runs, timeout) = self.pick(&commands).unwrap_or_default();
        step(
            "exec",
            json!({"container": name, "runs": runs, "timeout": timeout}),
        )
    }

    /// A container that fails and is started anew, as a kubelet does: the last attempt is kept.
    pub(super) fn crash_loop(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let after_ms = self.pick(&[0, 50, 300]).unwrap_or_default();
        let work = exits(1, after_ms);
        let mut earlier = self.name("c");
        let mut steps = started(&earlier, &pod, &[&work]);
        steps.push(wait(&earlier, EventKind::Stopped));
        for _ in 0..=self.below(2) {
            let next = self.name("c");
            let attempt = json!({"attempt-of": earlier});
            steps.extend(started(&next, &pod, &[&work, &attempt]));
            if self.chance(50) {
                steps.push(remove(&earlier));
            }
            steps.push(wait(&next, EventKind::Stopped));
            earlier = next;
        }
        steps
    }

    /// A container is stopped and started anew.
    pub(super) fn rolling_restart(&mut self) -> Plan {
        let Some(old) = self.some(&[Life::Running, Life::Exited]) else {
            return self.life();
        };
        let pod = self.pod_of(&old);
        let next = self.name("c");
        let work = self.work();
        let mut steps = vec![stop(&old, self.grace())];
        if self.chance(30) {
            steps.push(wait(&old, EventKind::Stopped));
        }
        steps.extend(started(&next, &pod, &[&work, &json!({"attempt-of": old})]));
        if self.chance(60) {
            steps.push(remove(&old));
        }
        steps
    }

    pub(super) fn probes(&mut self) -> Plan {
        let Some(container) = self.some(&[Life::Running, Life::Running, Life::Ending]) else {
            return self.life();
        };
        let count = 1 + self.below(2);
        (0..count).map(|_| self.exec(&container)).collect()
    }

    /// One step on any container.
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
        let name = &name;
        match self.below(16) {
            14.. => {
                let limits = [json!({"cpu-shares": 512}), json!({"memory-mib": 64})];
                let mut keys = self.pick(&limits).unwrap_or_default();
                keys["container"] = json!(name);
                vec![step("update", keys)]
            }
            0 | 1 => vec![start(name)],
            2 | 3 => {
                let stop = stop(name, self.grace());
                let times = if self.chance(30) { 2 } else { 1 };
                vec![stop; times]
            }
            4 => {
                let grace = format!("{}s", self.grace());
                let keys = json!({"container": name, "grace": grace, "abandon-after": "20ms"});
                vec![step("stop", keys)]
            }
            5..8 => vec![remove(name)],
            8 => vec![step(
                "remove",
                json!({"container": name, "by-prefix": true}),
            )],
            9 => vec![kill(name)],
            10 => vec![signal(name, "SIGSTOP")],
            11 => vec![wait(name, EventKind::Stopped)],
            12 => vec![self.exec(name)],
            _ => vec![abandoned_start(name)],
        }
    }

    /// A container that joins the PID namespace of another.
    pub(super) fn pid_target(&mut self) -> Plan {
        let mut steps = Vec::new();
        let (target, pod) = match (self.some(&[Life::Running]), self.some_pod()) {
            (Some(target), _) => (target.clone(), self.pod_of(&target)),
            (None, Some(pod)) => {
                let target = self.name("c");
                steps.extend(started(&target, &pod, &[&until_term()]));
                (target, pod)
            }
            (None, None) => return self.life(),
        };
        let name = self.name("c");
        let works = [ignore_term(), exits(7, 300)];
        let work = self.pick(&works).unwrap_or_else(ignore_term);
        let container = create(&name, &pod, &[&work, &json!({"pid-target": target})]);
        let is_short = ends(&container);
        steps.extend([
            Step::Create(container),
            start(&name),
            wait(&name, EventKind::Started),
        ]);
        if is_short && self.chance(60) {
            steps.push(wait(&name, EventKind::Stopped));
        }
        if self.chance(50) {
            steps.push(stop(&target, 2));
        }
        steps
    }

    /// A container that lives while another one is killed for the memory of their pod.
    pub(super) fn killed_sibling(&mut self, pod: &str) -> Plan {
        let (lives, hog) = (self.name("c"), self.name("c"));
        let mut steps = started(&lives, pod, &[&ignore_term()]);
        steps.extend(started(&hog, pod, &[&allocates()]));
        steps.extend([wait(&hog, EventKind::Stopped), stop(&lives, self.grace())]);
        steps
    }

    /// A creation that fails, or a call that the client abandons.
    pub(super) fn failure(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        let name = self.name("c");
        let keys = match self.below(6) {
            // As a kubelet tries again once it has pulled the image.
            0 | 1 => {
                let missing = create(&name, &pod, &[&until_term(), &json!({"image": "missing"})]);
                let mut again = self.life_in(&pod);
                if let Some(Step::Create(again)) = again.first_mut() {
                    again.same_as = Some(name);
                }
                return [vec![Step::Create(missing)], again].concat();
            }
            2 => {
                let lives = [Life::Running, Life::Created, Life::Exited];
                let Some(twin) = self.some(&lives) else {
                    return self.life();
                };
                let twin_pod = self.pod_of(&twin);
                let twin = create(
                    &name,
                    &twin_pod,
                    &[&until_term(), &json!({"same-as": twin})],
                );
                return vec![Step::Create(twin)];
            }
            3 => json!({"abandon-after": "5ms"}),
            4 => {
                let mut refused = sandbox(&self.name("p"));
                if let Step::Sandbox(refused) = &mut refused {
                    refused.runtime_handler = Some("no-such-handler".to_owned());
                }
                return vec![refused];
            }
            _ => {
                return vec![
                    Step::Create(create(&name, &pod, &[&until_term()])),
                    abandoned_start(&name),
                    stop(&name, 0),
                    remove(&name),
                ];
            }
        };
        vec![Step::Create(create(&name, &pod, &[&until_term(), &keys]))]
    }

    /// A container whose low-level runtime crashes.
    pub(super) fn crash(&mut self, pod: &str) -> Plan {
        let name = self.name("c");
        let flaws = [
            "crash-at-create",
            "crash-at-start",
            "crash-at-kill",
            "crash-at-delete",
        ];
        let flaw = self.pick(&flaws).unwrap_or("crash-at-start");
        let work = match flaw {
            "crash-at-delete" => exits(42, 1_000),
            _ => until_term(),
        };
        let mut steps = started(&name, pod, &[&work, &json!({"flaw": flaw})]);
        if flaw == "crash-at-kill" {
            steps.extend([wait(&name, EventKind::Started), stop(&name, 2)]);
        } else {
            steps.push(wait(&name, EventKind::Stopped));
        }
        steps.extend([relist(pod), remove(&name), remove(&name)]);
        steps
    }
}

/// A start that the client gives up on.
fn abandoned_start(name: &str) -> Step {
    step("start", json!({"container": name, "abandon-after": "5ms"}))
}
