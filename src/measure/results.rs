//! The figures so far: what was measured before an interruption is reported, too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::measurement::{EventsCell, Measurement, PlegCell, VERSION};
use crate::run::Surroundings;

/// Collects what is measured. Cheap to clone; all clones collect together.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    measurement: Arc<Mutex<Option<Measurement>>>,
}

impl Results {
    /// Begins with what is known of the node.
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

    /// Adds a cell of `measure events`.
    pub(super) fn add_events(&self, cell: EventsCell) {
        self.with(|measurement| measurement.events.push(cell));
    }

    /// Adds a cell of `measure pleg`.
    pub(super) fn add_pleg(&self, cell: PlegCell) {
        self.with(|measurement| measurement.pleg.push(cell));
    }

    /// Notes what cannot be measured.
    pub(super) fn note(&self, note: String) {
        self.with(|measurement| measurement.notes.push(note));
    }

    /// All that was measured; nothing if the measurement has not begun.
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
