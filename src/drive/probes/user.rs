//! Needs of the user: commands, allowances and handlers that the suite is given.

use std::collections::BTreeSet;

use super::measured;
use crate::drive::options::Allowance;
use crate::drive::session::Session;
use crate::drive::sweep::foreign_pods;
use crate::history::Holder;
use crate::host::RuntimeProcess;
use crate::limits;

pub(super) fn clock_steps(session: &Session) -> Result<(), String> {
    let options = session.options();
    let is_allowed = options.asked.allow.contains(&Allowance::ClockSteps);
    if options.kernel.is_simulated() || is_allowed {
        return Ok(());
    }
    Err(
        "the host's wall clock would be set 10 s back and forward for a moment, which all that \
         runs there sees; on a node that can bear it, as root, allow it by --allow clock-steps"
            .to_owned(),
    )
}

pub(super) fn faulty_handler(session: &Session) -> Result<(), String> {
    given(
        session.options().asked.hooks.faulty_handler(),
        "the low-level runtime has to die on demand: configure a runtime handler with \
         ci/lib/faulty-runtime, as src/run/README.md shows, and name it by --faulty-handler",
    )
    .map(drop)
}

pub(super) fn outside_cri(session: &Session) -> Result<(), String> {
    given(
        session.options().asked.hooks.outside_cri(),
        "no call of the CRI makes such a container: give a command that does by --outside-cri, \
         such as 'ctr --namespace beside run --rm --null-io IMAGE outsider COMMAND'; \
         src/run/README.md says more",
    )
    .map(drop)
}

fn given<T>(hook: Option<T>, advice: &str) -> Result<T, String> {
    hook.ok_or_else(|| advice.to_owned())
}

pub(super) async fn runtime_log(session: &Session) -> Result<(), String> {
    let options = session.options();
    let command = given(
        options.asked.hooks.runtime_log(),
        "the log of the runtime is out of sight: say how to print it by --runtime-log-cmd, or by \
         --runtime-unit where systemd runs the runtime",
    )?;
    let bound = session.scaled(limits::LOG_WAIT);
    match options.kernel.log_lines(Some(&command), bound).await {
        Ok(0) if !options.kernel.is_simulated() => {
            Err("the command that prints the log of the runtime prints nothing".to_owned())
        }
        Ok(_) => Ok(()),
        Err(fault) => Err(format!(
            "the command that prints the log of the runtime: {fault}"
        )),
    }
}

pub(super) async fn runtime_process(session: &Session) -> Result<(), String> {
    let options = session.options();
    let (kernel, socket) = (&options.kernel, options.endpoint.socket());
    for holder in [Holder::Runtime, Holder::Pods] {
        let counted = kernel.resources(socket, holder, &BTreeSet::new()).await;
        measured(
            counted.map(drop),
            "what the process of the runtime holds is out of sight",
            "Run the suite as root in the host's pid namespace, on the runtime's node, and let \
             the runtime make its socket itself",
        )?;
    }
    Ok(())
}

pub(super) async fn runtime_kill(session: &Session) -> Result<(), String> {
    let options = session.options();
    let commands = options.asked.hooks.runtime_commands();
    if options.kernel.is_simulated() || commands.is_some_and(|commands| commands.kill.is_some()) {
        return Ok(());
    }
    let missing = match options.endpoint.socket() {
        Some(socket) => match RuntimeProcess::find(socket).await {
            Ok(_) => return Ok(()),
            Err(missing) => missing.to_string(),
        },
        None => "it has no socket on this host".to_owned(),
    };
    Err(format!(
        "the runtime has to be killed, and its process is out of reach: {missing}. Say how by \
         --runtime-kill-cmd, or by --runtime-unit where systemd runs the runtime"
    ))
}

/// Whether the runtime can be restarted now.
pub(in crate::drive) async fn may_restart(session: &Session) -> Result<(), String> {
    let options = session.options();
    given(
        options.asked.hooks.runtime_commands(),
        "the runtime has to be stopped and started: say how by --runtime-stop-cmd and \
         --runtime-start-cmd, or by --runtime-unit where systemd runs it",
    )?;
    let allow = &options.asked.allow;
    let anywhere = allow.contains(&Allowance::DisruptionWithForeignPods);
    if options.kernel.is_simulated() || anywhere {
        return Ok(());
    }
    if !allow.contains(&Allowance::Disruption) {
        return Err(
            "the runtime would be stopped and started again, and nothing on this node can use it \
             meanwhile; where that does no harm, allow it by --allow disruption"
                .to_owned(),
        );
    }
    match foreign_pods(session.client()).await {
        Ok(pods) if pods.all == 0 => Ok(()),
        Ok(pods) => Err(format!(
            "the runtime would be stopped and started again under pods of others ({}); where that \
             does them no harm, allow it by --allow disruption-with-foreign-pods",
            pods.all
        )),
        Err(fault) => Err(format!(
            "whether it has pods of others cannot be found out: {fault}"
        )),
    }
}
