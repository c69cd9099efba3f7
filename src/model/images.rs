//! Images.

use super::machine::Machine;
use crate::history::{ImageListing, Reply};

impl Machine {
    pub(super) fn image(&self, reference: &str) -> Option<&ImageListing> {
        self.images.iter().find(|image| names(image, reference))
    }

    /// Any image can be had, and is the suite's.
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

/// Whether an image is the one that is meant.
pub(super) fn names(image: &ImageListing, reference: &str) -> bool {
    image.id == reference || image.tags.iter().any(|tag| tag == reference)
}
