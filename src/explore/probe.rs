//! Finds out what the runtime and its node can do: a case for each need, which a run skips where
//! the need is not met.

use std::path::Path;

use super::capabilities::Capabilities;
use super::text::FOLDER;
use crate::case::{Case, Need, parse};
use crate::outcome::{RunReport, Verdict};

/// The cases, in the order of [`Capabilities::USED`]; those that disrupt only where it is allowed.
pub(super) fn cases(disruption: bool) -> Vec<Case> {
    let needs = Capabilities::USED.into_iter().enumerate();
    let allowed = needs.filter(|(_, need)| disruption || !disrupts(*need));
    allowed.map(|(number, need)| case(number, need)).collect()
}

/// What the report on these cases says.
pub(super) fn read(report: &RunReport, disruption: bool) -> Capabilities {
    let is_met = |number: usize| {
        let id = id(number);
        let mut outcomes = report.outcomes.iter();
        outcomes.any(|outcome| *outcome.id == *id && outcome.verdict != Verdict::Skip)
    };
    let needs = Capabilities::USED.into_iter().enumerate();
    let met = needs.filter(|(number, _)| is_met(*number));
    Capabilities {
        met: met.map(|(_, need)| need).collect(),
        disruption,
    }
}

fn disrupts(need: Need) -> bool {
    matches!(
        need,
        Need::HostPid | Need::Monitor | Need::ClockSteps | Need::RuntimeKill | Need::SmallDisk
    )
}

fn id(number: usize) -> String {
    format!("EXP-{number:02}")
}

fn case(number: usize, need: Need) -> Case {
    let keys = match need {
        Need::Broadcast => "needs: [broadcast]\n",
        _ => "",
    };
    let pod = match need {
        Need::PodCgroup => ", memory-mib: 64",
        Need::Network => ", own-network: true",
        Need::FaultyHandler => ", faulty: true",
        _ => "",
    };
    let container = match need {
        Need::MemoryLimit => ", memory-mib: 64",
        Need::CgroupV2 => ", memory-mib: 64, oom-group: true",
        Need::StopSignal => ", stop-signal: SIGUSR1",
        _ => "",
    };
    let workload = match need {
        Need::CorePipe => "{dump-core: {signal: 11}}",
        _ => "until-term",
    };
    let step = match need {
        Need::HostPid => "  - kill-sandbox: {sandbox: p}\n",
        Need::ContainerPid => "  - kill: {container: c}\n",
        Need::Monitor => "  - kill-monitor: {container: c}\n",
        Need::Handlers => "  - for-each-handler: {steps: [{sandbox: {as: q}}]}\n",
        Need::StreamedLists => "  - list-with-filters: {sandbox: p, streamed: true}\n",
        Need::OutsideCri => "  - outside-cri: {}\n",
        Need::ClockSteps => "  - step-clock: {back: 10s, steps: [{relist: {sandbox: p}}]}\n",
        Need::RuntimeKill => "  - restart-runtime: {by: kill}\n",
        Need::SmallDisk => "  - fill-disk: {container: c, steps: [{relist: {sandbox: p}}]}\n",
        _ => "",
    };
    let text = format!(
        "id: {}\ntitle: This is possible.\nwhy: Walks make use of it.\nsources: [the CRI]\n\
         levels: {{cache: may}}\n{keys}exclusive: true\nsteps:\n  - sandbox: {{as: p{pod}}}\n  \
         - create: {{as: c, in: p, workload: {workload}{container}}}\n  - start: {{container: c}}\n\
         {step}expect:\n  - no-repeats: {{of: c}}\n",
        id(number)
    );
    let path = format!("{FOLDER}/probe-{number}.yaml");
    match parse(Path::new(&path), &text) {
        Ok(case) => case,
        Err(problems) => panic!("a probe is a case: {problems:#?}\n{text}"),
    }
}
