//! Each fuzz target processes its seeds and its other initial inputs without a panic.

#![expect(clippy::unwrap_used, reason = "all of this is a test")]

#[path = "../../fuzz/src/conversation.rs"]
mod conversation;
#[path = "../../fuzz/src/judging.rs"]
mod judging;
#[path = "../../fuzz/src/plegs.rs"]
mod plegs;
#[path = "../../fuzz/src/script.rs"]
mod script;
#[path = "../../fuzz/src/serving.rs"]
mod serving;
#[path = "../../fuzz/src/targets.rs"]
mod targets;
#[path = "../../fuzz/src/wire.rs"]
mod wire;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};

use conversation::Conversation;
use script::Script;

/// Passes every file of these directories to a target.
#[track_caller]
fn takes(folders: &[&str], target: impl Fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in folders {
        walk(&root.join(folder), &mut files);
    }
    assert!(!files.is_empty(), "no seeds in {folders:?}");
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let taken = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
        assert!(
            taken.is_ok(),
            "{} breaks it, as shown above",
            file.display()
        );
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// A target's input from bytes, as libFuzzer makes it; `None` if they are too few.
fn made_of<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(bytes)).ok()
}

#[test]
fn case_file() {
    let folders = ["fuzz/seeds/case_file", "cases", "fixtures/bad-cases"];
    takes(&folders, |bytes| {
        targets::case_file(bytes);
    });
}

#[test]
fn history_file() {
    let folders = [
        "fuzz/seeds/history_file",
        "fixtures/histories/containerd-2.1",
    ];
    takes(&folders, targets::history_file);
}

#[test]
fn messages() {
    takes(&["fuzz/seeds/messages"], |bytes| {
        if let Some(conversation) = made_of::<Conversation>(bytes) {
            targets::messages(&conversation);
        }
    });
}

#[test]
fn pleg() {
    let folders = ["fuzz/seeds/pleg", "fixtures/histories/containerd-2.1"];
    takes(&folders, targets::pleg);
}

#[test]
fn replies() {
    takes(&["fuzz/seeds/replies"], |bytes| {
        if let Some(script) = made_of::<Script>(bytes) {
            targets::replies(&script);
        }
    });
}
