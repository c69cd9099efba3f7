//! `ci/lib/debian.sh`, with stand-ins for Debian's tools.

use std::path::Path;
use std::process::Command;

/// A second package fetches a newer library again.
const FETCHES: &str = r#"
set -euo pipefail
. ci/lib/debian.sh
ensure_package_list() { :; }
own_apt() { echo libx1; }
download() { mkdir -p "$ci_dir/$1/debs" && : >"$ci_dir/$1/debs/libx1.deb"; }
dpkg-deb() { tar -c -C "$ci_dir" usr; }
mkdir -p "$ci_dir/usr/lib"
library=$ci_dir/forky/libs/usr/lib/libx.so
for version in first second; do
  echo "$version" >"$ci_dir/usr/lib/libx.so"
  touch "$ci_dir/usr/lib/of-$version"
  fetch_libraries forky "$version"
  stat -c %i "$library"
done
cat "$library"
ls "$ci_dir/forky/libs/usr/lib"
"#;

/// A running instance executes from them: rewriting a file would end it with SIGBUS.
pub(crate) fn libraries_that_are_there_are_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("bash");
    shell.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    let shell = shell.args(["-c", FETCHES]).env("ci_dir", folder.path());
    let ended = shell.output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let said = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], lines[1], "another file");
    assert_eq!(lines[2..], ["first", "libx.so", "of-first", "of-second"]);
}
