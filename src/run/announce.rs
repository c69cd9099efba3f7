//! The announcements before the first case: on the console, and in the history.

use std::sync::Arc;

use super::RunOptions;
use super::prepare::Prepared;
use crate::history::{ExpectationFile, PlannedCase, PlannedExecution, RunInfo, RunPlan};
use crate::host::RuntimeCommands;
use crate::oracle::Invariant;
use crate::plan::Planned;
use crate::{report, terminal};

/// Prints the subject of the test.
pub(super) fn announce(
    info: &RunInfo,
    plan: &RunPlan,
    no_events: Option<&str>,
    restarts: Option<RuntimeCommands>,
    simulated: bool,
) {
    let runtime = &info.runtime;
    let how = if simulated {
        ", in this process, in simulated time".to_owned()
    } else {
        format!(" at {}", info.endpoint)
    };
    terminal::say(&format!(
        "testing {} {}{how}\nimage {}\nrun {}",
        report::printable(&runtime.runtime_name),
        report::printable(&runtime.runtime_version),
        plan.image,
        info.run
    ));
    if let Some(reason) = no_events {
        terminal::say(&format!(
            "{}\nonly cases for runtimes without events are run; all others are skipped",
            report::printable(reason)
        ));
    }
    if let Some(commands) = restarts {
        let kill = commands
            .kill
            .map(|kill| format!(", kills it with `{kill}`"));
        terminal::say(&format!(
            "at its end the run stops the runtime with `{}`{} and starts it with `{}`",
            commands.stop,
            kill.unwrap_or_default(),
            commands.start
        ));
    }
    let foreign_pods = plan.foreign_pods;
    if foreign_pods > 0 {
        terminal::say(&format!(
            "this node has {foreign_pods} other pods, which are left alone. If a kubelet manages \
             them, stop it first: it removes pods that it does not know, including the suite's"
        ));
    }
}

/// The run's plan, for its history.
pub(super) fn plan(
    options: &RunOptions,
    planned: &[Planned],
    invariants: &[&Invariant],
    expectations: Option<ExpectationFile>,
    Prepared {
        session,
        foreign_pods,
    }: &Prepared,
) -> RunPlan {
    let judged = options.selection.judged();
    let mut plan = RunPlan {
        invariants: invariants.iter().map(|rule| rule.id.to_owned()).collect(),
        image: session.options().image.clone(),
        foreign_pods: *foreign_pods as u64,
        expectations,
        // Own cases are not all that a profile demands.
        partial: options.selection.is_partial() || options.cases.is_some(),
        profiles: judged.iter().map(ToString::to_string).collect(),
        tier: options.selection.tier.map(|tier| tier.to_string()),
        fan_out: session.fan_out(),
        probed: session.capabilities(),
        ..RunPlan::default()
    };
    let mut cases = Vec::new();
    for Planned { case, repetition } in planned {
        let place = cases.iter().position(|known| Arc::ptr_eq(known, case));
        let place = place.unwrap_or_else(|| {
            cases.push(case.clone());
            plan.cases.push(PlannedCase {
                name: case.name.clone(),
                definition: case.definition.clone(),
            });
            cases.len() - 1
        });
        plan.executions.push(PlannedExecution {
            case: u32::try_from(place).expect("there are fewer cases"),
            repetition: *repetition,
        });
    }
    plan
}
