//! Pauses a container outside the CRI, as `runc pause` does: by the freezer of its cgroup.

use std::sync::Arc;

use super::cgroup::{CgroupError, Freezer, Hierarchies};
use super::{Kernel, OwnId, OwnIds, ProcessError, Simulation, container_process};

/// A container whose processes are frozen, until this is dropped.
#[derive(Debug)]
pub struct PausedContainer {
    name: String,
    place: Option<Place>,
}

#[derive(Debug)]
enum Place {
    Host(Freezer),
    Simulated(Arc<dyn Simulation>, String),
}

impl Kernel {
    /// Pauses a container: begins to freeze its processes.
    pub fn pause_container(&self, container: &OwnId) -> Result<PausedContainer, CgroupError> {
        let place = match self {
            Self::Host => {
                let cgroups = container_process::find(container)?.cgroups();
                Place::Host(Hierarchies::mounted()?.freezer_of(&container.id, &cgroups)?)
            }
            Self::Simulated(simulated) if simulated.pause(&container.id) => {
                Place::Simulated(simulated.clone(), container.to_string())
            }
            Self::Simulated(_) => {
                return Err(ProcessError::Missing(container.to_string()).into());
            }
        };
        let name = match &place {
            Place::Host(freezer) => freezer.path().display().to_string(),
            Place::Simulated(..) => "1".to_owned(),
        };
        // What is frozen halfway is let go when this is dropped.
        let paused = PausedContainer {
            name,
            place: Some(place),
        };
        if let Some(Place::Host(freezer)) = &paused.place {
            freezer.freeze()?;
        }
        Ok(paused)
    }

    /// Lets these containers run on if they are paused.
    pub fn resume_containers(&self, ids: &OwnIds) {
        if let (Self::Host, Ok(hierarchies)) = (self, Hierarchies::mounted()) {
            hierarchies.thaw_by_ids(ids);
        }
    }
}

impl PausedContainer {
    /// Its cgroup.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether all of its processes are frozen.
    pub fn is_frozen(&self) -> Result<bool, CgroupError> {
        match &self.place {
            Some(Place::Host(freezer)) => freezer.is_frozen(),
            _ => Ok(true),
        }
    }

    /// Lets it run on. Fails if the system does not permit it. It is no error if the container is
    /// gone.
    pub fn resume(mut self) -> Result<(), CgroupError> {
        self.resume_once()
    }

    fn resume_once(&mut self) -> Result<(), CgroupError> {
        match self.place.take() {
            Some(Place::Host(freezer)) => freezer.thaw(),
            Some(Place::Simulated(kernel, container)) => {
                kernel.resume(&container);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Drop for PausedContainer {
    fn drop(&mut self) {
        // Callers that handle errors have called `resume`.
        let _ = self.resume_once();
    }
}
