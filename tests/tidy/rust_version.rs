//! The oldest compiler that Cargo.toml promises is new enough for the dependencies.
//!
//! Clippy's `incompatible_msrv` checks the suite's own code.

use std::process::Command;

use serde_json::Value;

use super::none;

#[test]
fn no_dependency_needs_a_newer_compiler() {
    let packages = packages();
    let own = packages
        .iter()
        .find(|package| package["name"] == env!("CARGO_PKG_NAME"));
    let own = own.and_then(rust_version);
    let own = own.expect("Cargo.toml has a `rust-version`");
    let newer = packages
        .iter()
        .filter(|package| rust_version(package) > Some(own));
    let findings = newer.map(|package| {
        format!(
            "{} {} needs Rust {}",
            package["name"], package["version"], package["rust_version"]
        )
    });
    none(
        "Dependencies are content with the `rust-version` of Cargo.toml.",
        &findings.collect::<Vec<_>>(),
    );
}

/// The packages of a build for Linux, as listed by `cargo metadata`.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .arg("--filter-platform=x86_64-unknown-linux-gnu")
        .output()
        .expect("cargo runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let packages = metadata["packages"].as_array().cloned();
    packages.expect("`packages` is a list")
}

/// The minimum compiler version of a package, in numbers; `None` if not specified.
fn rust_version(package: &Value) -> Option<(u32, u32)> {
    let mut numbers = package["rust_version"].as_str()?.split('.');
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}
