//! Builds the workload program and the formats of histories and of traces, and finds the commit for
//! `--version`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let manifest_dir = path_from("CARGO_MANIFEST_DIR");
    let out_dir = path_from("OUT_DIR");
    println!("cargo::rustc-env=GIT_COMMIT={}", git_commit(&manifest_dir));
    // A release embeds them: one that is added is not seen by the compiler. A debug build reads them.
    if variable("PROFILE") == "release" {
        println!("cargo::rerun-if-changed=cases");
        println!("cargo::rerun-if-changed=ci/expectations");
        println!("cargo::rerun-if-changed=ci/findings");
    }
    for step in [build_workload, compile_protos] {
        if let Err(problem) = step(&manifest_dir, &out_dir) {
            println!("cargo::error={problem}");
        }
    }
}

/// Compiles `fixtures/workload.rs` with the compiler of this build.
///
/// It is not a Cargo target: a program without the standard library cannot unwind, and a profile
/// with `panic = "abort"` would take from the suite the means to survive a panicking case.
fn build_workload(manifest_dir: &Path, out_dir: &Path) -> Result<(), String> {
    let source = manifest_dir.join("fixtures/workload.rs");
    println!("cargo::rerun-if-changed={}", source.display());
    let target = variable("TARGET");
    let (os, arch) = (
        variable("CARGO_CFG_TARGET_OS"),
        variable("CARGO_CFG_TARGET_ARCH"),
    );
    if os != "linux" || !["x86_64", "aarch64"].contains(&arch.as_str()) {
        return Err(format!(
            "cannot build for {target}: the workload that runs in containers \
             (fixtures/workload.rs) exists for Linux on x86_64 and aarch64 alone"
        ));
    }
    let mut rustc = Command::new(path_from("RUSTC"));
    rustc.args([
        "--crate-name=workload",
        "--crate-type=bin",
        "--edition=2024",
        "--target",
        &target,
    ]);
    for option in [
        "opt-level=z",
        "panic=abort",
        "debug-assertions=off",
        "codegen-units=1",
        "relocation-model=static",
        "strip=symbols",
        "link-args=-nostartfiles -nostdlib -static -Wl,--build-id=none",
    ] {
        rustc.args(["-C", option]);
    }
    // Cargo sets it where the configuration names a linker, as for a cross build.
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let status = rustc
        .arg("-o")
        .arg(out_dir.join("workload"))
        .arg(&source)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!(
            "compile fixtures/workload.rs for {target}: {status}"
        )),
        Err(error) => Err(format!(
            "run the Rust compiler for fixtures/workload.rs: {error}"
        )),
    }
}

/// Each file of `proto` becomes a Rust module in `OUT_DIR`.
fn compile_protos(manifest_dir: &Path, _out_dir: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-changed=proto");
    let folder = manifest_dir.join("proto");
    let files = sorted_entries(&folder)?;
    prost_build::Config::new()
        .btree_map(["."])
        .compile_protos(&files, &[folder])
        .map_err(|fault| format!("compile the files of proto: {fault}").replace('\n', " "))
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

/// The commit that is built, or `unknown` where this is not the root of a Git working tree, such
/// as in a published package.
fn git_commit(manifest_dir: &Path) -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .current_dir(manifest_dir)
            .args(args)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = || {
        // Elsewhere it would be the commit of a repository that this package happens to lie in.
        git(&["rev-parse", "--show-prefix"]).filter(String::is_empty)?;
        let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
        for name in [Some("HEAD"), Some("logs/HEAD"), branch.as_deref()]
            .into_iter()
            .flatten()
        {
            let path = git(&["rev-parse", "--git-path", name])?;
            // Cargo takes a missing file for a changed one, always.
            if manifest_dir.join(&path).exists() {
                println!("cargo::rerun-if-changed={path}");
            }
        }
        git(&["rev-parse", "--short=12", "HEAD"])
    };
    commit().unwrap_or_else(|| "unknown".to_owned())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("Cargo sets {name}: {error}"))
}

fn path_from(name: &str) -> PathBuf {
    PathBuf::from(variable(name))
}
