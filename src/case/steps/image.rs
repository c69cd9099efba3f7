//! `image`: make a call to the image service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};

/// A call to the image service that changes nothing of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "what to do to an image: `pull`, `look-up`, `list` or `remove-missing`"
)]
pub enum ImageStep {
    /// Pull the image that is there. Whatever this returns is right: it may have been imported.
    Pull,
    /// Ask for its status.
    LookUp,
    /// List all images.
    List,
    /// Remove one that is not there.
    RemoveMissing,
}

impl StepRules for ImageStep {
    fn check<'a>(&'a self, _: &mut Walk<'a, '_>, _: Surroundings) {}
}
