//! What the containers run, and how a runtime gets it.
//!
//! [`program`] is one tiny static file with a mode for every way in which a container can live and
//! die, [`image`] makes an OCI image of it, and [`registry`] serves that image to `PullImage` from
//! the loopback interface. No network, no shell and no foreign image are needed. This module knows
//! nothing of the CRI, and every byte of an image follows from its labels and the architecture.

pub mod image;
mod listener;
pub mod program;
pub mod registry;

pub use image::Image;

/// The repository under which a run serves its image.
pub const REPOSITORY: &str = "cri-event-conformance/workload";

pub use program::{PROGRAM, Workload};
pub use registry::Registry;

/// The name under which the image is written for an import by hand.
#[must_use]
pub fn imported_name() -> String {
    let image = Image::build(&std::collections::BTreeMap::new());
    let digest = image.id().trim_start_matches("sha256:");
    format!("localhost/{REPOSITORY}:{}", &digest[..12])
}
