//! Builds what the crate embeds: the cases.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let manifest_dir = path_from("CARGO_MANIFEST_DIR");
    let out_dir = path_from("OUT_DIR");
    if let Err(problem) = embed_cases(&manifest_dir, &out_dir) {
        println!("cargo::error={problem}");
    }
}

/// Writes `cases.rs`: a slice of the path and the text of each `cases/<area>/<name>.yaml`.
fn embed_cases(manifest_dir: &Path, out_dir: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-changed=cases");
    let mut list = String::from("&[\n");
    for area in sorted_entries(&manifest_dir.join("cases"))? {
        if !area.is_dir() {
            continue;
        }
        for file in sorted_entries(&area)? {
            if file
                .extension()
                .is_some_and(|extension| extension == "yaml")
            {
                let name = file.strip_prefix(manifest_dir).unwrap_or(&file);
                let (name, file) = (name.display().to_string(), file.display().to_string());
                writeln!(list, "    ({name:?}, include_str!({file:?})),")
                    .map_err(|error| format!("list {name}: {error}"))?;
            }
        }
    }
    list.push_str("]\n");
    let target = out_dir.join("cases.rs");
    fs::write(&target, list).map_err(|error| format!("write {}: {error}", target.display()))
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut entries = fs::read_dir(folder)
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<Vec<_>, _>>()
        })
        .map_err(|error| format!("list {}: {error}", folder.display()))?;
    entries.sort();
    Ok(entries)
}

fn path_from(name: &str) -> PathBuf {
    PathBuf::from(env::var(name).unwrap_or_else(|error| panic!("Cargo sets {name}: {error}")))
}
