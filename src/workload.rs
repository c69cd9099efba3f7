//! The workload of the test containers, and its image.
//!
//! [`program`] is a small static executable with a mode for each behaviour of a container,
//! [`image`] builds an OCI image with it, and [`registry`] serves that image to `PullImage` from
//! the loopback interface. No network, shell or other image is needed. This module is independent
//! of the CRI, and an image is reproducible from its labels and the architecture.

pub mod image;
pub mod program;
pub mod registry;

pub use image::{Image, LINKS};

/// The repository under which a run serves its image.
pub const REPOSITORY: &str = "cri-event-conformance/workload";

pub use program::{PROGRAM, Workload};
pub use registry::Registry;

/// The name of the image in an archive for manual import.
pub fn imported_name() -> String {
    let image = Image::build(&std::collections::BTreeMap::new());
    let digest = image.id().trim_start_matches("sha256:");
    format!("localhost/{REPOSITORY}:{}", &digest[..12])
}
