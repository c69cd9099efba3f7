//! Comparison with a file that `UPDATE_EXPECT=1` rewrites.

use std::path::Path;
use std::{env, fs};

use similar::TextDiff;

/// The maximum number of lines of a difference that are shown.
const SHOWN: usize = 80;

/// Fails with the difference if a file, named from the root of the project, has another text, or
/// rewrites it.
#[track_caller]
pub(crate) fn assert_file(path: impl AsRef<Path>, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected == actual {
        return;
    }
    if env::var_os("UPDATE_EXPECT").is_some() {
        return fs::write(&path, actual).expect("it can be written");
    }
    let difference = TextDiff::from_lines(&expected, actual);
    let difference = difference.unified_diff().to_string();
    let count = difference.lines().count();
    let mut shown: Vec<&str> = difference.lines().take(SHOWN).collect();
    let more = format!("… {} more lines", count.saturating_sub(SHOWN));
    shown.extend((count > SHOWN).then_some(&*more));
    panic!(
        "{} differs (`UPDATE_EXPECT=1` rewrites it):\n{}",
        path.display(),
        shown.join("\n")
    );
}
