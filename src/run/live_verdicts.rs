//! The verdicts of a run in progress: derived from its history while it is recorded, by the code
//! that `check` uses for a recorded one.

use std::collections::BTreeMap;

use crate::history::CaseRun;
use crate::outcome::{Outcome, RunReport};
use crate::recorder::{Overrun, Reader};
use crate::verdicts::{EndedCase, JudgedCase, Known, Scope, Verdicts};

/// Reads the run's history as it grows, and judges it.
#[derive(Debug)]
pub(super) struct LiveVerdicts {
    reader: Reader,
    verdicts: Verdicts,
    ended: BTreeMap<CaseRun, EndedCase>,
    overrun: Option<Overrun>,
}

impl LiveVerdicts {
    /// The verdicts on an empty history.
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            reader,
            verdicts: Verdicts::new(Scope::default()),
            ended: BTreeMap::new(),
            overrun: None,
        }
    }

    /// Processes the entries recorded since the last call.
    pub(super) fn catch_up(&mut self) {
        match self.reader.drain() {
            Ok(entries) => {
                for entry in &entries {
                    if let Some(ended) = self.verdicts.push(entry) {
                        self.ended.insert(ended.run(), ended);
                    }
                }
            }
            Err(fault) => self.overrun = Some(fault),
        }
    }

    /// Removes an ended case from the verdicts, to be judged. Fails if entries were lost because
    /// the reader fell behind.
    pub(super) fn ended(&mut self, run: CaseRun) -> Result<EndedCase, Overrun> {
        self.catch_up();
        let ended = self.ended.remove(&run);
        ended.ok_or_else(|| self.overrun.unwrap_or(Overrun))
    }

    /// Stores the verdict on a case.
    pub(super) fn settle(&mut self, judged: JudgedCase) {
        self.verdicts.settle(judged);
    }

    /// The outcome of a case or an invariant; `None` before its end.
    pub(super) fn outcome(&mut self, run: CaseRun) -> Option<Outcome> {
        self.catch_up();
        self.verdicts.outcome(run)
    }

    pub(super) fn known(&self) -> &Known {
        self.verdicts.known()
    }

    pub(super) fn report(&mut self) -> RunReport {
        self.catch_up();
        let overrun = self.overrun.map(|fault| fault.to_string());
        self.verdicts.report(overrun)
    }
}
