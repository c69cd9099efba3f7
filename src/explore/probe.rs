//! Finds out what the runtime and its node can do: a case for each need, which a run skips where
//! the need is not met, and one for a behaviour, which passes only where the runtime behaves so.

use std::path::Path;

use super::capabilities::{Behaviour, Capabilities};
use super::text::FOLDER;
use crate::case::{Case, Need, parse};
use crate::outcome::{RunReport, Verdict};

/// The behaviours that a case shows, and its steps.
const BEHAVIOURS: [(Behaviour, &str); 2] = [
    (
        Behaviour::CreatesWithoutProgram,
        "steps:\n  - sandbox: {as: p}\n  \
         - create: {as: c, in: p, workload: missing-program, may-be-refused: true}\n",
    ),
    (
        Behaviour::RefusesTwins,
        "steps:\n  - sandbox: {as: p}\n  - create: {as: c, in: p, workload: until-term}\n  \
         - create: {as: d, in: p, workload: until-term, same-as: c, expect: failure}\n",
    ),
];

/// The cases: in the order of [`Capabilities::USED`], those that disrupt only where it is allowed,
/// and those of the behaviours.
pub(super) fn cases(disruption: bool) -> Vec<Case> {
    let needs = Capabilities::USED.into_iter().enumerate();
    let allowed = needs.filter(|(_, need)| disruption || !disrupts(*need));
    let of_needs = allowed.map(|(number, need)| case(number, &steps_of_need(need)));
    let of_behaviours = BEHAVIOURS.into_iter().enumerate();
    let of_behaviours =
        of_behaviours.map(|(nth, (_, steps))| case(number_of_behaviour(nth), steps));
    of_needs.chain(of_behaviours).collect()
}

/// What the report on these cases says.
pub(super) fn read(report: &RunReport, disruption: bool) -> Capabilities {
    let verdict = |id: &str| {
        let outcome = report.outcomes.iter().find(|outcome| *outcome.id == *id);
        outcome.map(|outcome| outcome.verdict)
    };
    let cases = cases(disruption).into_iter();
    let met = cases.filter(|case| verdict(&case.id).is_some_and(|it| it != Verdict::Skip));
    let behaviours = BEHAVIOURS.into_iter().enumerate();
    let shown = behaviours
        .filter(|(nth, _)| verdict(&id(number_of_behaviour(*nth))) == Some(Verdict::Pass));
    Capabilities {
        met: met.flat_map(|case| case.needs).collect(),
        behaviours: shown.map(|(_, (behaviour, _))| behaviour).collect(),
        disruption,
    }
}

/// Whether a need is measured only where disruption is allowed.
pub(super) fn disrupts(need: Need) -> bool {
    matches!(
        need,
        Need::HostPid | Need::Monitor | Need::ClockSteps | Need::RuntimeKill | Need::SmallDisk
    )
}

fn id(number: usize) -> String {
    format!("EXP-{number:02}")
}

fn number_of_behaviour(nth: usize) -> usize {
    Capabilities::USED.len() + nth
}

/// The steps that have this need, and the keys before them.
fn steps_of_need(need: Need) -> String {
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
    format!(
        "{keys}steps:\n  - sandbox: {{as: p{pod}}}\n  \
         - create: {{as: c, in: p, workload: {workload}{container}}}\n  - start: {{container: c}}\n\
         {step}"
    )
}

fn case(number: usize, steps: &str) -> Case {
    let text = format!(
        "id: {}\ntitle: This is possible.\nwhy: Walks make use of it.\nsources: [the CRI]\n\
         levels: {{cache: may}}\nexclusive: true\n{steps}expect:\n  - no-repeats: {{of: c}}\n",
        id(number)
    );
    let path = format!("{FOLDER}/probe-{number}.yaml");
    match parse(Path::new(&path), &text) {
        Ok(case) => case,
        Err(problems) => panic!("a probe is a case: {problems:#?}\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{fixture, outcome};

    #[test]
    fn a_need_is_met_unless_it_is_skipped_and_a_behaviour_shown_only_where_its_case_passes() {
        let read_of = |number: usize, verdict: Verdict| {
            let mut report = fixture();
            report.outcomes = vec![outcome(&id(number), "explore::probe", verdict)];
            read(&report, false)
        };
        let met = Some(&Capabilities::USED[0]);
        assert_eq!(read_of(0, Verdict::Inconclusive).met.first(), met);
        assert_eq!(read_of(0, Verdict::Skip).met.first(), None);
        let twins = number_of_behaviour(1);
        assert!(read_of(twins, Verdict::Pass).has(Behaviour::RefusesTwins));
        // A call succeeded that must fail, or the runtime refused what is needed.
        for verdict in [Verdict::Inconclusive, Verdict::Skip] {
            let can = read_of(twins, verdict);
            assert!(!can.has(Behaviour::RefusesTwins), "{verdict}");
        }
    }

    #[test]
    fn each_probe_is_a_case() {
        let needs = Capabilities::USED.len();
        assert_eq!(cases(true).len(), needs + BEHAVIOURS.len());
        assert!(cases(false).len() < cases(true).len());
    }
}
