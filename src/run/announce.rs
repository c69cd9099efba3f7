//! What a run says before its first case: to the user, and in its history.

use std::sync::Arc;

use super::RunOptions;
use crate::drive::RuntimeCommands;
use crate::history::{Audience, ExpectationFile, PlannedCase, PlannedExecution, RunInfo, RunPlan};
use crate::oracle::Invariant;
use crate::plan::Planned;
use crate::{report, terminal};

/// Says what is about to be tested.
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
            "{}\nonly cases that judge a runtime without events are run, all others are skipped",
            report::printable(reason)
        ));
    }
    if let Some(commands) = restarts {
        terminal::say(&format!(
            "at its end the run stops the runtime by `{}` and starts it by `{}`",
            commands.stop, commands.start
        ));
    }
    let foreign_pods = plan.foreign_pods;
    if foreign_pods > 0 {
        terminal::say(&format!(
            "{foreign_pods} pods of others are on this node; they are left alone. If they are a \
             kubelet's, stop it first: it removes pods that it does not know, as the suite's are"
        ));
    }
}

/// The plan as the history tells it.
pub(super) fn plan(
    options: &RunOptions,
    planned: &[Planned],
    invariants: &[&Invariant],
    expectations: Option<ExpectationFile>,
    (image, foreign_pods, audience): (&str, usize, Option<Audience>),
) -> RunPlan {
    let judged = options.selection.judged();
    let mut plan = RunPlan {
        invariants: invariants.iter().map(|rule| rule.id.to_owned()).collect(),
        image: image.to_owned(),
        foreign_pods: foreign_pods as u64,
        expectations,
        partial: options.selection.is_partial(),
        profiles: judged.iter().map(ToString::to_string).collect(),
        tier: options.selection.tier.map(|tier| tier.to_string()),
        audience,
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
