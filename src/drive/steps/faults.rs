//! Disturbing containers, monitors and the runtime, as their host or user.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::{Abort, Effect, StepContext};
use crate::case::{
    FillDiskStep, FreezeMonitorStep, KillMonitorStep, KillSandboxStep, KillStep, OutsideCriStep,
    PauseStep, RestartRuntimeStep, RuntimeEndSpec, SignalStep, Step, StepClockStep,
};
use crate::drive::probes::may_restart;
use crate::drive::session::Session;
use crate::drive::stream_error::StreamError;
use crate::history::{Body, CONTINUED, HostFact, Request, Signal};
use crate::host::{
    self, CommandError, Disturbance, Monitored, RuntimeCommands, RuntimeEnd, RuntimeEndError,
    RuntimeProcess,
};
use crate::limits;
use crate::pleg::{Moment, Next, Policy, Reconnect, StreamFate};

impl Effect for KillStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        kill_process(&self.container, ctx).await
    }
}

/// Kills the process of a sandbox or a container that this case has made.
async fn kill_process(name: &str, ctx: &StepContext) -> Result<(), Abort> {
    let id = ctx.subject(name)?;
    let kernel = &ctx.session().options().kernel;
    let bound = ctx.session().scaled(limits::KILL_WAIT);
    let own = ctx.session().client().own(id.as_str());
    let killed = kernel.kill_process(&own, bound).await;
    let pid = killed.map_err(Abort::inconclusive)?;
    if ctx.scope.disturbed {
        // The runtime or its monitor may learn of it only when the disturbance is over.
        let wanted = format!("the end of {name}'s process {pid}, killed");
        ctx.case.waits.record(wanted, true, bound);
    } else {
        ctx.session().recorder().record(Body::Fact {
            case: ctx.case.run,
            fact: HostFact::Killed { id, pid },
        });
    }
    Ok(())
}

impl Effect for KillSandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        kill_process(&self.sandbox, ctx).await
    }
}

impl Effect for SignalStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = ctx.container(&self.container)?;
        let kernel = &ctx.session().options().kernel;
        let own = ctx.session().client().own(container.as_str());
        let signal = Signal::from(self.signal);
        let sent = kernel.signal_process(&own, signal);
        let pid = sent.map_err(Abort::inconclusive)?;
        let wanted = format!("{signal} to be sent to {}'s process {pid}", self.container);
        ctx.case.waits.record(wanted, true, Duration::ZERO);
        Ok(())
    }
}

impl Effect for PauseStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = ctx.container(&self.container)?;
        let kernel = &ctx.session().options().kernel;
        let out_of_reach = |fault| {
            let name = &self.container;
            Abort::NotApplicable(format!("`{name}` cannot be paused from the host: {fault}"))
        };
        let own = ctx.session().client().own(container.as_str());
        let bound = ctx.session().scaled(limits::KILL_WAIT);
        let paused = kernel.pause_container(&own, bound).await;
        let (paused, is_frozen) = paused.map_err(out_of_reach)?;
        let of = format!("{}'s cgroup {}", self.container, paused.name());
        let waits = &ctx.case.waits;
        let instead = (!is_frozen).then(|| "its processes run on".to_owned());
        waits.record_unless(format!("{of} to be frozen"), bound, instead)?;
        let resumed = format!("{of} to run on");
        let failed = format!("{of} stays frozen");
        take_during(paused, &self.steps, ctx, Some(resumed), &failed).await
    }
}

impl Effect for KillMonitorStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let monitored = monitored(&self.container, ctx)?;
        let kernel = &ctx.session().options().kernel;
        let bound = ctx.session().scaled(limits::KILL_WAIT);
        let killed = kernel.kill_monitor(&monitored, self.with_container, bound);
        let monitor = killed.await;
        let monitor = monitor.map_err(Abort::inconclusive)?;
        let left_alone = !self.with_container;
        ctx.scope.unmonitored = left_alone.then_some(ctx.container(&self.container)?);
        let with = if self.with_container {
            " with its container"
        } else {
            ""
        };
        let wanted = format!(
            "the end of {}'s monitor {monitor}, killed{with}",
            self.container
        );
        ctx.case.waits.record(wanted, true, bound);
        Ok(())
    }
}

/// The container to which a name is bound, and its sandbox.
fn monitored(name: &str, ctx: &StepContext) -> Result<Monitored, Abort> {
    let container = ctx.container(name)?;
    let (sandbox, _) = ctx
        .case
        .view
        .pod_of(&container)
        .ok_or_else(|| Abort::unbound(name))?;
    let client = ctx.session().client();
    Ok(Monitored {
        container: client.own(container.as_str()),
        sandbox: client.own(sandbox.as_str()),
    })
}

impl Effect for FreezeMonitorStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let monitored = monitored(&self.container, ctx)?;
        let frozen = ctx.session().options().kernel.freeze_monitor(&monitored);
        let frozen = frozen.map_err(Abort::inconclusive)?;
        let of = format!("{}'s monitor {}", self.container, frozen.name());
        let waits = &ctx.case.waits;
        waits.record(format!("SIGSTOP to be sent to {of}"), true, Duration::ZERO);
        let continued = format!("{CONTINUED}{of}");
        let failed = format!("{of} was not continued");
        take_during(frozen, &self.steps, ctx, Some(continued), &failed).await
    }
}

impl Effect for FillDiskStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let monitored = monitored(&self.container, ctx)?;
        let filled = ctx.session().options().kernel.fill_disk(&monitored);
        let filled = filled.map_err(Abort::inconclusive)?;
        let of = format!("{}'s monitor {}", self.container, filled.name());
        let waits = &ctx.case.waits;
        waits.record(format!("no room for {of}"), true, Duration::ZERO);
        let freed = format!("room for {of}");
        let failed = format!("{of} has no room");
        take_during(filled, &self.steps, ctx, Some(freed), &failed).await
    }
}

impl Effect for StepClockStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let stepped = host::step_clock(self.by_ns()).map_err(|fault| {
            Abort::Inconclusive(format!("the host's wall clock cannot be set: {fault}"))
        })?;
        let failed = "the host's wall clock was not put right";
        take_during(stepped, &self.steps, ctx, None, failed).await
    }
}

/// Takes steps, and undoes a disturbance however they end. The undoing is recorded as a wait with
/// the name `wanted`.
async fn take_during(
    disturbance: Disturbance,
    steps: &[Step],
    ctx: &mut StepContext,
    wanted: Option<String>,
    failed: &str,
) -> Result<(), Abort> {
    let disturbed = std::mem::replace(&mut ctx.scope.disturbed, true);
    let taken = ctx.take(steps).await;
    ctx.scope.disturbed = disturbed;
    let undone = disturbance.undo();
    if let Some(wanted) = wanted {
        ctx.case.waits.record(wanted, true, Duration::ZERO);
    }
    undone.map_err(|fault| Abort::Error(format!("{failed}: {fault}")))?;
    taken
}

impl Effect for OutsideCriStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let session = ctx.session();
        let options = session.options();
        let bound = session.scaled(limits::OUTSIDE_WAIT);
        let Some(command) = options.asked.hooks.outside_cri() else {
            return Err(Abort::Error("no command was given".to_owned()));
        };
        let living = options.kernel.run_outside_cri(command, bound);
        let lived = tokio::select! {
            lived = living => lived,
            () = session.stop().cancelled() => return Err(Abort::interrupted()),
        };
        lived.map_err(|fault| {
            Abort::Inconclusive(format!("the command of --outside-cri: {fault}"))
        })?;
        let wanted = "the end of the command of --outside-cri".to_owned();
        ctx.case.waits.record(wanted, true, bound);
        Ok(())
    }
}

impl Effect for RestartRuntimeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let session = ctx.session();
        if let Err(lack) = may_restart(session).await {
            return Err(Abort::NotApplicable(lack));
        }
        let Some(commands) = session.options().asked.hooks.runtime_commands() else {
            return Err(Abort::Error("no commands were given".to_owned()));
        };
        let mut under_way = self.begin(ctx).await?;
        session.unsubscribe().await;
        let process = self.process(ctx).await;
        let ended = self.end(ctx, &commands).await;
        if let (Err(Abort::Unmet), Some(process)) = (&ended, process) {
            // As a service manager does; it may have ended by now.
            let _ = process.kill(ctx.session().scaled(limits::KILL_WAIT)).await;
        }
        let mut attempts = JoinSet::new();
        if self.back_off && ended.is_ok() {
            attempts.spawn(reconnect(ctx.case.session.clone()));
        }
        let down = match &ended {
            Ok(()) => self.stay_down(ctx).await,
            Err(_) => Ok(()),
        };
        let session = ctx.session();
        let bound = session.scaled(limits::RUNTIME_COMMAND);
        // Whatever came of that, the node needs its runtime.
        let kernel = &session.options().kernel;
        let started = kernel.start_runtime(&commands.start, bound).await;
        started.map_err(|fault| {
            Abort::Error(format!("the command that starts the runtime: {fault}"))
        })?;
        let reconnected = self.reconnected(ctx, &mut attempts).await;
        let session = ctx.session();
        let renewed = match reconnected {
            Ok(true) => Ok(()),
            _ => session.renew(session.scaled(limits::RUNTIME_RETURN)).await,
        };
        ended?;
        reconnected?;
        renewed?;
        let wanted = "the runtime's end and return".to_owned();
        ctx.case.waits.record(wanted, true, bound);
        if let Some(taken) = under_way.join_next().await {
            taken??;
        }
        down
    }
}

impl RestartRuntimeStep {
    /// Begins the steps whose calls are to be under way when the runtime ends. They end with the
    /// result.
    async fn begin(&self, ctx: &StepContext) -> Result<JoinSet<Result<(), Abort>>, Abort> {
        let mut under_way = JoinSet::new();
        if self.during.is_empty() {
            return Ok(under_way);
        }
        let (mut ctx, steps) = (ctx.clone(), self.during.clone());
        let bound = ctx.session().scaled(limits::CALL_UNDER_WAY);
        under_way.spawn(async move { ctx.take(&steps).await });
        match tokio::time::timeout(bound, under_way.join_next()).await {
            Err(_) => Ok(under_way),
            Ok(Some(Ok(Err(abort)))) => Err(abort),
            Ok(_) => Err(Abort::Inconclusive(
                "the steps that the runtime's end was to interrupt were over before it".to_owned(),
            )),
        }
    }

    /// The process of a runtime that may take longer to stop than it should, if it is found.
    async fn process(&self, ctx: &StepContext) -> Option<RuntimeProcess> {
        let options = ctx.session().options();
        let socket = options
            .endpoint
            .socket()
            .filter(|_| self.within.is_some())?;
        RuntimeProcess::find(socket).await.ok()
    }

    /// Ends the runtime, in the time that it may take.
    async fn end(&self, ctx: &StepContext, commands: &RuntimeCommands) -> Result<(), Abort> {
        let session = ctx.session();
        let how = match self.by {
            RuntimeEndSpec::Stop => RuntimeEnd::Stop,
            RuntimeEndSpec::Kill => RuntimeEnd::Kill,
        };
        let bound = session.scaled(self.within.unwrap_or(limits::RUNTIME_COMMAND));
        let (kernel, socket) = (
            &session.options().kernel,
            session.options().endpoint.socket(),
        );
        let ended = kernel.end_runtime(socket, commands, how, bound).await;
        match (ended, self.within) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(_)) => {
                ctx.case.waits.record(runtime_end(), true, bound);
                Ok(())
            }
            (Err(RuntimeEndError::Command(CommandError::Slow { .. })), Some(_)) => {
                ctx.case.waits.record(runtime_end(), false, bound);
                Err(Abort::Unmet)
            }
            (Err(fault), _) => Err(Abort::Error(fault.to_string())),
        }
    }

    /// Waits until the attempts to open the stream are over; returns whether one was successful,
    /// which it need not be if none was to be made.
    async fn reconnected(
        &self,
        ctx: &StepContext,
        attempts: &mut JoinSet<Result<(), Abort>>,
    ) -> Result<bool, Abort> {
        let session = ctx.session();
        let bound = Policy::LONGEST_PAUSE + session.scaled(limits::RUNTIME_RETURN);
        let over = tokio::time::timeout(bound, attempts.join_next()).await;
        let met = match over {
            Ok(Some(Ok(Err(Abort::Unmet)))) | Err(_) => false,
            Ok(Some(Ok(result))) => result.map(|()| true)?,
            Ok(Some(Err(fault))) => return Err(fault.into()),
            Ok(None) => return Ok(false),
        };
        let wanted = "an event stream by the first attempt that the runtime can answer".to_owned();
        ctx.case.waits.record(wanted, met, bound);
        if met { Ok(true) } else { Err(Abort::Unmet) }
    }

    /// Takes the steps for which the runtime is down, and makes sure that it is.
    async fn stay_down(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        if ctx.send(Request::Version).await?.is_ok() {
            return Err(Abort::Inconclusive(
                "the runtime still answered when the command had ended that ends it".to_owned(),
            ));
        }
        if let Some(time) = self.down {
            let stopped = ctx.session().stop().cancelled();
            // The time is the requirement.
            if tokio::time::timeout(time, stopped).await.is_ok() {
                return Err(Abort::interrupted());
            }
        }
        ctx.take(&self.meanwhile).await
    }
}

/// Opens the event stream as KEP-3386 plans it, until an attempt is made that the runtime can
/// answer.
async fn reconnect(session: Arc<Session>) -> Result<(), Abort> {
    let mut reconnect = Reconnect::new(Policy::BackOff);
    let mut then = reconnect.begin();
    loop {
        let Next::Open(pause) = then.next else {
            unreachable!("who backs off does not give up");
        };
        let stopped = session.stop().cancelled();
        // The pause is that of the consumer.
        if tokio::time::timeout(pause, stopped).await.is_ok() {
            return Err(Abort::interrupted());
        }
        let lists = Request::sandboxes(session.labels());
        let is_back = session.call(None, lists).await.is_ok();
        match session.reopen().await {
            Ok(()) => return Ok(()),
            Err(fault @ (StreamError::Interrupted | StreamError::Marker { .. })) if is_back => {
                return Err(fault.into());
            }
            Err(_) if is_back => return Err(Abort::Unmet),
            Err(_) => {}
        }
        let now = Moment::from_ns(host::now().realtime_ns);
        then = reconnect.ended(StreamFate::Refused, now, 0);
    }
}

fn runtime_end() -> String {
    "the runtime's end".to_owned()
}
