//! What operations on containers need, and what comes of them.

use super::{Container, End, EndedBy, Life, PodState, Remains, Unmade, World};
use crate::case::Need;
use crate::explore::capabilities::Behaviour;
use crate::explore::plan::{Command, ContainerKind, Moment, Op, PodKind, Work};

impl World {
    pub(super) fn create(&mut self, op: &Op) -> Option<End> {
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
        if let Some(other) = other
            && !self.fits(*kind, pod, other)
        {
            return None;
        }
        let contested =
            self.is_contested(pod) || other.as_ref().is_some_and(|other| self.is_contested(other));
        if contested && *kind == ContainerKind::Twin || self.names.contains(name) {
            return None;
        }
        let remains = match (kind, home.state) {
            (ContainerKind::NoImage | ContainerKind::Twin, PodState::Ready) if !contested => {
                Some((Remains::Absent, End::Failure))
            }
            (ContainerKind::NoImage | ContainerKind::Twin, _)
            | (ContainerKind::Abandoned, PodState::Removed) => return None,
            (_, PodState::Removed) => Some((Remains::Absent, End::Failure)),
            (ContainerKind::Abandoned, _) => Some((Remains::Consistent, End::Success)),
            (_, PodState::Stopped) => Some((Remains::Consistent, End::Either)),
            (_, PodState::Dead) => return None,
            (_, PodState::Ready) if contested => Some((Remains::Consistent, End::Either)),
            (_, PodState::Ready) => None,
        };
        self.bind(name);
        if let Some((remains, end)) = remains {
            let pod = Some(pod.clone());
            self.unmade.insert(name.clone(), Unmade { remains, pod });
            return Some(end);
        }
        let joined = *kind == ContainerKind::PidTarget;
        let container = Container {
            pod: pod.clone(),
            work: *work,
            kind: *kind,
            life: Life::Created,
            events: (!self.around.unsubscribed).then(|| vec![Moment::Created]),
            tail: Vec::new(),
            asked: false,
            seen: 0,
            target: other.clone().filter(|_| joined),
            ended_by: None,
            listed: false,
            started: None,
            failed: false,
            stops: 0,
            has_begun: false,
            scope: self.scopes.clone(),
        };
        self.containers.insert(name.clone(), container);
        Some(End::Success)
    }

    /// Whether a new container in a sandbox can refer to another one.
    fn fits(&self, kind: ContainerKind, pod: &str, other: &str) -> bool {
        let Some(other) = self.containers.get(other) else {
            return false;
        };
        let fits = match kind {
            ContainerKind::NextAttempt => {
                !matches!(other.life, Life::Running | Life::Created | Life::Unsure)
            }
            // One that has joined a namespace itself has none that would end with it.
            ContainerKind::PidTarget => other.life == Life::Running && other.target.is_none(),
            ContainerKind::Twin => !matches!(other.life, Life::Removed | Life::Unsure),
            _ => false,
        };
        fits && other.pod == pod && self.is_own(&other.scope)
    }

    /// Whether this runtime, and this pod, can have such a container.
    pub(super) fn can_run(&self, work: Work, kind: ContainerKind, home: PodKind) -> bool {
        let of_kind = match kind {
            // There no container is the first process of its namespace.
            ContainerKind::PidTarget => home != PodKind::SharedPid,
            // Many of them would not fit into one event.
            ContainerKind::Bulky => self.around.isolated == 0 && !self.around.concurrent,
            ContainerKind::StopSignal => self.can.meets(Need::StopSignal),
            ContainerKind::Twin => self.can.has(Behaviour::RefusesTwins),
            ContainerKind::CrashAtCreate
            | ContainerKind::CrashAtStart
            | ContainerKind::CrashAtKill => home == PodKind::Faulty && work == Work::UntilTerm,
            ContainerKind::CrashAtDelete => home == PodKind::Faulty && work.ends(),
            _ => true,
        };
        let of_work = match work {
            Work::MissingProgram => self.can.has(Behaviour::CreatesWithoutProgram),
            Work::OomGroup => self.can.meets(Need::CgroupV2),
            Work::OomByPod => home == PodKind::Memory,
            Work::DumpCore => self.can.meets(Need::CorePipe),
            _ => true,
        };
        of_kind && of_work && (!work.needs_memory() || self.can.meets(Need::MemoryLimit))
    }

    /// A container that a step here can name, if nothing else acts on it.
    pub(super) fn own(&mut self, name: &str) -> Option<&mut Container> {
        if !self.is_own(&self.containers.get(name)?.scope) {
            return None;
        }
        let contested = self.is_contested(name);
        let container = self.containers.get_mut(name)?;
        if contested {
            container.become_uncertain();
        }
        Some(container)
    }

    pub(super) fn start(&mut self, name: &str, abandoned: bool) -> Option<End> {
        let unsubscribed = self.around.unsubscribed;
        self.starts += 1;
        let nth = self.starts;
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
            container.become_uncertain();
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
            container.failed = true;
            container.events = None;
            return Some(End::Failure);
        }
        container.push(Moment::Started);
        container.started = Some(nth);
        if container.work.ends() {
            container.push(Moment::Stopped);
            container.life = Life::Ending;
            if container.kind == ContainerKind::CrashAtDelete || unsubscribed {
                container.events = container.events.take().filter(|_| !unsubscribed);
            }
        } else {
            container.life = Life::Running;
        }
        Some(End::Success)
    }

    pub(super) fn stop(&mut self, name: &str, grace_s: u8, abandoned: bool) -> Option<End> {
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
                container.become_uncertain();
                container.life = Life::Unsure;
                return Some(End::Either);
            }
            Life::Running | Life::Ending => End::Success,
        };
        if end == End::Either {
            return Some(end);
        }
        if abandoned {
            container.become_uncertain();
            self.end_joined(name);
            return Some(End::Success);
        }
        let has_begun = container.has_begun;
        self.end(name, EndedBy::Stop { grace_s, has_begun });
        Some(End::Success)
    }

    /// A container that runs ends, and with it what shares its PID namespace.
    pub(super) fn end(&mut self, name: &str, by: EndedBy) {
        let unsubscribed = self.around.unsubscribed;
        let Some(container) = self.containers.get_mut(name) else {
            return;
        };
        match container.life {
            Life::Running => container.push_unless(unsubscribed, Moment::Stopped),
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
        let is_sure = self
            .containers
            .get(target)
            .is_some_and(|it| it.life != Life::Unsure);
        for name in joined {
            if is_sure {
                self.end(&name, EndedBy::Kill);
            } else if let Some(container) = self.containers.get_mut(&name) {
                container.become_uncertain();
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<End> {
        let container = self.own(name)?;
        let end = match container.life {
            Life::Unsure => return Some(End::Either),
            Life::Removed => return None,
            Life::Running if container.kind == ContainerKind::CrashAtKill => return None,
            Life::Created | Life::Running | Life::Ending | Life::Exited | Life::Failed => {
                if container.kind == ContainerKind::CrashAtDelete {
                    container.become_uncertain();
                    return Some(End::Either);
                }
                End::Success
            }
        };
        self.end(name, EndedBy::Removal);
        let unsubscribed = self.around.unsubscribed;
        let container = self.containers.get_mut(name)?;
        container.push_unless(unsubscribed, Moment::Deleted);
        container.life = Life::Removed;
        Some(end)
    }

    pub(super) fn kill(&mut self, name: &str) -> Option<End> {
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

    pub(super) fn freeze(&mut self, name: &str) -> Option<End> {
        if !self.can.meets(Need::ContainerPid) {
            return None;
        }
        (self.own(name)?.life == Life::Running).then_some(End::Success)
    }

    pub(super) fn wait(&mut self, name: &str, event: Moment) -> Option<End> {
        if self.around.unsubscribed {
            return None;
        }
        if let Some(pod) = self.pods.get_mut(name) {
            let is_sure = event == Moment::Started && pod.has_certain_events;
            pod.seen |= is_sure;
            return is_sure.then_some(End::Success);
        }
        let frozen = self.around.frozen.as_ref().map(|(pod, _)| pod.clone());
        let container = self.own(name)?;
        if frozen.is_some_and(|pod| pod == container.pod) {
            return None;
        }
        let at = container
            .events
            .as_ref()?
            .iter()
            .position(|it| *it == event)?;
        container.seen = container.seen.max(at + 1);
        if event == Moment::Stopped && container.life == Life::Ending {
            container.life = Life::Exited;
            let ended = (container.started, container.work.lasts_ms());
            self.end_joined(name);
            self.end_shorter(ended);
        }
        if event == Moment::Started {
            let others = self
                .containers
                .iter_mut()
                .filter(|(other, _)| *other != name);
            for (_, other) in others {
                other.has_begun |= other.life == Life::Running && other.seen >= 2;
            }
        }
        Some(End::Success)
    }

    /// What was started before a container that has ended, and lasts no longer, has ended, too,
    /// though nobody may have heard of it.
    fn end_shorter(&mut self, (started, lasts_ms): (Option<u32>, Option<u16>)) {
        for container in self.containers.values_mut() {
            let is_shorter = container.work.lasts_ms() <= lasts_ms && container.started < started;
            let is_certain = container.started.is_some() && container.work.lasts_ms().is_some();
            let unheard = container.life == Life::Ending && container.events.is_none();
            if unheard && is_shorter && is_certain {
                container.life = Life::Exited;
            }
        }
    }

    pub(super) fn exec(&mut self, name: &str, command: Command) -> Option<End> {
        let contested = self.is_contested(name);
        if !self.is_own(&self.containers.get(name)?.scope) {
            return None;
        }
        let container = self.containers.get_mut(name)?;
        // A command that has run proves that the program has begun before.
        container.has_begun |= container.life == Life::Running && command != Command::TimesOut;
        match (container.life, command) {
            (Life::Running, Command::TimesOut) | (Life::Ending | Life::Unsure, _) => {
                Some(End::Either)
            }
            (Life::Running, _) if contested => Some(End::Either),
            (Life::Running, _) => Some(End::Success),
            _ => None,
        }
    }

    /// A container of which no process is left, or soon will be none.
    pub(super) fn process_exited(&mut self, name: &str) -> Option<End> {
        let can = self.can.meets(Need::ContainerPid);
        let container = self.own(name)?;
        let is_over = match container.life {
            Life::Removed | Life::Exited => true,
            Life::Ending => container.work.lasts_ms().is_some(),
            _ => false,
        };
        if !can || !is_over {
            return None;
        }
        if container.life == Life::Ending {
            container.life = Life::Exited;
            self.end_joined(name);
        }
        Some(End::Success)
    }

    pub(super) fn kill_monitor(&mut self, name: &str) -> Option<End> {
        let allowed = self.can.disruption && self.can.meets(Need::Monitor);
        let container = self.containers.get(name)?;
        if !allowed || container.life != Life::Running || self.around.concurrent {
            return None;
        }
        // A shim watches all containers of its sandbox: what becomes of others is not certain.
        let pod = container.pod.clone();
        let is_alone = self.names_in(&pod).iter().all(|other| {
            let other_life = self.containers.get(other).map(|it| it.life);
            other == name || matches!(other_life, Some(Life::Removed | Life::Exited))
        });
        if !is_alone {
            return None;
        }
        self.end(name, EndedBy::Other);
        let pod = self.pods.get_mut(&pod)?;
        pod.has_certain_events = false;
        pod.state = PodState::Dead;
        Some(End::Success)
    }
}
