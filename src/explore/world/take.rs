//! Taking one operation.

use super::{Container, End, EndedBy, Life, Pod, PodState, Remains, Stream, Taken, World};
use crate::case::Need;
use crate::explore::plan::{Command, ContainerKind, Moment, Op, Plan, PodKind, Work};

impl World {
    /// Takes an operation; returns nothing if it is not legal here.
    pub(in crate::explore) fn take(&mut self, op: Op) -> Vec<Taken> {
        if self.around.down && !matches!(op, Op::Kill(_)) || !self.is_apart_from_frozen(&op) {
            return Vec::new();
        }
        let end = match &op {
            Op::Parallel(_) => return self.take_parallel(op),
            _ if !op.inner().is_empty() => return self.take_block(op).into_iter().collect(),
            Op::Sandbox {
                name,
                attempt_of,
                kind,
            } => self.sandbox(name, attempt_of.as_deref(), *kind),
            Op::Create { .. } => self.create(&op),
            Op::Start(name, abandoned) => self.start(name, abandoned.is_some()),
            Op::Stop(name, grace_s, abandoned) => self.stop(name, *grace_s, abandoned.is_some()),
            Op::Remove(name) => self.remove(name),
            Op::RemoveByPrefix(name) if self.is_contested(name) => None,
            Op::RemoveByPrefix(name) => self.remove(name).filter(|end| *end == End::Success),
            Op::Kill(name) => self.kill(name),
            Op::Freeze(name) => self.freeze(name),
            Op::Await(name, event) => self.wait(name, *event),
            Op::Exec(name, command) => self.exec(name, *command),
            Op::Relist(pod) => self.asked(pod),
            Op::ListWithFilters(pod, streamed) => self
                .asked(pod)
                .filter(|_| !streamed || self.can.meets(Need::StreamedLists)),
            Op::Call(_, of) => self.call(of.as_deref()),
            Op::CallUnknown(_) => Some(End::Either),
            Op::StopSandbox(pod) => self.stop_sandbox(pod),
            Op::RemoveSandbox(pod) => self.remove_sandbox(pod),
            Op::Subscribe(name, stalled) => self.subscribe(name, *stalled),
            Op::Unsubscribe(name, _) => self.streams.remove(name).map(|_| End::Success),
            Op::Resume(name) => self.resume(name),
            Op::Silence(_) => self.is_quiet().then_some(End::Success),
            Op::KillSandbox(pod) => self.kill_sandbox(pod),
            Op::KillMonitor(name) => self.kill_monitor(name),
            Op::Resubscribe(_)
            | Op::OnEvent(..)
            | Op::Poll(..)
            | Op::Prompt(_)
            | Op::FreezeMonitor(..)
            | Op::Repeat(..)
            | Op::EachHandler(_)
            | Op::Restart { .. } => None,
        };
        let taken = end.map(|end| Taken {
            op,
            end,
            inner: Vec::new(),
        });
        taken.into_iter().collect()
    }

    fn sandbox(&mut self, name: &str, attempt_of: Option<&str>, kind: PodKind) -> Option<End> {
        let need = match kind {
            PodKind::Plain | PodKind::SharedPid | PodKind::Labelled | PodKind::Refused => None,
            PodKind::Network => Some(Need::Network),
            PodKind::Memory => Some(Need::PodCgroup),
            PodKind::Faulty => Some(Need::FaultyHandler),
        };
        let is_met = need.is_none_or(|need| self.can.meets(need));
        let kind = match attempt_of {
            Some(earlier) => {
                let earlier = self.pods.get(earlier)?;
                if earlier.state == PodState::Ready
                    || earlier.followed
                    || !self.is_own(&earlier.scope)
                {
                    return None;
                }
                earlier.kind
            }
            None => kind,
        };
        if !is_met || kind == PodKind::Memory && attempt_of.is_some() || !self.bind(name) {
            return None;
        }
        if let Some(earlier) = attempt_of.and_then(|earlier| self.pods.get_mut(earlier)) {
            earlier.followed = true;
        }
        if kind == PodKind::Refused {
            self.unmade.insert(name.to_owned(), Remains::Absent);
            return Some(End::Failure);
        }
        let pod = Pod {
            state: PodState::Ready,
            kind,
            heard: !self.around.deaf,
            scope: self.scopes.clone(),
            seen: false,
            followed: false,
        };
        self.pods.insert(name.to_owned(), pod);
        Some(End::Success)
    }

    fn create(&mut self, op: &Op) -> Option<End> {
        let Op::Create {
            name,
            pod,
            work,
            kind,
            other,
        } = op
        else {
            return None;
        };
        let home = self.pods.get(pod)?.clone();
        if !self.is_in_scope(&home.scope) || !self.can_run(*work, *kind, home.kind) {
            return None;
        }
        if let Some(other) = other {
            let other = self.containers.get(other)?;
            let fits = match kind {
                ContainerKind::NextAttempt => {
                    !matches!(other.life, Life::Running | Life::Created | Life::Unsure)
                }
                ContainerKind::PidTarget => other.life == Life::Running,
                ContainerKind::Twin => !matches!(other.life, Life::Removed | Life::Unsure),
                _ => false,
            };
            if !fits || other.pod != *pod || !self.is_own(&other.scope) {
                return None;
            }
        }
        let contested = self.is_contested(pod)
            || other.as_ref().is_some_and(|other| self.is_contested(other));
        if contested && *kind == ContainerKind::Twin || self.names.contains(name) {
            return None;
        }
        let remains = match (kind, home.state) {
            (ContainerKind::NoImage | ContainerKind::Twin, PodState::Ready) if !contested => {
                Some((Remains::Absent, End::Failure))
            }
            (ContainerKind::NoImage | ContainerKind::Twin, _) => return None,
            (_, PodState::Removed) => Some((Remains::Absent, End::Failure)),
            (ContainerKind::Abandoned, _) => Some((Remains::Consistent, End::Success)),
            (_, PodState::Stopped) => Some((Remains::Consistent, End::Either)),
            (_, PodState::Dead) => return None,
            (_, PodState::Ready) if contested => Some((Remains::Consistent, End::Either)),
            (_, PodState::Ready) => None,
        };
        self.bind(name);
        if let Some((remains, end)) = remains {
            self.unmade.insert(name.clone(), remains);
            return Some(end);
        }
        let joined = *kind == ContainerKind::PidTarget;
        let container = Container {
            pod: pod.clone(),
            work: *work,
            kind: *kind,
            life: Life::Created,
            events: (!self.around.deaf).then(|| vec![Moment::Created]),
            seen: 0,
            target: other.clone().filter(|_| joined),
            ended_by: None,
            stops: 0,
            warm: false,
            scope: self.scopes.clone(),
        };
        self.containers.insert(name.clone(), container);
        Some(End::Success)
    }

    /// Whether this runtime, and this pod, can have such a container.
    fn can_run(&self, work: Work, kind: ContainerKind, home: PodKind) -> bool {
        let of_kind = match kind {
            ContainerKind::StopSignal => self.can.meets(Need::StopSignal),
            ContainerKind::CrashAtCreate
            | ContainerKind::CrashAtStart
            | ContainerKind::CrashAtKill => home == PodKind::Faulty && work == Work::UntilTerm,
            ContainerKind::CrashAtDelete => home == PodKind::Faulty && work.ends(),
            _ => true,
        };
        let of_work = match work {
            Work::OomGroup => self.can.meets(Need::CgroupV2),
            Work::DumpCore => self.can.meets(Need::CorePipe),
            _ => true,
        };
        of_kind && of_work && (!work.needs_memory() || self.can.meets(Need::MemoryLimit))
    }

    /// A container that a step here can name, if nothing else acts on it.
    fn own(&mut self, name: &str) -> Option<&mut Container> {
        if !self.is_own(&self.containers.get(name)?.scope) {
            return None;
        }
        let contested = self.is_contested(name);
        let container = self.containers.get_mut(name)?;
        if contested {
            container.lose();
        }
        Some(container)
    }

    fn start(&mut self, name: &str, abandoned: bool) -> Option<End> {
        let deaf = self.around.deaf;
        let pod = self.pods.get(&self.containers.get(name)?.pod)?;
        let (is_ready, is_faulty) = (pod.state == PodState::Ready, pod.kind == PodKind::Faulty);
        let target = self.containers.get(name)?.target.clone();
        let joins = match target {
            Some(target) => Some(self.containers.get(&target)?.life == Life::Running),
            None => None,
        };
        let container = self.own(name)?;
        match container.life {
            Life::Running | Life::Exited if is_ready => return Some(End::Failure),
            Life::Unsure if is_ready => return Some(End::Either),
            Life::Created if is_ready && joins != Some(false) => {}
            _ => return None,
        }
        if abandoned {
            container.lose();
            return Some(End::Success);
        }
        let fails = container.work == Work::MissingProgram
            || is_faulty
                && matches!(
                    container.kind,
                    ContainerKind::CrashAtStart | ContainerKind::CrashAtCreate
                );
        if fails {
            container.life = Life::Failed;
            container.events = None;
            return Some(End::Failure);
        }
        container.push(Moment::Started);
        if container.work.ends() {
            container.push(Moment::Stopped);
            container.life = Life::Ending;
            if container.kind == ContainerKind::CrashAtDelete || deaf {
                container.events = container.events.take().filter(|_| !deaf);
            }
        } else {
            container.life = Life::Running;
        }
        Some(End::Success)
    }

    fn stop(&mut self, name: &str, grace_s: u8, abandoned: bool) -> Option<End> {
        let container = self.own(name)?;
        if abandoned && !matches!(container.life, Life::Running | Life::Ending) {
            return None;
        }
        container.stops = container.stops.saturating_add(1);
        let end = match container.life {
            Life::Unsure | Life::Failed => End::Either,
            Life::Removed | Life::Created => return None,
            Life::Exited => return Some(End::Success),
            Life::Running | Life::Ending if container.kind == ContainerKind::CrashAtKill => {
                container.lose();
                container.life = Life::Unsure;
                return Some(End::Either);
            }
            Life::Running | Life::Ending => End::Success,
        };
        if end == End::Either {
            return Some(end);
        }
        if abandoned {
            container.lose();
            return Some(End::Success);
        }
        let warm = container.warm;
        self.end(name, EndedBy::Stop { grace_s, warm });
        Some(End::Success)
    }

    /// A container that runs ends, and with it what shares its PID namespace.
    fn end(&mut self, name: &str, by: EndedBy) {
        let Some(container) = self.containers.get_mut(name) else {
            return;
        };
        match container.life {
            Life::Running => container.push(Moment::Stopped),
            Life::Ending => {}
            Life::Unsure => {
                self.end_joined(name);
                return;
            }
            _ => return,
        }
        let first = container.ended_by.is_none() && container.life == Life::Running;
        container.ended_by = Some(if first { by } else { EndedBy::Other });
        container.life = Life::Exited;
        self.end_joined(name);
    }

    pub(super) fn end_joined(&mut self, target: &str) {
        let is_joined = |it: &Container| it.target.as_deref() == Some(target);
        let joined = self.containers.iter().filter(|(_, it)| is_joined(it));
        let joined: Vec<String> = joined.map(|(name, _)| name.clone()).collect();
        let is_sure = self.containers.get(target).is_some_and(|it| it.life != Life::Unsure);
        for name in joined {
            if is_sure {
                self.end(&name, EndedBy::Kill);
            } else if let Some(container) = self.containers.get_mut(&name) {
                container.lose();
            }
        }
    }

    fn remove(&mut self, name: &str) -> Option<End> {
        let container = self.own(name)?;
        let end = match container.life {
            Life::Unsure => return Some(End::Either),
            Life::Removed => return None,
            Life::Running if container.kind == ContainerKind::CrashAtKill => return None,
            Life::Created | Life::Running | Life::Ending | Life::Exited | Life::Failed => {
                if container.kind == ContainerKind::CrashAtDelete {
                    container.lose();
                    return Some(End::Either);
                }
                End::Success
            }
        };
        self.end(name, EndedBy::Kill);
        let container = self.containers.get_mut(name)?;
        container.push(Moment::Deleted);
        container.life = Life::Removed;
        Some(end)
    }

    fn kill(&mut self, name: &str) -> Option<End> {
        let down = self.around.down;
        if !self.can.meets(Need::ContainerPid) {
            return None;
        }
        let container = self.own(name)?;
        if container.life != Life::Running {
            return None;
        }
        if down {
            container.events = None;
        }
        self.end(name, EndedBy::Kill);
        Some(End::Success)
    }

    fn freeze(&mut self, name: &str) -> Option<End> {
        if !self.can.meets(Need::ContainerPid) {
            return None;
        }
        (self.own(name)?.life == Life::Running).then_some(End::Success)
    }

    fn wait(&mut self, name: &str, event: Moment) -> Option<End> {
        if self.around.deaf {
            return None;
        }
        if let Some(pod) = self.pods.get_mut(name) {
            let is_sure = event == Moment::Started && pod.heard;
            pod.seen |= is_sure;
            return is_sure.then_some(End::Success);
        }
        let frozen = self.around.frozen.as_ref().map(|(pod, _)| pod.clone());
        let container = self.own(name)?;
        if frozen.is_some_and(|pod| pod == container.pod) {
            return None;
        }
        let at = container.events.as_ref()?.iter().position(|it| *it == event)?;
        container.seen = container.seen.max(at + 1);
        if event == Moment::Stopped && container.life == Life::Ending {
            container.life = Life::Exited;
            self.end_joined(name);
        }
        if event == Moment::Started {
            let others = self.containers.iter_mut().filter(|(other, _)| *other != name);
            for (_, other) in others {
                other.warm |= other.life == Life::Running && other.seen >= 2;
            }
        }
        Some(End::Success)
    }

    fn exec(&mut self, name: &str, command: Command) -> Option<End> {
        let contested = self.is_contested(name);
        let container = self.containers.get(name)?;
        if !self.is_own(&container.scope) {
            return None;
        }
        match (container.life, command) {
            (Life::Running, Command::TimesOut) | (Life::Ending | Life::Unsure, _) => {
                Some(End::Either)
            }
            (Life::Running, _) if contested => Some(End::Either),
            (Life::Running, _) => Some(End::Success),
            _ => None,
        }
    }

    /// A sandbox about which something is asked.
    fn asked(&self, pod: &str) -> Option<End> {
        let pod = self.pods.get(pod)?;
        (pod.state != PodState::Removed && self.is_in_scope(&pod.scope)).then_some(End::Either)
    }

    fn call(&self, of: Option<&str>) -> Option<End> {
        let Some(of) = of else {
            return Some(End::Either);
        };
        let of_pod = self.asked(of);
        of_pod.or_else(|| {
            let container = self.containers.get(of)?;
            (container.life == Life::Running && self.is_in_scope(&container.scope))
                .then_some(End::Either)
        })
    }

    fn stop_sandbox(&mut self, name: &str) -> Option<End> {
        let will_crash = self.will_crash(name);
        let pod = self.pods.get(name)?;
        if will_crash || !self.is_own(&pod.scope) || pod.state == PodState::Removed {
            return None;
        }
        let pod = self.pods.get_mut(name)?;
        pod.state = PodState::Stopped;
        for container in self.names_in(name) {
            self.end_with_sandbox(&container);
        }
        Some(End::Success)
    }

    fn end_with_sandbox(&mut self, name: &str) {
        if self.is_contested(name)
            && let Some(container) = self.containers.get_mut(name)
        {
            container.lose();
        }
        self.end(name, EndedBy::Other);
    }

    fn remove_sandbox(&mut self, name: &str) -> Option<End> {
        let will_crash = self.will_crash(name);
        let pod = self.pods.get(name)?;
        if will_crash || !self.is_own(&pod.scope) || pod.state == PodState::Removed {
            return None;
        }
        let pod = self.pods.get_mut(name)?;
        pod.state = PodState::Removed;
        for container in self.names_in(name) {
            self.end_with_sandbox(&container);
            let Some(container) = self.containers.get_mut(&container) else {
                continue;
            };
            if container.life != Life::Removed {
                container.push(Moment::Deleted);
                container.life = Life::Removed;
            }
        }
        Some(End::Success)
    }

    /// Whether the low-level runtime is still to crash at a container of a sandbox.
    fn will_crash(&self, pod: &str) -> bool {
        let is_faulty = |it: &Container| {
            let crashes = matches!(
                it.kind,
                ContainerKind::CrashAtCreate
                    | ContainerKind::CrashAtStart
                    | ContainerKind::CrashAtKill
                    | ContainerKind::CrashAtDelete
            );
            crashes && it.pod == pod && it.life != Life::Removed
        };
        self.containers.values().any(is_faulty)
    }

    pub(in crate::explore) fn names_in(&self, pod: &str) -> Vec<String> {
        let inside = self.containers.iter().filter(|(_, it)| it.pod == pod);
        inside.map(|(name, _)| name.clone()).collect()
    }

    fn subscribe(&mut self, name: &str, stalled: bool) -> Option<End> {
        let can = self.can.meets(Need::Broadcast) && !self.around.concurrent && !self.around.deaf;
        if !can || !self.bind(name) {
            return None;
        }
        self.streams.insert(name.to_owned(), Stream { stalled });
        Some(End::Success)
    }

    fn resume(&mut self, name: &str) -> Option<End> {
        let stream = self.streams.get_mut(name)?;
        std::mem::take(&mut stream.stalled).then_some(End::Success)
    }

    /// Whether no event can come any more.
    fn is_quiet(&self) -> bool {
        let is_settled = |it: &Container| {
            let events = it.events.as_ref();
            events.is_some_and(|events| events.len() == it.seen) && it.life != Life::Ending
        };
        // A second subscriber may get late what the first one has got.
        !self.around.concurrent
            && !self.around.deaf
            && self.unmade.is_empty()
            && self.streams.is_empty()
            && self.containers.values().all(is_settled)
            && self.pods.values().all(|pod| pod.seen && pod.state == PodState::Ready)
    }

    fn kill_sandbox(&mut self, name: &str) -> Option<End> {
        let allowed = self.can.disruption && self.can.meets(Need::HostPid);
        let pod = self.pods.get_mut(name)?;
        if !allowed || pod.state != PodState::Ready || self.around.concurrent {
            return None;
        }
        pod.state = PodState::Dead;
        pod.heard = false;
        for container in self.names_in(name) {
            if let Some(container) = self.containers.get_mut(&container) {
                container.lose();
            }
        }
        Some(End::Success)
    }

    fn kill_monitor(&mut self, name: &str) -> Option<End> {
        let allowed = self.can.disruption && self.can.meets(Need::Monitor);
        let container = self.containers.get(name)?;
        if !allowed || container.life != Life::Running || self.around.concurrent {
            return None;
        }
        // A shim watches all containers of its sandbox.
        let pod = container.pod.clone();
        for container in self.names_in(&pod) {
            if let Some(container) = self.containers.get_mut(&container) {
                container.lose();
            }
        }
        let pod = self.pods.get_mut(&pod)?;
        pod.heard = false;
        pod.state = PodState::Dead;
        Some(End::Success)
    }

    /// Whether an operation leaves the pod alone whose monitor is frozen.
    fn is_apart_from_frozen(&self, op: &Op) -> bool {
        let Some((frozen, victim)) = &self.around.frozen else {
            return true;
        };
        let in_frozen = |name: &String| {
            name == frozen || self.containers.get(name).is_some_and(|it| it.pod == *frozen)
        };
        match op {
            Op::Kill(name) if name == victim => true,
            Op::Create { pod, .. } => pod != frozen,
            Op::Parallel(_) | Op::Silence(_) => false,
            _ => !super::parallel::names(op).iter().any(|(name, _)| in_frozen(name)),
        }
    }

    fn take_block(&mut self, op: Op) -> Option<Taken> {
        let before = self.clone();
        let taken = self.try_block(op);
        if taken.is_none() {
            *self = before;
        }
        taken
    }

    fn try_block(&mut self, op: Op) -> Option<Taken> {
        match op {
            Op::Resubscribe(ops) => {
                if self.around.concurrent || self.around.deaf {
                    return None;
                }
                let inner = self.deaf(ops, false);
                Some(block(Op::Resubscribe, inner))
            }
            Op::OnEvent(name, event, ops) => {
                let had = self.containers.get(&name)?.has(event);
                let inner = self.take_all(ops);
                let has = self.containers.get(&name)?.has(event);
                let new = has && !had && !self.around.deaf;
                new.then(|| block(|ops| Op::OnEvent(name, event, ops), inner))
            }
            Op::Poll(name, ops) => {
                let own = self.containers.get(&name).map(|it| it.scope.clone());
                let pod = self.pods.get(&name).map(|it| it.scope.clone());
                if !self.is_in_scope(&own.or(pod)?) {
                    return None;
                }
                let inner = self.take_all(ops);
                (!inner.is_empty()).then(|| block(|ops| Op::Poll(name, ops), inner))
            }
            Op::Prompt(ops) => {
                let inner = self.take_all(ops);
                (!inner.is_empty()).then(|| block(Op::Prompt, inner))
            }
            Op::FreezeMonitor(name, ops) => {
                let allowed = self.can.disruption && self.can.meets(Need::Monitor);
                let container = self.containers.get(&name)?;
                let pod = container.pod.clone();
                let is_calm = self.around.frozen.is_none() && !self.around.concurrent;
                if !allowed || container.life != Life::Running || !is_calm {
                    return None;
                }
                self.around.frozen = Some((pod, name.clone()));
                let inner = self.take_all(ops);
                self.around.frozen = None;
                (!inner.is_empty()).then(|| block(|ops| Op::FreezeMonitor(name, ops), inner))
            }
            Op::Repeat(times, workers, ops) => {
                let inner = self.apart(ops)?;
                Some(block(|ops| Op::Repeat(times, workers, ops), inner))
            }
            Op::EachHandler(ops) => {
                if !self.can.meets(Need::Handlers) {
                    return None;
                }
                let inner = self.apart(ops)?;
                Some(block(Op::EachHandler, inner))
            }
            Op::Restart {
                kill,
                during,
                meanwhile,
            } => self.restart(kill, during, meanwhile),
            _ => None,
        }
    }

    /// Takes operations that are taken several times: they act on what they make themselves.
    fn apart(&mut self, ops: Plan) -> Option<Vec<Taken>> {
        if self.around.isolated > 0 || self.around.deaf {
            return None;
        }
        self.branches += 1;
        self.scopes.push(self.branches);
        self.around.isolated = self.scopes.len();
        let concurrent = std::mem::replace(&mut self.around.concurrent, true);
        let inner = self.take_all(ops);
        self.around.concurrent = concurrent;
        self.around.isolated = 0;
        self.scopes.pop();
        (!inner.is_empty()).then_some(inner)
    }

    fn restart(&mut self, kill: bool, during: Plan, meanwhile: Plan) -> Option<Taken> {
        let can = self.can.disruption && self.can.meets(Need::RuntimeKill);
        if !can || self.around.concurrent || self.around.deaf {
            return None;
        }
        // A stop with a long grace period is under way when the runtime ends, whenever that is.
        let is_long = |op: &Op| matches!(op, Op::Stop(_, 10.., None));
        let during = during.into_iter().filter(is_long).collect();
        let mut begun = self.take_all(during);
        begun.retain(|taken| match &taken.op {
            Op::Stop(name, ..) => {
                let work = self.containers.get(name).map(|it| it.work);
                work == Some(Work::IgnoreTerm)
            }
            _ => false,
        });
        for taken in &mut begun {
            taken.end = End::Either;
            if let Op::Stop(name, ..) = &taken.op
                && let Some(container) = self.containers.get_mut(name)
            {
                container.lose();
            }
        }
        let inner = self.deaf(meanwhile, true);
        self.streams.clear();
        let plans = (super::plan_of(&begun), super::plan_of(&inner));
        Some(Taken {
            op: Op::Restart {
                kill,
                during: plans.0,
                meanwhile: plans.1,
            },
            end: End::Success,
            inner: vec![begun, inner],
        })
    }

    /// Takes operations while nobody listens: what comes meanwhile is uncertain, as is what has
    /// not been seen before.
    fn deaf(&mut self, ops: Plan, down: bool) -> Vec<Taken> {
        let before: Vec<(String, usize)> = self
            .containers
            .iter()
            .map(|(name, it)| (name.clone(), it.events.as_ref().map_or(0, Vec::len)))
            .collect();
        let around = std::mem::take(&mut self.around);
        self.around.deaf = true;
        self.around.down = down;
        let pods: Vec<(String, PodState)> = self.pod_states();
        let inner = self.take_all(ops);
        self.around = around;
        for (name, container) in &mut self.containers {
            let had = before.iter().find(|(other, _)| other == name).map(|(_, count)| *count);
            let has = container.events.as_ref().map(Vec::len);
            if had != has || container.seen != has.unwrap_or(0) || container.life == Life::Ending {
                container.events = None;
            }
        }
        for remains in self.unmade.values_mut() {
            if *remains == Remains::Consistent {
                *remains = Remains::Unheard;
            }
        }
        let after = self.pod_states();
        for (name, pod) in &mut self.pods {
            let is_same = |of: &[(String, PodState)]| {
                of.iter().find(|(other, _)| other == name).map(|(_, state)| *state)
            };
            if is_same(&pods) != is_same(&after) || !pod.seen || pod.state != PodState::Ready {
                pod.heard = false;
            }
        }
        inner
    }

    fn pod_states(&self) -> Vec<(String, PodState)> {
        let pods = self.pods.iter();
        pods.map(|(name, pod)| (name.clone(), pod.state)).collect()
    }
}

/// A block with the operations inside it that were taken.
fn block(of: impl FnOnce(Plan) -> Op, inner: Vec<Taken>) -> Taken {
    Taken {
        op: of(super::plan_of(&inner)),
        end: End::Success,
        inner: vec![inner],
    }
}
