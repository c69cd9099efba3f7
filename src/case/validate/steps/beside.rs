//! Whether calls that may fail, and steps beside a container's own life, make sense.

use super::{Round, Walk};
use crate::case::validate::names::{Kind, Wanted};
use crate::case::validate::workload;
use crate::case::{
    AsideStep, Branch, ContainerRef, CreateStep, ExecStep, GoneStep, Need, RemoveStep, SandboxRef,
    SandboxStep, StepClockStep, Terms, limits,
};
use crate::history::{AsideOf, Flaw};

impl<'a> Walk<'a, '_> {
    pub(super) fn terms(&mut self, terms: Terms) {
        if terms.fails && (terms.races || terms.deadline.is_some()) {
            self.found
                .object_to("fails", "this call may succeed, too")
                .advise("leave out either `fails` or the rest");
        }
        if terms.deadline.is_some_and(|deadline| deadline.is_zero()) {
            self.found
                .object_to("deadline", "no call comes to anything within no time");
        }
        self.span("deadline", terms.deadline);
    }

    pub(super) fn again(&mut self, step: &SandboxStep) {
        if let Some(earlier) = &step.again {
            self.resolve(("again", earlier), Wanted::Sandbox);
        }
        if step.own_network && !self.file.needs.contains(&Need::Network) {
            self.found
                .object_to("own-network", "there may be no network")
                .advise("add `needs: [network]`");
        }
        if step.faulty && !self.file.needs.contains(&Need::FaultyHandler) {
            self.found
                .object_to("faulty", "there may be no such handler")
                .advise("add `needs: [faulty-handler]`");
        }
        if step.faulty && step.runtime_handler.is_some() {
            self.found
                .object_to("runtime-handler", "the faulty one is another");
        }
        if let Some(mib) = step.memory_mib {
            workload::check_limit(mib, self.file, self.found);
            if !self.file.needs.contains(&Need::PodCgroup) {
                self.found
                    .object_to("memory-mib", "no pod may have a cgroup of its own")
                    .advise("add `needs: [pod-cgroup]`");
            }
        }
        if step.again.is_some() && step.without_uid {
            self.found
                .object_to("without-uid", "the pod is that of the other sandbox");
        }
    }

    pub(super) fn kill_sandbox(&mut self, step: &SandboxRef) {
        self.resolve(("sandbox", &step.sandbox), Wanted::Sandbox);
        if !self.file.needs.contains(&Need::HostPid) {
            self.found
                .object("the case does not say that it needs the host's processes")
                .advise("add `needs: [host-pid]`");
        }
    }

    pub(super) fn remove(&mut self, step: &'a RemoveStep) {
        self.container(&step.container, &[]);
        self.terms(step.terms());
        if step.within.is_some() && (step.races || step.by_prefix) {
            self.found
                .object_to("within", "whatever this call returns is right")
                .advise("leave out either `within` or the rest");
        }
        self.span("within", step.within);
    }

    pub(super) fn kill(&mut self, step: &ContainerRef) {
        self.resolve(("container", &step.container), Wanted::Container);
        self.needs_processes();
    }

    pub(super) fn gone(&mut self, step: &GoneStep) {
        self.resolve(("container", &step.container), Wanted::Container);
        self.span("within", step.within);
        self.needs_processes();
    }

    fn needs_processes(&mut self) {
        let needs = &self.file.needs;
        if !needs.contains(&Need::ContainerPid) && !needs.contains(&Need::HostPid) {
            self.found
                .object("the case does not say that it looks for processes on the host")
                .advise("add `needs: [container-pid]`");
        }
    }

    pub(super) fn step_clock(&mut self, step: &'a StepClockStep, round: Round) {
        self.alone("the clock would be wrong for other cases, too");
        if !self.file.needs.contains(&Need::ClockSteps) {
            self.found
                .object("the case does not say that it sets the host's clock")
                .advise("add `needs: [clock-steps]`");
        }
        if step.back.is_some() == step.forward.is_some() {
            self.found
                .object("the clock is set either `back` or `forward`");
        }
        for (key, span) in [("back", step.back), ("forward", step.forward)] {
            if span.is_some_and(|span| span > limits::CLOCK_STEP) {
                let most = limits::CLOCK_STEP;
                self.found
                    .object_to(key, format!("the clock can be wrong by {most:?} at most"));
            }
        }
        self.steps(&step.steps, round);
    }

    pub(super) fn outside_cri(&mut self) {
        if !self.file.needs.contains(&Need::OutsideCri) {
            self.found
                .object("there may be no command that makes such a container")
                .advise("add `needs: [outside-cri]`");
        }
    }

    pub(super) fn restart_runtime(&mut self, round: Round) {
        self.without_listeners(round);
        if !self.file.needs.contains(&Need::RuntimeRestart) {
            self.found
                .object("the user may have no commands that do it, or not allow it")
                .advise("add `needs: [runtime-restart]`");
        }
    }

    pub(super) fn others(&mut self, step: &CreateStep) {
        let crashes = step.flaw.and_then(Flaw::crashes_at).is_some();
        if crashes && !self.file.needs.contains(&Need::FaultyHandler) {
            self.found
                .object_to(
                    "flaw",
                    "no other handler than the faulty one dies on demand",
                )
                .advise("add `needs: [faulty-handler]`, and `faulty: true` to the sandbox");
        }
        if let Some(twin) = &step.same_as {
            self.resolve(("same-as", twin), Wanted::Container);
        }
        if let Some(target) = &step.pid_target {
            self.resolve(("pid-target", target), Wanted::Container);
        }
    }

    pub(super) fn exec(&mut self, step: &'a ExecStep, round: Round) {
        let Self {
            names,
            found,
            rounds,
            ..
        } = self;
        let name = ("container", step.container.as_str());
        let limit = match names.in_step(name, Wanted::Container, rounds, found) {
            Some(Kind::Container { memory_mib, .. }) => memory_mib,
            _ => None,
        };
        self.found.enter("runs");
        workload::check_command(&step.runs, limit, round.has_item, self.found);
        self.found.leave();
        if step.timeout.subsec_nanos() != 0 || step.timeout.is_zero() {
            self.found
                .object_to(
                    "timeout",
                    "a command's time is in whole seconds, one or more",
                )
                .advise("the CRI counts it in seconds");
        }
        self.span("timeout", Some(step.timeout));
    }

    pub(super) fn each_handler(&mut self, step: &'a Branch, round: Round) {
        if !self.file.needs.contains(&Need::Handlers) {
            self.found
                .object("there may be no handlers to choose from")
                .advise("add `needs: [handlers]`");
        }
        self.apart(&step.steps, round);
    }

    pub(super) fn aside(&mut self, step: &AsideStep) {
        let wanted = match step.call.of() {
            AsideOf::Container => Wanted::Container,
            AsideOf::Sandbox => Wanted::Sandbox,
            AsideOf::Nothing => {
                if step.of.is_some() {
                    let method = step.call.method();
                    self.found
                        .object_to("of", format!("{method} is about the whole runtime"));
                }
                return;
            }
        };
        if let Some(of) = &step.of {
            self.resolve(("of", of), wanted);
        } else {
            let method = step.call.method();
            self.found
                .object_to("call", format!("{method} is about something"))
                .advise("add `of:` with a name");
        }
    }
}
