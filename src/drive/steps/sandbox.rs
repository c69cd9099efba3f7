//! Running a sandbox.

use std::sync::Arc;

use super::{Abort, Effect, StepContext};
use crate::case::SandboxStep;
use crate::history::{PodUid, Reply, Request, SandboxSpec};

impl Effect for SandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let mut spec = sandbox_spec(self, ctx)?;
        if let Some(mib) = self.memory_mib {
            let session = ctx.session();
            let cgroup = session.new_cgroup();
            ctx.case.keep_cgroup(cgroup.clone());
            let given = session.give_cgroup(&cgroup, mib, &mut spec);
            given.map_err(|fault| Abort::Error(format!("make a cgroup: {fault}")))?;
        }
        let spec = Arc::new(spec);
        let request = Request::RunSandbox(spec.clone());
        let made = if self.without_uid {
            // No kubelet makes such a pod, and CRI-O cannot give it a name.
            let refused = |fault| {
                Abort::NotApplicable(format!("the runtime refuses a pod without a UID: {fault}"))
            };
            Some(ctx.send(request).await?.map_err(refused)?)
        } else {
            ctx.attempt(request, self.expectation()).await?
        };
        if let Some(Reply::Sandbox(id)) = made {
            ctx.scope.bind_sandbox(&self.binding, id, spec);
        }
        Ok(())
    }
}

fn sandbox_spec(step: &SandboxStep, ctx: &StepContext) -> Result<SandboxSpec, Abort> {
    let session = ctx.session();
    let spec = session.sandbox_spec(&step.binding, &ctx.case.case.id);
    let mut spec = SandboxSpec::clone(&spec);
    if let Some(earlier) = &step.attempt_of {
        let (_, pod) = ctx
            .scope
            .sandbox(earlier)
            .ok_or_else(|| Abort::unbound(earlier))?;
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
    let handler = step.runtime_handler.as_ref();
    if let Some(handler) = handler.or(ctx.scope.handler.as_ref()) {
        spec.runtime_handler.clone_from(handler);
    }
    if step.faulty {
        let faulty = session.options().asked.hooks.faulty_handler();
        spec.runtime_handler = faulty
            .map(str::to_owned)
            .ok_or_else(|| Abort::Error("no handler that fails on demand was named".to_owned()))?;
    }
    spec.own_network |= step.own_network;
    spec.shared_pid |= step.shared_pid;
    spec.sysctls = step.sysctls.clone().into_iter().collect();
    spec.labels.extend(step.labels.clone());
    spec.annotations.extend(step.annotations.clone());
    Ok(spec)
}
