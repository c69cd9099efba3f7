//! The expectation files of this repository, one for each runtime that it was measured on.

use std::sync::LazyLock;

use super::known::Known;
use crate::history::ExpectationFile;

/// Path and text of each.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/expectations.rs"));

/// The name under which a run has used the one of its runtime.
const NAME: &str = "built-in expectations";

/// Each of them, and what it says. A run looks for its own, and a proof makes hundreds of runs.
static READ: LazyLock<Vec<(ExpectationFile, Known)>> = LazyLock::new(|| {
    let files = builtin_files().into_iter();
    // That each can be read is for the tests to say.
    let read = files.filter_map(|file| Some((file.clone(), Known::parse(&file).ok()?)));
    read.collect()
});

/// All of them, by their paths.
pub fn builtin_files() -> Vec<ExpectationFile> {
    let file = |(path, text): &(&str, &str)| ExpectationFile {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    FILES.iter().map(file).collect()
}

/// All of them, read.
pub fn builtin() -> Vec<Known> {
    READ.iter().map(|(_, known)| known.clone()).collect()
}

/// That of a runtime, by what it calls itself; none if there is none.
pub fn builtin_of(runtime: &str) -> Option<ExpectationFile> {
    let (file, _) = found(runtime)?;
    Some(ExpectationFile {
        path: NAME.to_owned(),
        ..file.clone()
    })
}

/// What that of a runtime says; nothing if there is none.
pub(super) fn known_of(runtime: &str) -> Known {
    let known = found(runtime).map(|(_, known)| known.clone());
    known.unwrap_or_default().named(NAME)
}

fn found(runtime: &str) -> Option<&'static (ExpectationFile, Known)> {
    let mut read = READ.iter();
    read.find(|(_, known)| known.runtime.eq_ignore_ascii_case(runtime))
}
