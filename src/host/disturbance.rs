//! Disturbances of the host that last while a test takes its steps.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::{OwnId, ProcessError, Simulation};

/// A disturbance of the host, such as a paused container. Dropping it undoes it.
#[must_use = "it is undone when this is dropped"]
pub struct Disturbance {
    name: String,
    undo: Option<Box<dyn FnOnce() -> Undone + Send>>,
}

/// Why a disturbance cannot be undone. It is no error if the disturbed thing is gone.
type Undone = Result<(), Box<dyn Error + Send + Sync>>;

impl Disturbance {
    pub(super) fn new<E>(name: &str, undo: impl FnOnce() -> Result<(), E> + Send + 'static) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self {
            name: name.to_owned(),
            undo: Some(Box::new(|| undo().map_err(E::into))),
        }
    }

    /// Begins one of a simulated container, which `end` undoes.
    pub(super) fn simulated(
        kernel: &Arc<dyn Simulation>,
        container: &OwnId,
        begin: fn(&(dyn Simulation + 'static), &str) -> bool,
        end: fn(&(dyn Simulation + 'static), &str),
    ) -> Result<Self, ProcessError> {
        if !begin(&**kernel, &container.id) {
            return Err(ProcessError::Missing(container.to_string()));
        }
        let (kernel, container) = (kernel.clone(), container.id.clone());
        let undo = move || -> Undone {
            end(&*kernel, &container);
            Ok(())
        };
        Ok(Self::new("1", undo))
    }

    /// The disturbed thing, such as a process.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn undo(mut self) -> Undone {
        self.undo_once()
    }

    fn undo_once(&mut self) -> Undone {
        self.undo.take().map_or(Ok(()), |undo| undo())
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        // Callers that handle errors have called `undo`.
        let _ = self.undo_once();
    }
}

impl fmt::Debug for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Disturbance").field(&self.name).finish()
    }
}
