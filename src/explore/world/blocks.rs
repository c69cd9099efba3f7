//! Steps around others, and steps of several clients at once: the objects on which more than one of
//! them acts become uncertain.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::time::Duration;

use super::{Container, Life, PodState, Remains, World};
use crate::case::{
    CallOutcome, ParallelStep, RestartRuntimeStep, RuntimeEndSpec, Step, StopStep, WorkloadSpec,
};
use crate::explore::plan::{Branch, Plan, branches, inner, parallel, subject, wait_for_end};

impl World {
    /// Takes a step with the legal steps inside it, and the steps that have to follow it.
    pub(super) fn take_block(&mut self, mut step: Step) -> Plan {
        let before = self.clone();
        if !self.try_block(&mut step) {
            *self = before;
            return Vec::new();
        }
        let is_restart = matches!(step, Step::RestartRuntime(_));
        let ended = before.streams.iter();
        let ended = ended.filter(|(_, stream)| is_restart && !stream.stalled);
        let ends = ended.map(|(name, _)| wait_for_end(name));
        [step].into_iter().chain(ends).collect()
    }

    /// Takes the legal steps inside a step. Returns whether the step is legal itself.
    fn try_block(&mut self, step: &mut Step) -> bool {
        match step {
            Step::Resubscribe(it) => {
                if self.around.concurrent || self.around.unsubscribed {
                    return false;
                }
                it.meanwhile = self.without_stream(take(&mut it.meanwhile), false);
                true
            }
            Step::OnEvent(it) => {
                if self
                    .containers
                    .get(&it.of)
                    .is_none_or(|of| of.has(it.event))
                {
                    return false;
                }
                self.take_inside(&mut it.steps);
                let unsubscribed = self.around.unsubscribed;
                let of = self.containers.get(&it.of);
                of.is_some_and(|of| of.has(it.event) && !unsubscribed)
            }
            Step::PollDuring(it) => {
                // What is read while another client removes it is no state at rest.
                let container = self.containers.get(&it.of).map(|it| &it.scope);
                let scope = container.or(self.pods.get(&it.of).map(|it| &it.scope));
                let is_here = scope.is_some_and(|scope| self.is_in_scope(scope));
                is_here && !self.is_contested(&it.of) && self.take_inside(&mut it.steps)
            }
            Step::CallsReturnWithin(it) => self.take_inside(&mut it.steps),
            Step::StaysSilent(it) => {
                it.steps.retain(is_silent);
                let is_quiet = self.is_quiet();
                self.take_inside(&mut it.steps);
                is_quiet
            }
            Step::StepClock(it) => {
                let is_alone = !self.around.concurrent && !self.around.unsubscribed;
                let is_taken = is_alone && self.take_inside(&mut it.steps);
                self.clock_stepped |= is_taken;
                is_taken
            }
            Step::FreezeMonitor(it) => self.freeze_monitor(&it.container, &mut it.steps),
            Step::FillDisk(it) => {
                // Exits are reported once the monitor has room again. Other calls may fail
                // meanwhile, whichever container they are about.
                let is_exit = |step: &Step| matches!(step, Step::Kill(_) | Step::ProcessExited(_));
                it.steps.retain(is_exit);
                self.is_calm_around(&it.container)
                    && !self.around.unsubscribed
                    && self.take_inside(&mut it.steps)
            }
            Step::Repeat(it) => {
                let bulky =
                    |it: &Container| it.spec.annotation_kib.is_some() && it.life != Life::Removed;
                // Each event of its pod shows it, and a history has its limit.
                let is_much = it.times > Some(10) && self.containers.values().any(bulky);
                !is_much && self.take_apart(&mut it.steps)
            }
            Step::ForEachHandler(it) => self.take_apart(&mut it.steps),
            Step::RestartRuntime(it) => self.restart(it),
            _ => false,
        }
    }

    /// Takes the legal ones of these steps. Returns whether there are any.
    fn take_inside(&mut self, steps: &mut Plan) -> bool {
        *steps = self.take_all(take(steps));
        !steps.is_empty()
    }

    /// Whether a container runs, and nothing disturbs its monitor.
    fn is_calm_around(&self, name: &str) -> bool {
        let container = self.containers.get(name);
        let runs = container.is_some_and(|it| it.life == Life::Running);
        runs && self.around.frozen.is_none() && !self.around.concurrent
    }

    fn freeze_monitor(&mut self, name: &str, steps: &mut Plan) -> bool {
        if !self.is_calm_around(name) {
            return false;
        }
        let container = self.containers.get(name);
        self.around.frozen = container.map(|it| (it.spec.sandbox.clone(), name.to_owned()));
        let is_taken = self.take_inside(steps);
        self.around.frozen = None;
        is_taken
    }

    /// Takes steps that are repeated: they act on their own objects.
    fn take_apart(&mut self, steps: &mut Plan) -> bool {
        if self.around.isolated > 0 || self.around.unsubscribed {
            return false;
        }
        self.branches += 1;
        self.scopes.push(self.branches);
        self.around.isolated = self.scopes.len();
        let concurrent = std::mem::replace(&mut self.around.concurrent, true);
        let is_taken = self.take_inside(steps);
        self.around.concurrent = concurrent;
        self.around.isolated = 0;
        self.scopes.pop();
        is_taken
    }

    fn restart(&mut self, it: &mut RestartRuntimeStep) -> bool {
        if self.around.concurrent || self.around.unsubscribed {
            return false;
        }
        let kill = it.by == RuntimeEndSpec::Kill;
        let mut begun = false;
        it.during.retain_mut(|step| {
            let begins = match step {
                Step::Stop(stop) if kill && !begun => self.begins(stop),
                _ => false,
            };
            begun |= begins;
            begins
        });
        self.streams.clear();
        it.meanwhile = self.without_stream(take(&mut it.meanwhile), true);
        true
    }

    /// A stop that is under way when the runtime is killed: its grace period is longer than the
    /// runtime lives, and the container runs on.
    fn begins(&mut self, stop: &mut StopStep) -> bool {
        let Some(container) = self.containers.get_mut(&stop.container) else {
            return false;
        };
        let stubborn = container.spec.workload == WorkloadSpec::IgnoreTerm;
        let is_long = stop.grace >= Duration::from_secs(10) && stop.abandon_after.is_none();
        let begins = stubborn && is_long && container.life == Life::Running;
        if begins {
            container.events = None;
            stop.expect = CallOutcome::Either;
        }
        begins
    }

    /// Takes steps while no stream is open: events of this time are uncertain, as are events before
    /// it that were not awaited.
    fn without_stream(&mut self, steps: Plan, down: bool) -> Plan {
        let count = |it: &Container| it.events.as_ref().map(Vec::len);
        let containers = self.containers.iter();
        let before: Vec<(String, usize)> = containers
            .map(|(name, it)| (name.clone(), count(it).unwrap_or(0)))
            .collect();
        let around = take(&mut self.around);
        self.around.unsubscribed = true;
        self.around.down = down;
        let pods = self.pod_states();
        let inner = self.take_all(steps);
        self.around = around;
        for (name, container) in &mut self.containers {
            let had = before.iter().find(|(other, _)| other == name);
            let has = count(container);
            let is_new = had.map(|(_, count)| *count) != has;
            if is_new || container.seen != has.unwrap_or(0) || container.life == Life::Ending {
                container.events = None;
            }
            // What has not been seen yet may come before there is a stream again.
            container.tail.clear();
        }
        for unmade in self.unmade.values_mut() {
            if unmade.remains == Remains::Consistent {
                unmade.remains = Remains::Unobserved;
            }
        }
        for stream in self.streams.values_mut() {
            stream.accompanied = false;
        }
        for (name, pod) in &mut self.pods {
            let had = pods.iter().find(|(other, _)| other == name);
            let is_same = had.is_some_and(|(_, state)| *state == pod.state);
            if !is_same || !pod.seen || pod.state != PodState::Ready {
                pod.has_certain_events = false;
            }
        }
        inner
    }

    fn pod_states(&self) -> Vec<(String, PodState)> {
        let pods = self.pods.iter();
        pods.map(|(name, pod)| (name.clone(), pod.state)).collect()
    }
}

/// Whether a step causes no event.
fn is_silent(step: &Step) -> bool {
    matches!(
        step,
        Step::Exec(_)
            | Step::Update(_)
            | Step::Call(_)
            | Step::Relist(_)
            | Step::ListWithFilters(_)
            | Step::Signal(_)
            | Step::OutsideCri(_)
    )
}

/// Whether a step changes the object of a name, or only needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    Needs,
    Changes,
}

impl World {
    pub(super) fn take_parallel(&mut self, block: ParallelStep) -> Plan {
        let branches = branches(block);
        if self.around.concurrent || self.around.unsubscribed {
            // One client takes them one after the other.
            let all = branches.into_iter().flat_map(|(_, steps)| steps);
            return self.take_all(all.collect());
        }
        let mut branches = without_rivals(branches);
        if branches.len() == 1 {
            return self.take_all(branches.remove(0).1);
        }
        self.around.concurrent = true;
        self.around.contested = self.contested(&branches);
        let mut taken = Vec::new();
        for (other_client, steps) in branches {
            self.branches += 1;
            self.scopes.push(self.branches);
            let inner = self.take_all(steps);
            self.scopes.pop();
            if !inner.is_empty() {
                taken.push((other_client, inner));
            }
        }
        let contested = std::mem::take(&mut self.around.contested);
        self.around.concurrent = false;
        for name in &contested {
            if let Some(container) = self.containers.get_mut(name) {
                container.become_uncertain();
            }
            self.end_joined(name);
        }
        match taken.len() {
            0 => Vec::new(),
            // What one branch took alone stands without a block.
            1 => taken.remove(0).1,
            _ => vec![parallel(taken)],
        }
    }

    /// The names that one branch changes, and another changes or needs.
    fn contested(&self, branches: &[Branch]) -> BTreeSet<String> {
        let mut users = BTreeMap::<String, (BTreeSet<usize>, BTreeSet<usize>)>::new();
        for (index, (_, steps)) in branches.iter().enumerate() {
            for (name, how) in steps.iter().flat_map(|step| self.all_names(step)) {
                let (users, changers) = users.entry(name).or_default();
                users.insert(index);
                if how == Use::Changes {
                    changers.insert(index);
                }
            }
        }
        let is_contested = |(users, changers): &(BTreeSet<usize>, BTreeSet<usize>)| {
            !changers.is_empty() && users.len() > 1
        };
        let contested = users.iter().filter(|(_, used)| is_contested(used));
        contested.map(|(name, _)| name.clone()).collect()
    }

    /// The names that a step uses: with a sandbox those of its containers, and with a container
    /// that of its sandbox.
    fn all_names(&self, step: &Step) -> Vec<(String, Use)> {
        let mut all = names(step);
        for (name, how) in all.clone() {
            if let Some(container) = self.containers.get(&name) {
                let target = container.spec.pid_target.iter();
                let needed = target.chain([&container.spec.sandbox]).cloned();
                all.extend(needed.map(|name| (name, Use::Needs)));
            }
            if how == Use::Changes {
                let changed = self.containers.iter().filter(|(_, it)| {
                    it.spec.sandbox == name || it.spec.pid_target.as_ref() == Some(&name)
                });
                all.extend(changed.map(|(container, _)| (container.clone(), Use::Changes)));
            }
        }
        all
    }
}

/// The branches without those steps on sandboxes that an earlier branch has, too.
fn without_rivals(mut branches: Vec<Branch>) -> Vec<Branch> {
    let mut owners = BTreeMap::<String, usize>::new();
    for (index, (_, steps)) in branches.iter_mut().enumerate() {
        steps.retain(|step| match step {
            Step::StopSandbox(_) | Step::RemoveSandbox(_) => {
                let pod = subject(step).unwrap_or_default().to_owned();
                *owners.entry(pod).or_insert(index) == index
            }
            Step::Parallel(_)
            | Step::Resubscribe(_)
            | Step::StaysSilent(_)
            | Step::StepClock(_) => false,
            _ => true,
        });
    }
    branches.retain(|(_, steps)| !steps.is_empty());
    branches
}

/// The names in a step, and the use of each.
pub(super) fn names(step: &Step) -> Vec<(String, Use)> {
    let how = match step {
        Step::Start(_)
        | Step::Stop(_)
        | Step::Remove(_)
        | Step::Kill(_)
        | Step::Signal(_)
        | Step::KillMonitor(_)
        | Step::StopSandbox(_)
        | Step::RemoveSandbox(_)
        | Step::KillSandbox(_) => Use::Changes,
        _ => Use::Needs,
    };
    let mut all: Vec<(String, Use)> = subject(step)
        .map(|name| (name.to_owned(), how))
        .into_iter()
        .collect();
    let needed = match step {
        Step::Sandbox(it) => vec![&it.attempt_of],
        Step::Create(it) => {
            // Of a name's attempts the suite keeps count.
            let earlier = it.attempt_of.iter().cloned();
            all.extend(earlier.map(|earlier| (earlier, Use::Changes)));
            all.push((it.sandbox.clone(), Use::Needs));
            vec![&it.same_as, &it.pid_target]
        }
        _ => Vec::new(),
    };
    all.extend(
        needed
            .into_iter()
            .flatten()
            .map(|name| (name.clone(), Use::Needs)),
    );
    all.extend(inner(step).into_iter().flatten().flat_map(names));
    all
}
