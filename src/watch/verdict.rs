//! The first and last entries of a watch, and its verdict.

use super::options::WatchOptions;
use super::record::{HistoryFile, Record};
use super::redact;
use crate::cri::Client;
use crate::history::{Body, Entry, HostInstant, RunEnd, RunId, RunInfo, RunPlan, Seq};
use crate::host::{self, Kernel};
use crate::oracle::{INVARIANTS, NO_MISSED_EVENT, PLEGS_AGREE};
use crate::outcome::{RunReport, Verdict, WatchTotals};
use crate::report::{counted, headline, span};
use crate::run::{Endpoints, Exit, Reporting, RunError};
use crate::verdicts::{Scope, Verdicts};

/// The start of a watch.
pub(super) struct Beginning {
    pub(super) record: Record,
    pub(super) ending: Ending,
}

/// The state that a watch needs at its end.
pub(super) struct Ending {
    reporting: Reporting,
    began: HostInstant,
}

impl Beginning {
    pub(super) async fn new(
        endpoints: &Endpoints,
        client: &Client,
        options: &WatchOptions,
    ) -> Result<Self, RunError> {
        let mut reporting = Reporting::open(&options.report, options.history.as_deref())?;
        let beneath = client.beneath("").await;
        let mut host = Kernel::Host.host();
        if let Some(name) = host.as_mut().and_then(|it| it.name.as_mut())
            && options.redact
        {
            redact::text(name);
        }
        let info = RunInfo {
            run: RunId::from(uuid::Uuid::new_v4().to_string()),
            suite: crate::VERSION.to_owned(),
            endpoint: endpoints.runtime.to_string(),
            runtime: client.version().clone(),
            oci: beneath.oci,
            cgroup_driver: beneath.cgroup_driver,
            host,
            call_deadline: Some(client.deadline()),
        };
        let profiles = options.selection().judged().into_iter();
        let rules = INVARIANTS.iter().filter(|rule| rule.of_foreign_pods);
        let plan = RunPlan {
            invariants: rules.map(|rule| rule.id.to_owned()).collect(),
            expectations: reporting.expectations(&info)?,
            profiles: profiles.map(|profile| profile.name().to_owned()).collect(),
            watch_within: Some(options.within),
            ..RunPlan::default()
        };
        let file = reporting.begin_history()?;
        let file = file.map(|(path, file)| HistoryFile::new(path, file, options.rotate));
        let mut record = Record::new(Scope::default(), file);
        let began = host::now();
        for body in [Body::RunBegan(info.into()), Body::RunPlanned(plan.into())] {
            let (seq, at) = (Seq::default(), began);
            record.push(Entry { seq, at, body });
        }
        let ending = Ending { reporting, began };
        Ok(Self { record, ending })
    }
}

impl Ending {
    /// Records the end, and judges the remaining entries.
    pub(super) fn close(
        &self,
        record: &mut Record,
        now: HostInstant,
        interrupted: bool,
    ) -> RunReport {
        let interrupted = interrupted.then(|| {
            let after = span(now.since(self.began));
            format!("the watch was interrupted after {after}")
        });
        let end = RunEnd {
            removed: true,
            faults: interrupted.into_iter().collect(),
            ..RunEnd::default()
        };
        let last = [Body::CasesEnded, Body::RunEnded(end)];
        let entries = last.map(|body| Entry {
            seq: Seq::default(),
            at: now,
            body,
        });
        let fault = record.finish(entries.into());
        let mut report = record.verdicts().report(None);
        report.faults.extend(fault);
        report
    }

    /// Writes the reports and prints the verdict; returns its exit code.
    pub(super) fn conclude(
        self,
        options: &WatchOptions,
        report: RunReport,
        verdicts: &Verdicts,
    ) -> Exit {
        let exit = options.exit(&report);
        let mut node = host::name();
        if options.redact {
            redact::text(&mut node);
        }
        let head = headline(&node, &answer(exit, &report));
        self.reporting
            .conclude(report, verdicts.known(), exit, head + "\n")
    }
}

/// The verdict, and its reason.
fn answer(exit: Exit, report: &RunReport) -> String {
    let totals = report.watch.clone().unwrap_or_default();
    let nothing = totals.nothing().unwrap_or_default();
    let WatchTotals {
        events, containers, ..
    } = totals;
    let found = |rule: &str| {
        let outcomes = report.outcomes.iter();
        let of_rule = outcomes.filter(|outcome| *outcome.id == *rule);
        of_rule
            .map(|outcome| outcome.seen.values().sum::<usize>() + outcome.advice.len())
            .sum()
    };
    let [missed, differ]: [usize; 2] = [NO_MISSED_EVENT, PLEGS_AGREE].map(found);
    let [broken, known] = [Verdict::Fail, Verdict::Known].map(|verdict| report.count(verdict));
    let invariants = report.outcomes.len();
    let judged = format!("{invariants} invariants, {containers} containers");
    match exit {
        Exit::Conformant if broken + known == 0 => {
            format!("nothing broken ({judged}): {events} events")
        }
        Exit::Conformant => {
            format!("accepted ({judged}): {events} events, {known} known, {broken} more broken")
        }
        Exit::NothingRan => format!("{nothing}: {events} events"),
        Exit::NonConformant | Exit::Undecided | Exit::Usage => {
            let verdict = match (exit, report.faults.first()) {
                (Exit::NonConformant, _) => "non-conformant",
                (_, Some(fault)) => return format!("undecided: {fault}"),
                (_, None) => "undecided",
            };
            let broken = counted(broken, "rule", "rules");
            format!(
                "{verdict}: {missed} missed, {differ} disagree, {broken} broken, {known} accepted, \
                 {events} events"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::fixture;

    #[test]
    fn the_first_line_is_short() {
        let mut report = fixture();
        report.watch = Some(WatchTotals {
            events: u64::MAX,
            ..WatchTotals::default()
        });
        for exit in [
            Exit::Conformant,
            Exit::NonConformant,
            Exit::Undecided,
            Exit::NothingRan,
        ] {
            let line = headline(&"n".repeat(63), &answer(exit, &report));
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
