//! Compares the reference PLEGs with the kubelet's real code: golden vectors, one per line of
//! `fixtures/pleg/*.jsonl.gz`, or of the files in the directory that `PLEG_VECTORS` names.
//!
//! Prints the number of matching vectors of each family. A difference shows the vector's name, the
//! first step that differs, with the expected and the actual result.

mod cache;
mod cri;
mod diff;
mod engine;
mod expected;
mod steps;
mod streams;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flate2::read::MultiGzDecoder;
use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;

/// The common fields of all vectors.
#[derive(Deserialize)]
struct Head {
    kind: String,
    name: String,
}

fn main() -> ExitCode {
    let folder = std::env::var_os("PLEG_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pleg"),
        PathBuf::from,
    );
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("read {}: {error}", folder.display()))
        .map(|entry| entry.expect("list a folder").path())
        .filter(|path| path.extension() == Some(OsStr::new("gz")))
        .collect();
    files.sort();
    assert!(
        !files.is_empty(),
        "no .jsonl.gz file in {}",
        folder.display()
    );
    let trials = files.into_iter().map(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let family = name.trim_end_matches(".jsonl.gz").to_owned();
        Trial::test(family.clone(), move || check_file(&family, &file))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// Checks every vector of a file, and fails with the first that differs.
fn check_file(family: &str, file: &Path) -> Result<(), Failed> {
    let bytes = std::fs::read(file).map_err(|error| format!("read {}: {error}", file.display()))?;
    let (mut matching, mut total, mut first) = (0, 0, None);
    for line in BufReader::new(MultiGzDecoder::new(&bytes[..])).lines() {
        let line = line.map_err(|error| format!("unpack {}: {error}", file.display()))?;
        total += 1;
        match check(&line) {
            Ok(()) => matching += 1,
            Err(difference) => first = first.or(Some(difference)),
        }
    }
    writeln!(std::io::stdout(), "{family} {matching} of {total}").expect("standard output");
    match first {
        Some(difference) => Err(difference.into()),
        None if total == 0 => Err("there is no vector".into()),
        None => Ok(()),
    }
}

fn check(line: &str) -> Result<(), String> {
    let head: Head = serde_json::from_str(line).map_err(|error| format!("no vector: {error}"))?;
    let result = match head.kind.as_str() {
        "generic" | "cri" | "evented" | "mixed" => engine::check(&head.kind, line),
        "cache" => cache::check(line),
        "watch" => streams::check_watch(line),
        "fastpath" => streams::check_fastpath(line),
        kind => Err(format!("unknown kind {kind}")),
    };
    result.map_err(|difference| format!("{}::{}: {difference}", head.kind, head.name))
}
