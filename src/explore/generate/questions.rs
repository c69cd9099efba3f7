//! Calls that change nothing, alone and while something happens.

use serde_json::json;

use super::Generator;
use super::works::{exits, until_term};
use crate::case::{Need, Step};
use crate::explore::plan::{Plan, create, ends, relist, remove, start, step, stop};
use crate::explore::world::Life;
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
        let of_containers = [
            "UpdateContainerResources",
            "ReopenContainerLog",
            "ContainerStats",
        ];
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
    pub(super) fn image_call(&mut self) -> Step {
        let methods = ["ListImages", "ImageStatus", "PullImage"];
        let method = self.pick(&methods).unwrap_or("ListImages");
        step("call", json!({"method": method}))
    }

    /// A call on an id that does not exist.
    pub(super) fn call_unknown(&mut self, methods: &[&str]) -> Step {
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
}
