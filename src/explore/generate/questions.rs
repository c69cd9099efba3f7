//! Calls that change nothing, alone and while something happens.

use super::{Generator, create};
use crate::case::Need;
use crate::explore::plan::{ContainerKind, Moment, Op, Plan, Work};
use crate::explore::world::Life;

impl Generator<'_> {
    /// Calls that change nothing.
    pub(super) fn questions(&mut self) -> Plan {
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
                let methods = [
                    "StopContainer",
                    "RemoveContainer",
                    "StopPodSandbox",
                    "RemovePodSandbox",
                ];
                let method = self.pick(&methods).unwrap_or("RemoveContainer");
                vec![Op::CallUnknown(method)]
            }
            4 => {
                let inner = self.life_in(&pod);
                vec![Op::Poll(pod, inner)]
            }
            5 => {
                let inner = self.life_in(&pod);
                vec![Op::Prompt(30, inner)]
            }
            _ => self.asked_at_event(&pod),
        }
    }

    pub(super) fn calls(&mut self, pod: &str) -> Plan {
        let of_containers = [
            "UpdateContainerResources",
            "ReopenContainerLog",
            "ContainerStats",
        ];
        let method = match self.some(&[Life::Running]) {
            Some(container) if self.chance(60) => {
                let method = self.pick(&of_containers).unwrap_or("ContainerStats");
                return vec![Op::Call(method, Some(container))];
            }
            _ if self.chance(60) => self.image_call(),
            _ => self.pick(&["Version", "Status"]).unwrap_or("Version"),
        };
        if self.chance(30) {
            return vec![Op::Call("PodSandboxStats", Some(pod.to_owned()))];
        }
        vec![Op::Call(method, None)]
    }

    /// The method of a call to the image service.
    pub(super) fn image_call(&mut self) -> &'static str {
        let methods = ["ListImages", "ImageStatus", "PullImage"];
        self.pick(&methods).unwrap_or("ListImages")
    }

    /// A life in which the runtime is asked the moment an event arrives.
    pub(super) fn asked_at_event(&mut self, pod: &str) -> Plan {
        let name = self.name("c");
        let work = self
            .pick(&[Work::UntilTerm, Work::Exit(1, 300)])
            .unwrap_or(Work::UntilTerm);
        let start = Op::Start(name.clone(), None);
        let remove = Op::Remove(name.clone());
        let kinds = [ContainerKind::Plain, ContainerKind::WithMetadata];
        let kind = self.pick(&kinds).unwrap_or_default();
        let mut ops = vec![create(&name, pod, work, kind, None)];
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
}
