//! A run's history, folded entry by entry into its report.
//!
//! Long, because all of it changes one state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::ended::{EndedCase, JudgedCase, Tallies, Tally, explain};
use super::findings::Findings;
use super::known::{Decided, Known, KnownFailure, Losses, WATCH};
use super::plan::{Execution, Plan, Scope, blank_invariant};
use super::watched::{Measure, WatchNews, Watched};
use crate::history::{
    Body, CallId, CaseHistory, CaseRun, Entry, HostInstant, Request, RunEnd, RunInfo, Seq,
    Unavailable,
};
use crate::limits;
use crate::oracle::{Invariant, Measuring, WholeRun};
use crate::outcome::{
    Largest, Level, Limit, Outcome, REMOVED, RunReport, Spread, Times, Verdict, Worst,
};

/// The state of a report after the entries of a history so far.
#[derive(Debug, Default)]
pub struct Verdicts {
    scope: Scope,
    info: RunInfo,
    began: HostInstant,
    last: HostInstant,
    plan: Plan,
    open: BTreeMap<CaseRun, Open>,
    /// Pending calls of open cases, with their cases.
    calls: BTreeMap<CallId, CaseRun>,
    outcomes: BTreeMap<CaseRun, Outcome>,
    /// The start and duration of each case that has ended and is not settled.
    spans: BTreeMap<CaseRun, (HostInstant, Duration)>,
    found: Findings,
    /// The latencies in each judged case.
    latencies: BTreeMap<CaseRun, Vec<Times>>,
    largest_events: BTreeMap<CaseRun, u32>,
    tallies: Tallies,
    measuring: Measuring,
    whole_run: WholeRun,
    /// The foreign pods, if this is a watch.
    watched: Option<Watched>,
    unavailable: Unavailable,
    /// The end of the run's wait for late events.
    cases_ended: Option<HostInstant>,
    ended: Option<(HostInstant, RunEnd)>,
}

#[derive(Debug)]
struct Open {
    execution: Execution,
    began: Arc<Entry>,
    history: CaseHistory,
}

impl Verdicts {
    /// The state before the first entry.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            ..Self::default()
        }
    }

    /// Processes the next entry. If a case ends with it, the caller judges it and
    /// [settles](Self::settle) it at any time before the cases end.
    pub fn push(&mut self, entry: &Arc<Entry>) -> Option<EndedCase> {
        self.last = entry.at;
        self.measuring.push(entry);
        self.watch(entry);
        match &entry.body {
            Body::RunBegan(info) => {
                (self.info, self.began) = (RunInfo::clone(info), entry.at);
                self.plan = Plan::unrecorded((&self.info, self.began), &self.scope);
            }
            Body::RunPlanned(plan) => {
                self.plan = Plan::of(plan, (&self.info, self.began), &self.scope);
                let watched = |within| Watched::new(within, entry.at);
                self.watched = plan.watch_within.map(watched);
            }
            Body::CaseBegan {
                case,
                id,
                definition,
                ..
            } => self.case_began(*case, id, definition, entry),
            Body::Unjudged {
                case,
                skipped,
                reason,
            } => self.unjudged(*case, *skipped, reason, entry.at),
            Body::CasesEnded if self.cases_ended.is_none() => {
                self.cases_ended = Some(entry.at);
                let whole_run = (&self.whole_run, self.watched.as_ref().map(|_| WATCH));
                self.found
                    .judge_late(entry.seq, whole_run, &self.plan.known);
                self.whole_run = WholeRun::default();
            }
            Body::RunEnded(end) => self.ended = Some((entry.at, end.clone())),
            _ => {}
        }
        if self.cases_ended.is_none() && !self.is_left_out(entry) {
            self.whole_run.push(entry);
        }
        self.show(entry);
        let Body::CaseEnded { case } = &entry.body else {
            return None;
        };
        let open = self.close(*case)?;
        let span = (open.began.at, entry.at.since(open.began.at));
        self.spans.insert(*case, span);
        Some(EndedCase {
            execution: open.execution,
            history: open.history,
            began: open.began,
            ended: entry.clone(),
            known: self.plan.known.clone(),
            hints: self.plan.hints.clone(),
            profiles: self.plan.profiles.clone(),
            filled: self.found.filled(),
            call_deadline: self.info.call_deadline,
        })
    }

    /// Adds the verdict on a case that has ended.
    pub fn settle(&mut self, judged: JudgedCase) {
        self.tallies.add(judged.run, judged.tally());
        self.found.add(judged.run, judged.ended, judged.found);
        self.spans.remove(&judged.run);
        self.latencies.insert(judged.run, judged.latencies);
        self.largest_events.insert(judged.run, judged.largest_event);
        self.outcomes.insert(judged.run, judged.outcome);
    }

    /// The outcome of a case or an invariant; for a case once it has been judged.
    pub fn outcome(&self, run: CaseRun) -> Option<Outcome> {
        let outcome = self.outcomes.get(&run).cloned();
        let outcome = outcome.map(|it| self.bounded(it, |entry| self.tallies.of_case(run, entry)));
        let mut invariants = self.plan.invariants.iter();
        outcome.or_else(|| {
            let (_, invariant) = invariants.find(|(number, _)| *number == run)?;
            Some(self.invariant(invariant))
        })
    }

    /// Whether any case is in the plan and selected.
    pub fn has_cases(&self) -> bool {
        !self.plan.executions.is_empty()
    }

    /// The accepted known failures: those of the run, or those of the scope.
    pub fn known(&self) -> &Known {
        &self.plan.known
    }

    pub fn outcomes(&self) -> Vec<Outcome> {
        let cases = self.plan.executions.iter();
        let cases = cases.map(|(run, execution)| {
            let outcome = self.outcome(*run);
            outcome.unwrap_or_else(|| self.never_ended(*run, execution))
        });
        let invariants = self.plan.invariants.iter();
        let invariants = invariants.filter_map(|(run, _)| self.outcome(*run));
        cases.chain(invariants).collect()
    }

    /// The report of the entries so far. If the history ends before its run, the report contains a
    /// fault, with `damage` as the cause.
    pub fn report(&mut self, damage: Option<String>) -> RunReport {
        if !self.plan.is_recorded && self.cases_ended.is_none() {
            // A history without a plan has no entry for the end of the cases.
            let whole_run = (&self.whole_run, None);
            self.found
                .judge_late(Seq(u64::MAX), whole_run, &self.plan.known);
            self.cases_ended = Some(self.last);
        }
        if self.cases_ended.is_none()
            && let Some(watched) = &mut self.watched
        {
            let rest = watched.pods.finish();
            self.judge_pods(rest, Seq(u64::MAX));
        }
        let mut outcomes = self.outcomes();
        let mut faults = self.plan.faults.clone();
        match &self.ended {
            Some((_, end)) => {
                faults.extend(end.faults.iter().cloned());
                let leftovers = outcomes
                    .iter_mut()
                    .flat_map(|outcome| &mut outcome.leftovers);
                if end.removed {
                    leftovers.for_each(|left| left.insert_str(0, REMOVED));
                }
            }
            None if damage.is_none() && self.ends_early() => {
                faults.push("the history ends before its run does".to_owned());
            }
            None => {}
        }
        faults.extend(damage);
        let ended = self.ended.as_ref().map_or(self.last, |(at, _)| *at);
        let watched = self.watched.as_ref();
        let duration = ended.since(self.began);
        let of_watch = watched.map(|watched| watched.faults(duration, ended));
        faults.extend(of_watch.unwrap_or_default());
        let known = &self.plan.known;
        let pause = self.ended.as_ref().and_then(|(_, end)| end.pause());
        let mut notes: Vec<_> = pause.into_iter().chain(known.notes()).collect();
        notes.extend(outcomes.iter().filter_map(|it| known.near_miss(it)));
        notes.extend_from_slice(&self.plan.notes);
        RunReport {
            notes,
            expired: known.expired().map(|entry| entry.case.clone()).collect(),
            info: self.info.clone(),
            began: self.began,
            duration,
            image: self.plan.image.clone(),
            outcomes,
            faults,
            foreign_pods: self.plan.foreign_pods,
            profiles: self.plan.profiles.to_vec(),
            tier: self.plan.tier.clone(),
            watch: watched.map(|watched| watched.totals.clone()),
            partial: self.plan.partial,
            capabilities: self.measuring.found(),
            latencies: self.worst(),
            largest_event: self.largest_event(),
        }
    }

    /// Whether entries are missing at the end. A history without a plan does not record the end of
    /// its run.
    fn ends_early(&self) -> bool {
        let records_its_end = self.plan.is_recorded || self.plan.executions.is_empty();
        self.ended.is_none() && (records_its_end || !self.open.is_empty())
    }

    fn case_began(&mut self, run: CaseRun, id: &str, definition: &str, entry: &Arc<Entry>) {
        if !self.plan.is_recorded {
            self.plan.add(run, id, definition, &self.scope.selection);
        }
        let Some(execution) = self.plan.executions.get(&run) else {
            return;
        };
        // A run never has more cases under way, and what is under way costs with every entry.
        if self.open.len() < limits::TEST_THREADS {
            let open = Open {
                execution: execution.clone(),
                began: entry.clone(),
                history: CaseHistory::new(run),
            };
            self.open.insert(run, open);
        }
    }

    /// Passes an entry to the open cases.
    fn show(&mut self, entry: &Arc<Entry>) {
        match self.concerned(&entry.body) {
            Some(case) => {
                if let Some(open) = self.open.get_mut(&case) {
                    open.history.push(entry);
                }
            }
            None => {
                for open in self.open.values_mut() {
                    open.history.push(entry);
                }
            }
        }
    }

    /// The only case that an entry can belong to; `None` if it can belong to any.
    fn concerned(&mut self, body: &Body) -> Option<CaseRun> {
        match body {
            Body::CaseBegan { case, .. }
            | Body::StepsEnded { case, .. }
            | Body::CaseEnded { case }
            | Body::Waited { case, .. }
            | Body::Fact { case, .. } => Some(*case),
            Body::CallBegan { call, case, .. } => {
                let case = (*case)?;
                if self.open.contains_key(&case) {
                    self.calls.insert(*call, case);
                }
                Some(case)
            }
            Body::CallEnded { call, .. } => self.calls.remove(call),
            _ => None,
        }
    }

    fn close(&mut self, run: CaseRun) -> Option<Open> {
        self.calls.retain(|_, case| *case != run);
        self.open.remove(&run)
    }

    fn unjudged(&mut self, run: CaseRun, skipped: bool, reason: &str, at: HostInstant) {
        let execution = self.plan.executions.get(&run);
        let mut invariants = self.plan.invariants.iter();
        let outcome = match execution {
            Some(execution) => execution.blank(at),
            None => match invariants.find(|(number, _)| *number == run) {
                Some((_, invariant)) => blank_invariant(invariant, at),
                None => return,
            },
        };
        let verdict = if skipped {
            Verdict::Skip
        } else {
            Verdict::Error
        };
        let open = self.close(run);
        let open = open.map(|open| (open.began.at, at.since(open.began.at)));
        let settled = self.outcomes.get(&run);
        let settled = settled.map(|outcome| (outcome.began, outcome.duration));
        let span = open.or_else(|| self.spans.remove(&run)).or(settled);
        let (began, duration) = span.unwrap_or((outcome.began, outcome.duration));
        self.found.forget(run);
        self.latencies.remove(&run);
        self.largest_events.remove(&run);
        self.tallies.forget(run);
        let outcome = Outcome {
            verdict,
            reason: Some(reason.to_owned()),
            began,
            duration,
            ..outcome
        };
        self.outcomes.insert(run, outcome);
    }

    fn invariant(&self, invariant: &Invariant) -> Outcome {
        let mut outcome = blank_invariant(invariant, self.cases_ended.unwrap_or(self.last));
        self.found.add_to_outcome(invariant.id, &mut outcome);
        let mut cases = self.plan.executions.keys();
        let ran = cases.any(|run| match self.outcomes.get(run) {
            Some(outcome) => !matches!(outcome.verdict, Verdict::Skip | Verdict::Error),
            None => self.open.contains_key(run),
        });
        let nothing = match &self.watched {
            None => (!ran).then_some("no case ran to its end"),
            Some(watched) => watched.totals.nothing(),
        };
        if let Some(reason) = nothing
            && outcome.verdict == Verdict::Pass
        {
            outcome.verdict = Verdict::Skip;
            outcome.reason = Some(reason.to_owned());
        } else if outcome.verdict == Verdict::Pass
            && self.plan.is_recorded
            && self.cases_ended.is_none()
        {
            outcome.verdict = Verdict::Inconclusive;
            outcome.reason = Some("it holds as far as the history goes".to_owned());
        }
        let cap = invariant.levels.highest_of(&self.plan.profiles);
        let is_capped = outcome.cap(cap.unwrap_or(Level::May));
        // A rule broken only where it is no MUST is neither a failure nor fixed.
        let is_broken = !outcome.violations.is_empty() || outcome.advice.is_empty();
        if !is_capped && is_broken {
            self.plan.known.apply(&mut outcome, &self.decided());
        }
        explain(&mut outcome, &self.plan.hints);
        let seen = outcome.clone();
        self.bounded(outcome, |entry| {
            // A part of the cases may be the very ones that lose the race.
            if self.plan.partial && entry.cases.is_none() {
                Losses::default()
            } else {
                self.tallies.of_invariant(&seen, entry)
            }
        })
    }

    /// The cases all of whose executions were decided by the oracle.
    fn decided(&self) -> Decided<'_> {
        if self.watched.is_some() {
            // Foreign pods may still cause a missing finding.
            return Decided::default();
        }
        let mut cases = BTreeSet::new();
        let mut open = BTreeSet::new();
        for (run, execution) in &self.plan.executions {
            let verdict = self.outcomes.get(run).map(|outcome| outcome.verdict);
            let is_open = verdict.is_none_or(|verdict| {
                matches!(
                    verdict,
                    Verdict::Skip | Verdict::Error | Verdict::Inconclusive
                )
            });
            let sort = if is_open { &mut open } else { &mut cases };
            sort.insert(execution.case.id());
        }
        Decided {
            all: open.is_empty() && !self.plan.partial,
            cases: cases.difference(&open).copied().collect(),
        }
    }

    /// Rejects a known outcome if a race was lost more often than its bound.
    fn bounded(&self, mut outcome: Outcome, losses: impl Fn(&KnownFailure) -> Losses) -> Outcome {
        match outcome.verdict {
            Verdict::Known => {
                if let Some(reason) = self.plan.known.broken_bound(&outcome, losses) {
                    (outcome.verdict, outcome.reason) = (Verdict::Fail, Some(reason));
                    (outcome.race, outcome.hint) = (false, None);
                    outcome.pages.clear();
                }
            }
            // A case that was not selected is no reason.
            Verdict::Fail if self.plan.hints.broken_bound(&outcome, losses).is_some() => {
                outcome.hint = None;
                outcome.pages.clear();
            }
            _ => {}
        }
        outcome
    }

    /// The outcome of a case whose end is missing in the history.
    fn never_ended(&self, run: CaseRun, execution: &Execution) -> Outcome {
        let Some(open) = self.open.get(&run) else {
            let mut outcome = execution.blank(self.last);
            outcome.verdict = Verdict::Skip;
            outcome.reason = Some("the history ends before it began".to_owned());
            return outcome;
        };
        let mut outcome = execution.blank(open.began.at);
        outcome.duration = self.last.since(open.began.at);
        outcome.reason = Some("the history ends before it did".to_owned());
        outcome
    }

    /// Whether an entry creates a pod for a case that is not selected, or is an event that a watch
    /// does not track.
    fn is_left_out(&self, entry: &Entry) -> bool {
        match &entry.body {
            Body::CallBegan {
                case: Some(case),
                request: Request::RunSandbox(_),
                ..
            } => !self.plan.executions.contains_key(case),
            Body::Event { event, .. } => self.watched.is_some() && event.has_long_names(),
            _ => false,
        }
    }

    /// The maximum of each limit, and the first case that saw it; for a watch, the lag of events.
    fn worst(&self) -> Vec<Worst> {
        let mut worst = BTreeMap::<(Limit, Duration), Worst>::new();
        for (run, latencies) in &self.latencies {
            let Some(outcome) = self.outcomes.get(run) else {
                continue;
            };
            for Times { longest, spread } in latencies {
                let found = worst.entry((longest.limit, longest.bound));
                let found = found.or_insert_with(|| Worst {
                    latency: *longest,
                    spread: Spread::default(),
                    case: outcome.id.clone(),
                });
                found.spread.merge(spread);
                if found.latency.took < longest.took {
                    (found.latency, found.case) = (*longest, outcome.id.clone());
                }
            }
        }
        let of_watch = self.watched.iter().filter_map(Watched::lags).cloned();
        worst.into_values().chain(of_watch).collect()
    }

    /// The largest message of an event, in the first case that saw it.
    fn largest_event(&self) -> Option<Largest> {
        let seen = self.largest_events.iter().filter_map(|(run, bytes)| {
            let case = self.outcomes.get(run)?.id.clone();
            let bytes = *bytes;
            (bytes > 0).then_some(Largest { bytes, case })
        });
        // Of several of the same size, `max_by_key` gives the last.
        seen.rev().max_by_key(|largest| largest.bytes)
    }

    /// Processes the next entry of a watch, and judges the pods that are idle now.
    fn watch(&mut self, entry: &Arc<Entry>) {
        self.unavailable.push(entry);
        let quiet = self.watched.as_mut().map(|watched| watched.push(entry));
        self.judge_pods(quiet.unwrap_or_default(), entry.seq);
    }

    fn judge_pods(&mut self, histories: Vec<CaseHistory>, at: Seq) {
        let Some(watched) = &mut self.watched else {
            return;
        };
        for mut history in histories {
            history.set_unavailable(&self.unavailable);
            let measure = Measure {
                profiles: &self.plan.profiles,
                known: &self.plan.known,
                filled: &self.found.filled(),
            };
            let found = watched.judge(&history, &measure);
            self.found.add_pod(at, found);
        }
        let tally = Tally {
            case: WATCH.into(),
            ended: at,
            containers: usize::try_from(watched.totals.containers).unwrap_or(usize::MAX),
            seen: BTreeMap::new(),
        };
        self.tallies.add(CaseRun(0), tally);
    }

    /// Whether a pod of a watch has changed lately, so that even relists without changes matter.
    pub fn is_following_pods(&self) -> bool {
        let watched = self.watched.as_ref();
        watched.is_some_and(|watched| watched.pods.is_following())
    }

    /// Removes the violations of a watch since the last call.
    pub fn take_news(&mut self) -> Vec<WatchNews> {
        let watched = self.watched.as_mut();
        watched.map(Watched::take_news).unwrap_or_default()
    }
}
