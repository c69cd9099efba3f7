//! The expectation files of this repository, one for each measured runtime.

use std::borrow::Cow;
use std::sync::LazyLock;

use rust_embed::RustEmbed;

use super::known::Known;
use crate::history::ExpectationFile;

/// As they were when the program was built; a debug build reads them as they are now.
#[derive(RustEmbed)]
#[folder = "ci/expectations"]
#[include = "*.yaml"]
struct Embedded;

/// The name of a built-in file in the history of a run.
const NAME: &str = "built-in expectations";

/// Each file, with its parsed content. A run needs the one of its runtime, and the matrix makes
/// hundreds of runs.
static READ: LazyLock<Vec<(ExpectationFile, Known)>> = LazyLock::new(|| {
    let files = builtin_files().into_iter();
    // That each can be read is for the tests to say.
    let read = files.filter_map(|file| Some((file.clone(), Known::parse(&file).ok()?)));
    read.collect()
});

/// All files, by their paths.
pub fn builtin_files() -> Vec<ExpectationFile> {
    let file = |name: Cow<'static, str>| {
        let data = Embedded::get(&name)?.data.into_owned();
        let path = format!("ci/expectations/{name}");
        let text = String::from_utf8(data).ok()?;
        Some(ExpectationFile { path, text })
    };
    Embedded::iter().filter_map(file).collect()
}

pub fn builtin() -> Vec<Known> {
    READ.iter().map(|(_, known)| known.clone()).collect()
}

/// The file of a runtime, by the runtime's name; `None` if there is none.
pub fn builtin_of(runtime: &str) -> Option<ExpectationFile> {
    let (file, _) = found(runtime)?;
    Some(ExpectationFile {
        path: NAME.to_owned(),
        ..file.clone()
    })
}

/// The known failures of a runtime; empty without a file.
pub(super) fn known_of(runtime: &str) -> Known {
    let known = found(runtime).map(|(_, known)| known.clone());
    known.unwrap_or_default().named(NAME)
}

fn found(runtime: &str) -> Option<&'static (ExpectationFile, Known)> {
    let mut read = READ.iter();
    read.find(|(_, known)| known.runtime.eq_ignore_ascii_case(runtime))
}
