//! From the text of a case file to a case, or to all that is wrong with it. Knows no file system: a
//! path is only the name of a text.

use std::path::Path;

use serde_yaml::with::singleton_map_recursive;

use super::Case;
use super::diagnose::{self, Diagnostic};
use super::file::{CaseFile, Place};
use super::validate::validate;
use crate::yaml;

/// What could be read of one case file.
pub(super) struct Reading {
    /// The id that it claims, if it could be parsed that far.
    pub(super) id: Option<String>,
    /// The case, or all that is wrong with it.
    pub(super) case: Result<Case, Vec<Diagnostic>>,
}

/// Reads a case from the text of the file at `path`, whose last two parts name the case:
/// `order/stopped-before-deleted.yaml` is `order::stopped-before-deleted`.
pub fn parse(path: &Path, text: &str) -> Result<Case, Vec<Diagnostic>> {
    read(path, Place::of(path), text).case
}

/// Reads a case from the text of the file at `path`, which `place` names.
pub(super) fn read(path: &Path, place: Place<'_>, text: &str) -> Reading {
    let file = yaml::parser(text).and_then(singleton_map_recursive::deserialize);
    let file: CaseFile = match file {
        Ok(file) => file,
        Err(fault) => {
            return Reading {
                id: None,
                case: Err(vec![diagnose::of_yaml(path, text, &fault)]),
            };
        }
    };
    Reading {
        id: Some(file.id.clone()),
        case: match validate(&file, place) {
            Ok(implied) => Ok(file.into_case(place, text, implied)),
            Err(problems) => Err(diagnose::locate_all(problems, path, text)),
        },
    }
}
