//! The verdicts of a run while it grows: they follow its history as it is recorded, as `check`
//! follows one that was.

use std::collections::BTreeMap;

use crate::history::CaseRun;
use crate::outcome::{Outcome, RunReport};
use crate::recorder::{Overrun, Reader};
use crate::verdicts::{EndedCase, JudgedCase, Known, Scope, Verdicts};

/// A reader of the run's history, and what has come of it.
#[derive(Debug)]
pub(super) struct Following {
    reader: Reader,
    verdicts: Verdicts,
    ended: BTreeMap<CaseRun, EndedCase>,
    overrun: Option<Overrun>,
}

impl Following {
    /// Follows a history from its first entry, which is still to be recorded.
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            reader,
            verdicts: Verdicts::new(Scope::default()),
            ended: BTreeMap::new(),
            overrun: None,
        }
    }

    /// Takes in what has been recorded meanwhile.
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

    /// A case that has ended, to be judged.
    ///
    /// # Errors
    /// If too much was recorded at once to follow.
    pub(super) fn ended(&mut self, run: CaseRun) -> Result<EndedCase, Overrun> {
        self.catch_up();
        let ended = self.ended.remove(&run);
        ended.ok_or_else(|| self.overrun.unwrap_or(Overrun))
    }

    /// Takes in the verdict on a case.
    pub(super) fn settle(&mut self, judged: JudgedCase) {
        self.verdicts.settle(judged);
    }

    /// What has been said of a case or an invariant.
    pub(super) fn outcome(&mut self, run: CaseRun) -> Option<Outcome> {
        self.catch_up();
        self.verdicts.outcome(run)
    }

    /// The failures that are known of the runtime.
    pub(super) fn known(&self) -> &Known {
        self.verdicts.known()
    }

    /// The report of what has been said.
    pub(super) fn report(&mut self) -> RunReport {
        self.catch_up();
        let overrun = self.overrun.map(|fault| fault.to_string());
        self.verdicts.report(overrun)
    }
}
