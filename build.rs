//! Compiles the format of recorded histories.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(problem) = compile_history_proto() {
        println!("cargo::error={problem}");
    }
}

/// `proto/history.proto` becomes a Rust module in `OUT_DIR`.
fn compile_history_proto() -> Result<(), String> {
    println!("cargo::rerun-if-changed=proto/history.proto");
    prost_build::Config::new()
        .btree_map(["."])
        .compile_protos(&["proto/history.proto"], &["proto"])
        .map_err(|fault| format!("compile proto/history.proto: {fault}").replace('\n', " "))
}
