//! Restarting the runtime under its containers, where the user allows it.

use super::case_run::CaseRunner;
use super::options::Allowance;
use super::session::Session;
use super::steps::Abort;
use super::sweep::foreign_pods;
use super::user_hooks::RuntimeCommands;
use crate::case::Case;
use crate::history::Request;
use crate::limits;

impl Session {
    /// The commands by which these cases stop and start the host's runtime, if any of them does.
    pub fn restarts<'a>(
        &self,
        mut cases: impl Iterator<Item = &'a Case>,
    ) -> Option<RuntimeCommands> {
        let options = self.options();
        let restarts =
            cases.any(|case| case.restarts_runtime() && self.lack(&case.needs).is_none());
        let commands = options.asked.hooks.runtime_commands();
        commands.filter(|_| restarts && !options.kernel.is_simulated())
    }

    /// Why the runtime cannot be restarted now, if it cannot.
    pub(super) async fn lack_of_restarts(&self) -> Option<String> {
        let options = self.options();
        if options.asked.hooks.runtime_commands().is_none() {
            return Some(
                "the runtime has to be stopped and started: say how by --runtime-stop-cmd and \
                 --runtime-start-cmd, or by --runtime-unit where systemd runs it"
                    .to_owned(),
            );
        }
        let allow = &options.asked.allow;
        let anywhere = allow.contains(&Allowance::DisruptionWithForeignPods);
        if options.kernel.is_simulated() || anywhere {
            return None;
        }
        if !allow.contains(&Allowance::Disruption) {
            return Some(
                "the runtime would be stopped and started again, and nothing on this node can use \
                 it meanwhile; where that does no harm, allow it by --allow disruption"
                    .to_owned(),
            );
        }
        let lack = match foreign_pods(self.caller()).await {
            Ok(pods) if pods.all == 0 => return None,
            Ok(pods) => format!(
                "the runtime would be stopped and started again under pods of others ({}); where \
                 that does them no harm, allow it by --allow disruption-with-foreign-pods",
                pods.all
            ),
            Err(fault) => format!("whether it has pods of others cannot be found out: {fault}"),
        };
        Some(lack)
    }
}

impl CaseRunner {
    /// Gives up the event stream, stops the runtime and starts it again, and returns once a new
    /// stream has been proven live.
    pub(super) async fn restart_runtime(&self) -> Result<(), Abort> {
        let session = self.session();
        if let Some(lack) = session.lack_of_restarts().await {
            return Err(Abort::NotApplicable(lack));
        }
        let options = session.options();
        let Some(RuntimeCommands { stop, start }) = options.asked.hooks.runtime_commands() else {
            return Err(Abort::Error("no commands were given".to_owned()));
        };
        let bound = session.stretched(limits::RUNTIME_COMMAND);
        session.unsubscribe().await;
        let stopped = options.kernel.stop_runtime((&stop, &start), bound).await;
        let answer = self.call(Request::Version).await;
        // Whatever came of that, the node needs its runtime.
        let started = options.kernel.start_runtime(&start, bound).await;
        let of = |what: &'static str| {
            move |fault| Abort::Error(format!("the command that {what} the runtime: {fault}"))
        };
        stopped.map_err(of("stops"))?;
        started.map_err(of("starts"))?;
        session
            .renew(session.stretched(limits::RUNTIME_RETURN))
            .await?;
        self.waited("the runtime's end and return".to_owned(), true, bound);
        if answer.is_ok() {
            return Err(Abort::Inconclusive(
                "the runtime still answered when the command had ended that stops it".to_owned(),
            ));
        }
        Ok(())
    }
}
