//! The image service.

use super::machine::Machine;
use crate::history::{ImageListing, Reply};

impl Machine {
    pub(super) fn image(&self, reference: &str) -> Option<&ImageListing> {
        self.images.iter().find(|image| names(image, reference))
    }

    /// Pulls an image: every reference exists and is the suite's image.
    pub(super) fn pull_image(&mut self, reference: &str) -> Reply {
        if self.image(reference).is_none() {
            let image = ImageListing {
                id: format!("sha256:{}", self.random.id()),
                tags: vec![reference.to_owned()],
            };
            self.images.push(image);
        }
        let id = self.image(reference).map(|image| image.id.clone());
        Reply::Pulled(id.unwrap_or_default())
    }
}

/// Whether a reference names this image, by id or tag.
pub(super) fn names(image: &ImageListing, reference: &str) -> bool {
    image.id == reference || image.tags.iter().any(|tag| tag == reference)
}
