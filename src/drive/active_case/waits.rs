//! What a case waits for, as its history records it.

use std::time::Duration;

use crate::drive::steps::Abort;
use crate::history::{Body, CaseRun, Took};
use crate::recorder::Recorder;

/// Records what a case has waited for.
#[derive(Debug)]
pub(in crate::drive) struct WaitLog {
    recorder: Recorder,
    run: CaseRun,
}

impl WaitLog {
    pub(super) fn new(recorder: Recorder, run: CaseRun) -> Self {
        Self { recorder, run }
    }

    /// Records that the case has waited for something.
    pub(in crate::drive) fn record(&self, wanted: String, met: bool, bound: Duration) {
        self.push(wanted, met, bound, None, String::new());
    }

    /// Records that the case has waited for something, and how long that took, if it came.
    pub(in crate::drive) fn record_timed(
        &self,
        wanted: String,
        met: bool,
        bound: Duration,
        took: Took,
    ) {
        self.push(wanted, met, bound, met.then_some(took), String::new());
    }

    /// Records that the case has waited for something, which came if nothing was seen instead.
    pub(in crate::drive) fn record_unless(
        &self,
        wanted: String,
        bound: Duration,
        instead: Option<String>,
    ) -> Result<(), Abort> {
        let met = instead.is_none();
        self.push(wanted, met, bound, None, instead.unwrap_or_default());
        if met { Ok(()) } else { Err(Abort::Unmet) }
    }

    fn push(
        &self,
        wanted: String,
        met: bool,
        bound: Duration,
        took: Option<Took>,
        instead: String,
    ) {
        self.recorder.record(Body::Waited {
            case: self.run,
            wanted,
            met,
            bound,
            took,
            instead,
        });
    }
}
