//! Disturbances of the host that last while a test takes its steps.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{OwnId, ProcessError, Simulation};

/// A disturbance, such as a paused container. Dropping it undoes it.
#[must_use = "it is undone when this is dropped"]
pub struct Disturbance {
    name: String,
    undo: Arc<Slot>,
}

/// How to undo a disturbance, unless that is done.
type Slot = Mutex<Option<Box<dyn FnOnce() -> Undone + Send>>>;
/// Why a disturbance cannot be undone. It is no error if the disturbed thing is gone.
type Undone = Result<(), Box<dyn Error + Send + Sync>>;

/// The disturbances of the host.
static OF_HOST: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

/// Undoes all disturbances of the host, before the process ends.
pub fn undo_disturbances() {
    let all = std::mem::take(&mut *OF_HOST.lock().unwrap_or_else(PoisonError::into_inner));
    for slot in all.iter().filter_map(Weak::upgrade) {
        // The process is ending, so the error cannot be handled.
        let _ = undo(&slot);
    }
}

fn undo(slot: &Slot) -> Undone {
    // Under the lock, so that the process does not end meanwhile.
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    slot.take().map_or(Ok(()), |undo| undo())
}

impl Disturbance {
    /// A disturbance of the host, which is about to begin: `undo` does nothing where it has not.
    pub(super) fn new<E>(name: &str, undo: impl FnOnce() -> Result<(), E> + Send + 'static) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let disturbance = Self::simulated(name, || undo().map_err(E::into));
        let mut all = OF_HOST.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&disturbance.undo));
        disturbance
    }

    /// One that ends with this process.
    pub(super) fn simulated(name: &str, undo: impl FnOnce() -> Undone + Send + 'static) -> Self {
        Self {
            name: name.to_owned(),
            undo: Arc::new(Mutex::new(Some(Box::new(undo)))),
        }
    }

    /// Begins one of a simulated container, which `end` undoes.
    pub(super) fn of_simulated(
        kernel: &Arc<dyn Simulation>,
        container: &OwnId,
        begin: fn(&(dyn Simulation + 'static), &str) -> bool,
        end: fn(&(dyn Simulation + 'static), &str),
    ) -> Result<Self, ProcessError> {
        if !begin(&**kernel, &container.id) {
            return Err(ProcessError::Missing(container.to_string()));
        }
        let (kernel, container) = (kernel.clone(), container.id.clone());
        Ok(Self::simulated("1", move || {
            end(&*kernel, &container);
            Ok(())
        }))
    }

    /// The disturbed thing, such as a process.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn undo(self) -> Undone {
        undo(&self.undo)
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        // Callers that handle errors have called `undo`.
        let _ = undo(&self.undo);
    }
}

impl fmt::Debug for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Disturbance").field(&self.name).finish()
    }
}
