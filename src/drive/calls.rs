//! Calls that may fail, and what goes on beside a container's own life.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::caller::Caller;
use super::case_run::CaseRunner;
use super::scope::Scope;
use super::steps::{Abort, bound_container, failed, unbound};
use crate::case::{
    AnotherClientStep, AsideStep, CreateStep, ExecStep, GoneStep, ImageName, ImageStep,
    SandboxStep, Terms, UnknownStep,
};
use crate::history::{
    AsideOf, CallFault, ContainerId, ContainerSpec, PodUid, Reply, Request, SandboxId, SandboxSpec,
    Signal, StatusCode,
};
use crate::limits;

/// The reference of an image that no runtime has.
const MISSING_IMAGE: &str = "localhost/cri-event-conformance/missing:none";

impl CaseRunner {
    pub(super) async fn run_sandbox(
        &self,
        step: &SandboxStep,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        let mut spec = self.sandbox_for(step, scope)?;
        if let Some(mib) = step.memory_mib {
            let cgroup = self.session().new_cgroup();
            self.cgroups().push(cgroup.clone());
            let given = self
                .session()
                .give_cgroup(&cgroup, mib, Arc::make_mut(&mut spec));
            given.map_err(|fault| Abort::Error(format!("make a cgroup: {fault}")))?;
        }
        let request = Request::RunSandbox(spec.clone());
        let made = if step.without_uid {
            // No kubelet makes such a pod, and CRI-O cannot give it a name.
            let refused = |fault| {
                Abort::NotApplicable(format!("the runtime refuses a pod without a UID: {fault}"))
            };
            Some(self.call_of_step(request, scope).await?.map_err(refused)?)
        } else {
            self.attempt(request, step.terms(), scope).await?
        };
        if let Some(Reply::Sandbox(id)) = made {
            scope.bind_sandbox(&step.binding, id, spec);
        }
        Ok(())
    }

    fn sandbox_for(&self, step: &SandboxStep, scope: &Scope) -> Result<Arc<SandboxSpec>, Abort> {
        let spec = self.session().sandbox_spec(&step.binding, &self.case.id);
        let mut spec = SandboxSpec::clone(&spec);
        if let Some(earlier) = &step.again {
            let (_, pod) = scope.sandbox(earlier).ok_or_else(|| unbound(earlier))?;
            spec = SandboxSpec {
                binding: step.binding.clone(),
                attempt: pod.attempt + 1,
                ..SandboxSpec::clone(pod)
            };
        }
        if step.without_uid {
            spec.uid = PodUid::default();
            spec.labels
                .insert("io.kubernetes.pod.uid".to_owned(), String::new());
        }
        if let Some(handler) = step.runtime_handler.as_ref().or(scope.handler()) {
            spec.runtime_handler.clone_from(handler);
        }
        if step.faulty {
            let faulty = self.session().options().asked.hooks.faulty_handler();
            spec.runtime_handler = faulty.map(str::to_owned).ok_or_else(|| {
                Abort::Error("no handler that fails on demand was named".to_owned())
            })?;
        }
        spec.own_network |= step.own_network;
        spec.shared_pid |= step.shared_pid;
        spec.sysctls = step.sysctls.clone().into_iter().collect();
        spec.labels.extend(step.labels.clone());
        spec.annotations.extend(step.annotations.clone());
        Ok(Arc::new(spec))
    }

    pub(super) async fn create(&self, step: &CreateStep, scope: &mut Scope) -> Result<(), Abort> {
        let spec = Arc::new(self.container_for(step, scope)?);
        let request = Request::CreateContainer(spec.clone());
        let made = if step.may_fail {
            let made = self.call_of_step(request, scope).await?.map_err(|fault| {
                Abort::NotApplicable(format!(
                    "the runtime refuses `{}` already at CreateContainer: {fault}",
                    step.binding
                ))
            })?;
            Some(made)
        } else {
            self.attempt(request, step.terms(), scope).await?
        };
        if let Some(Reply::Container(id)) = made {
            scope.bind_container(&step.binding, id, spec);
        }
        Ok(())
    }

    fn container_for(&self, step: &CreateStep, scope: &Scope) -> Result<ContainerSpec, Abort> {
        let pod = scope
            .sandbox(&step.sandbox)
            .ok_or_else(|| unbound(&step.sandbox))?;
        let made = |name: &String| scope.container_spec(name).ok_or_else(|| unbound(name));
        let target = step.pid_target.as_ref();
        let target = target.map(|target| bound_container(scope, target));
        let name = match &step.attempt_of {
            Some(earlier) => made(earlier)?.name().to_owned(),
            None => step.binding.clone(),
        };
        let workload = scope.workload(&step.workload);
        let attempt = self.next_attempt(&name);
        let mut spec = self
            .session()
            .container_spec((&pod.0, &pod.1), &name, attempt, &workload);
        spec.name = (name != step.binding).then_some(name);
        spec.binding.clone_from(&step.binding);
        spec.tty = step.tty;
        spec.memory_bytes = step.memory_mib.map(|mib| u64::from(mib) << 20);
        spec.oom_group = step.oom_group;
        spec.flaw = step.flaw;
        spec.pid_target = target.transpose()?;
        spec.stop_signal = step.stop_signal.map(Signal::from).unwrap_or_default();
        spec.mounted = step.mounted;
        if step.unlabelled {
            spec.labels = self.session().labels();
        }
        spec.labels.extend(step.labels.clone());
        spec.annotations.extend(step.annotations.clone());
        spec.annotations.extend(step.annotation_kib.map(bulk));
        if step.image == Some(ImageName::Missing) {
            MISSING_IMAGE.clone_into(&mut spec.image);
        }
        if let Some(twin) = &step.same_as {
            let twin = made(twin)?;
            spec.name = Some(twin.name().to_owned());
            spec.labels.clone_from(&twin.labels);
            spec.attempt = twin.attempt;
        }
        Ok(spec)
    }

    /// Makes a call that may end as the terms say; returns its reply if it succeeded.
    pub(super) async fn attempt(
        &self,
        request: Request,
        terms: Terms,
        scope: &Scope,
    ) -> Result<Option<Reply>, Abort> {
        let method = request.method();
        let answer = match terms.deadline {
            Some(deadline) => {
                let (caller, case) = (self.caller_in(scope), Some(self.run));
                caller.call_within(case, request, Some(deadline)).await
            }
            None => self.call_of_step(request, scope).await?,
        };
        match answer {
            Ok(_) if terms.fails => Err(Abort::NotApplicable(format!(
                "{method} was meant to fail and succeeded"
            ))),
            Ok(reply) => Ok(Some(reply)),
            Err(fault) if terms.are_usual() || (terms.fails && !is_refusal(&fault)) => {
                Err(failed(method, &fault))
            }
            Err(_) => Ok(None),
        }
    }

    pub(super) async fn exec(&self, step: &ExecStep, scope: &Scope) -> Result<(), Abort> {
        let workload = scope.workload(&step.runs);
        let request = Request::ExecSync {
            container: bound_container(scope, &step.container)?,
            command: workload.command(),
            timeout: scope.whole_seconds(step.timeout),
        };
        let answer = self.caller_in(scope).call(Some(self.run), request).await;
        match (answer, workload.declared_exit()) {
            _ if step.races => Ok(()),
            (Err(_), _) if step.fails => Ok(()),
            (Err(fault), _) => Err(failed("ExecSync", &fault)),
            (Ok(_), _) if step.fails => Err(Abort::NotApplicable(
                "ExecSync was meant to fail and succeeded".to_owned(),
            )),
            (Ok(Reply::Exec(code)), Some(declared)) if code != declared => {
                Err(Abort::Inconclusive(format!(
                    "the command was to end with code {declared}, and ended with {code}"
                )))
            }
            (Ok(_), _) => Ok(()),
        }
    }

    pub(super) async fn aside(&self, step: &AsideStep, scope: &Scope) -> Result<(), Abort> {
        let of = step.of.as_deref().unwrap_or_default();
        let id = match step.call.of() {
            AsideOf::Nothing => String::new(),
            AsideOf::Container | AsideOf::Sandbox => {
                let id = scope.subject(of).ok_or_else(|| unbound(of))?;
                id.to_string()
            }
        };
        // A runtime may not have the call.
        let request = Request::Aside(step.call, id);
        let _ = self.caller_in(scope).call(Some(self.run), request).await;
        Ok(())
    }

    pub(super) async fn image(&self, step: ImageStep, scope: &Scope) -> Result<(), Abort> {
        let image = self.session().options().image.clone();
        let request = match step {
            ImageStep::Pull => {
                // An image that was imported cannot be pulled.
                let _ = self.call(Request::PullImage(image)).await;
                return Ok(());
            }
            ImageStep::LookUp => Request::ImageStatus(image),
            ImageStep::List => Request::ListImages,
            ImageStep::RemoveMissing => Request::RemoveImage(MISSING_IMAGE.to_owned()),
        };
        self.must(request, scope).await.map(drop)
    }

    /// Makes a call on an id that nobody has. What it returns is no matter of events.
    pub(super) async fn unknown(&self, step: UnknownStep, scope: &Scope) {
        let random = || uuid::Uuid::new_v4().simple();
        let id = format!("{}{}", random(), random());
        let request = match step {
            UnknownStep::Stop => Request::StopContainer {
                container: ContainerId::from(id),
                grace: Duration::ZERO,
            },
            UnknownStep::Remove => Request::RemoveContainer(ContainerId::from(id)),
            UnknownStep::StopSandbox => Request::StopSandbox(SandboxId::from(id)),
            UnknownStep::RemoveSandbox => Request::RemoveSandbox(SandboxId::from(id)),
        };
        let _ = self.caller_in(scope).call(Some(self.run), request).await;
    }

    /// Kills the process of a sandbox or a container, which this case has made.
    pub(super) async fn kill(&self, name: &str, scope: &Scope) -> Result<(), Abort> {
        let id = scope.subject(name).ok_or_else(|| unbound(name))?;
        let kernel = &self.session().options().kernel;
        let bound = self.session().stretched(limits::KILL_WAIT);
        let killed = kernel.kill_process_of(id.as_str(), bound).await;
        let pid = killed.map_err(|fault| Abort::Inconclusive(fault.to_string()))?;
        self.waited(
            format!("the end of {name}'s process {pid}, killed"),
            true,
            bound,
        );
        Ok(())
    }

    /// Runs the user's command that makes a container which no call of the CRI makes.
    pub(super) async fn live_outside_cri(&self) -> Result<(), Abort> {
        let options = self.session().options();
        let bound = self.session().stretched(limits::OUTSIDE_WAIT);
        let Some(command) = options.asked.hooks.outside_cri() else {
            return Err(Abort::Error("no command was given".to_owned()));
        };
        let living = options.kernel.live_outside_cri(command, bound);
        let lived = tokio::select! {
            lived = living => lived,
            () = self.session().stop().cancelled() => {
                return Err(Abort::Error("interrupted".to_owned()));
            }
        };
        lived.map_err(|fault| {
            Abort::Inconclusive(format!("the command of --outside-cri: {fault}"))
        })?;
        let wanted = "the end of the command of --outside-cri".to_owned();
        self.waited(wanted, true, bound);
        Ok(())
    }

    /// Looks whether a container's process is gone, which it must be within the step's bound.
    pub(super) async fn gone(&self, step: &GoneStep, scope: &Scope) -> Result<(), Abort> {
        let container = bound_container(scope, &step.container)?;
        let kernel = &self.session().options().kernel;
        let bound = step.within.unwrap_or_default();
        let bound = self.session().stretched(bound);
        let until = Instant::now() + bound;
        let mut pace = tokio::time::interval(limits::PROCESS_LOOK);
        let lives = loop {
            pace.tick().await;
            let lives = kernel.has_process_of(container.as_str());
            let lives = lives.map_err(|fault| Abort::Inconclusive(fault.to_string()))?;
            if !lives || Instant::now() >= until {
                break lives;
            }
        };
        let wanted = format!("no process of {} on the host any more", step.container);
        let instead = lives.then(|| {
            let left = kernel.leftovers(&BTreeSet::from([container.to_string()]));
            let left = left.iter().map(|process| format!(": {process}"));
            left.fold("a process lives on".to_owned(), |text, process| {
                text + &process
            })
        });
        self.waited_unless(wanted, bound, instead)
    }

    /// Takes steps whose calls have a connection of their own.
    pub(super) async fn another_client(
        self: &Arc<Self>,
        step: &AnotherClientStep,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        let own = self.session().caller();
        let other = own.beside(&self.session().options().endpoint).await;
        let other = other.map_err(|fault| Abort::Error(fault.to_string()))?;
        let around = scope.set_client(Some(other));
        let taken = self.clone().steps(&step.steps, scope).await;
        scope.set_client(around);
        taken
    }

    /// Who makes the calls of these steps.
    pub(super) fn caller_in<'a>(&'a self, scope: &'a Scope) -> &'a Caller {
        scope.client().unwrap_or(self.session().caller())
    }
}

/// An annotation of so many KiB.
fn bulk(kib: u32) -> (String, String) {
    let kibibyte = "0123456789abcdef".repeat(64);
    ("bulk".to_owned(), kibibyte.repeat(kib as usize))
}

/// Whether the runtime has refused a call: one that it did not answer proves nothing.
pub(super) fn is_refusal(fault: &CallFault) -> bool {
    ![StatusCode::UNAVAILABLE, StatusCode::DEADLINE_EXCEEDED].contains(&fault.code)
}
