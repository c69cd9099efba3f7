//! The figures so far: those measured before an interruption are reported, too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::measurement::{EventsCell, Measurement, PlegCell, VERSION};
use crate::run::Surroundings;

/// Collects figures. Cheap to clone; all clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    measurement: Arc<Mutex<Option<Measurement>>>,
}

impl Results {
    /// Records the facts about the node.
    pub(super) fn begin(&self, surroundings: &Surroundings) {
        let info = &surroundings.info;
        *self.lock() = Some(Measurement {
            version: VERSION,
            suite: info.suite.clone(),
            runtime: info.runtime.runtime_name.clone(),
            runtime_version: info.runtime.runtime_version.clone(),
            endpoint: info.endpoint.clone(),
            host: info.host.clone(),
            simulated: surroundings.simulated,
            foreign_pods: surroundings.foreign_pods,
            events: Vec::new(),
            pleg: Vec::new(),
            notes: Vec::new(),
            faults: Vec::new(),
        });
    }

    pub(super) fn add_events(&self, cell: EventsCell) {
        self.with(|measurement| measurement.events.push(cell));
    }

    pub(super) fn add_pleg(&self, cell: PlegCell) {
        self.with(|measurement| measurement.pleg.push(cell));
    }

    /// Records a figure that cannot be measured.
    pub(super) fn note(&self, note: String) {
        self.with(|measurement| measurement.notes.push(note));
    }

    /// All figures; `None` if the measurement has not begun.
    pub(super) fn take(&self) -> Option<Measurement> {
        self.lock().take()
    }

    fn with(&self, change: impl FnOnce(&mut Measurement)) {
        if let Some(measurement) = &mut *self.lock() {
            change(measurement);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Measurement>> {
        let measurement = self.measurement.lock();
        measurement.unwrap_or_else(PoisonError::into_inner)
    }
}
