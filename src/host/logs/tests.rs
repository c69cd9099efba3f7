//! Log directories with their records, and damaged checkpoints.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

use super::*;
use crate::files::tests::give_away;
use crate::host::BootTicks;

const ID: &str = "0d4e4a3df1f4c1b3ad9a7d1c54dbb8b0c0f1a9d3d4ad2a51f4e1c9be2f1d6a11";
const RUN: &str = "6f1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d";
const SOCKET: &str = "/run/a/runtime.sock";

fn run() -> RunId {
    RunId::from(RUN)
}

fn made(parent: &Path) -> LogDirectory {
    let socket = Some(Path::new(SOCKET));
    LogDirectory::make(Some(parent), &run(), socket).expect("it is made")
}

fn found(parent: &Path) -> Vec<PathBuf> {
    let found = LogDirectory::found(Some(parent)).expect("it is there");
    found.into_iter().map(|logs| logs.path).collect()
}

fn own() -> OwnId {
    let (id, since) = (ID.to_owned(), BootTicks(7));
    OwnId { id, since }
}

#[test]
fn it_is_private_found_again_and_removed_with_its_logs() {
    let parent = tempfile::tempdir().expect("a directory");
    let logs = made(parent.path());
    let mode = fs::metadata(logs.path())
        .expect("it is there")
        .permissions();
    assert_eq!(mode.mode() & 0o777, MODE);
    assert_eq!(found(parent.path()), [logs.path()]);
    fs::write(logs.path().join("c_0.log"), "a line").expect("a log");
    logs.remove().expect("it is removed");
    assert!(!logs.path().exists());
    logs.remove().expect("what is gone is removed");
    assert!(found(parent.path()).is_empty());
}

#[test]
fn it_records_the_runtime_and_the_objects_of_the_run() {
    let parent = tempfile::tempdir().expect("a directory");
    let logs = made(parent.path());
    logs.note(&own()).expect("it is written");
    let found = LogDirectory::found(Some(parent.path())).expect("it is there");
    let records = found.first().expect("it is found").records();
    assert_eq!(records.made, [own()].into_iter().collect());
    assert!(records.are_of(Some(Path::new(SOCKET))));
    assert!(!records.are_of(Some(Path::new("/run/b/runtime.sock"))));
    assert!(!records.are_of(None));
    logs.remove().expect("it is removed");
    logs.note(&own()).expect_err("nothing is made again");
}

/// The records that are read after this change of their file.
fn changed(change: impl FnOnce(&Path)) -> RunRecords {
    let parent = tempfile::tempdir().expect("a directory");
    let logs = made(parent.path());
    logs.note(&own()).expect("it is written");
    change(&logs.path().join(RECORDS));
    logs.records()
}

#[test]
fn only_records_of_the_run_itself_since_this_boot_are_believed() {
    let with = |from: String, to: &str| {
        changed(|file| {
            let text = fs::read_to_string(file).expect("it is there");
            fs::write(file, text.replace(&from, to)).expect("it is written");
        })
    };
    let other_run = with(run().to_string(), "another-run");
    assert_eq!(other_run, RunRecords::default());
    let other_boot = with(boot(), "another-boot");
    assert_eq!(
        (other_boot.socket.is_some(), other_boot.made),
        (true, OwnIds::default())
    );
    let linked = changed(|file| {
        let target = file.with_file_name("target");
        fs::rename(file, &target).expect("it is moved");
        symlink(target, file).expect("a link");
    });
    assert_eq!(linked, RunRecords::default());
}

#[test]
fn an_existing_file_is_not_taken() {
    let parent = tempfile::tempdir().expect("a directory");
    let logs = LogDirectory::new(parent.path(), &run());
    symlink("/", logs.path()).expect("a link");
    let fault = LogDirectory::make(Some(parent.path()), &run(), None).expect_err("it is there");
    assert_eq!(fault.source.kind(), io::ErrorKind::AlreadyExists);
    assert!(found(parent.path()).is_empty());
}

#[test]
fn none_is_made_where_others_could_replace_it() {
    let parent = tempfile::tempdir().expect("a directory");
    let inner = parent.path().join("inner");
    fs::create_dir(&inner).expect("a directory");
    let refused = |mode: u32| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(parent.path(), mode).expect("ours");
        let logs = LogDirectory::make(Some(&inner), &run(), None);
        logs.map(|logs| logs.remove()).is_err()
    };
    assert!(!refused(0o755) && !refused(0o1777));
    assert!(refused(0o777));
    if give_away(parent.path()) {
        assert!(refused(0o755));
        let (target, links) = (tempfile::tempdir(), tempfile::tempdir());
        let (target, links) = (target.expect("a directory"), links.expect("a directory"));
        let link = links.path().join("link");
        symlink(target.path(), &link).expect("a link");
        let linked = || LogDirectory::make(Some(&link), &run(), None);
        linked().expect("the link is ours").remove().expect("ours");
        assert!(give_away(&link));
        linked().expect_err("the link is of another user");
    }
}

#[test]
fn a_root_directory_is_not_left() {
    let root = tempfile::tempdir().expect("a directory");
    let log = root.path().join("var/log");
    fs::create_dir_all(&log).expect("a directory");
    let logs = made(&log);
    let inside = || LogDirectory::found_inside(root.path());
    assert_eq!(inside()[0].path, logs.path());
    let elsewhere = tempfile::tempdir().expect("a directory");
    let outside = elsewhere.path().join("log");
    fs::rename(&log, &outside).expect("it is moved");
    symlink(&outside, &log).expect("a link");
    assert!(inside().is_empty());
}

#[test]
fn foreign_directories_are_not_found() {
    let parent = tempfile::tempdir().expect("a directory");
    let is_file = format!("{PREFIX}{}.1-2", run());
    for name in [
        PREFIX,
        &format!("{PREFIX}{}", run()),
        &format!("other-{}.1-2", run()),
        // Others can write to it.
        &format!("{PREFIX}{}.1-3", run()),
    ] {
        fs::create_dir(parent.path().join(name)).expect("a directory");
    }
    // The id of its run is no UUID.
    let private = parent.path().join(format!("{PREFIX}x.1-2"));
    fs::DirBuilder::new()
        .mode(MODE)
        .create(private)
        .expect("a directory");
    fs::write(parent.path().join(is_file), "").expect("a file");
    assert!(found(parent.path()).is_empty());
}

/// An archive with these files.
fn archive(path: &Path, files: &[(&str, &str)]) {
    let mut archive = tar::Builder::new(File::create(path).unwrap());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        archive
            .append_data(&mut header, name, text.as_bytes())
            .unwrap();
    }
    archive.finish().unwrap();
}

fn read(path: &Path) -> Vec<(String, String)> {
    let mut archive = tar::Archive::new(File::open(path).unwrap());
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (entry.path().unwrap().display().to_string(), text)
    });
    entries.collect()
}

#[test]
fn a_damaged_checkpoint_keeps_all_but_the_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, copy) = (folder.path().join("a"), folder.path().join("b"));
    let files = [("config.dump", "{}"), ("checkpoint/pages-1.img", "abc")];
    archive(&whole, &files);
    damage(&whole, &copy).unwrap();
    let text = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    assert_eq!(read(&whole), files.map(text));
    let damaged = [files[0], (files[1].0, "\0\0\0")];
    assert_eq!(read(&copy), damaged.map(text));
}

#[test]
fn a_checkpoint_is_removed_with_its_copy_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["a.tar", "a.tar.damaged", "b.tar"] {
        fs::write(path(name), "").unwrap();
    }
    Kernel::Host.remove_checkpoint(path("a.tar").to_str().unwrap());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert!(path("b.tar").exists());
}

#[test]
fn archives_without_a_checkpoint_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, copy) = (folder.path().join("a"), folder.path().join("b"));
    assert_eq!(
        damage(&whole, &copy).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    archive(&whole, &[("config.dump", "{}")]);
    let refused = damage(&whole, &copy).unwrap_err();
    assert_eq!(refused.to_string(), "the archive holds no processes");
    fs::write(&whole, [0x1f; 600]).unwrap();
    damage(&whole, &copy).unwrap_err();
}

#[test]
fn a_header_that_promises_more_than_there_is_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, copy) = (folder.path().join("a"), folder.path().join("b"));
    let mut header = tar::Header::new_gnu();
    header.set_path("checkpoint/pages-1.img").unwrap();
    header.set_size(1 << 62);
    header.set_cksum();
    fs::write(&whole, header.as_bytes()).unwrap();
    let refused = damage(&whole, &copy).unwrap_err();
    assert_eq!(refused.to_string(), "the archive is cut short");
}

#[test]
fn a_pipe_in_place_of_a_checkpoint_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, copy) = (folder.path().join("a"), folder.path().join("b"));
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &whole, kind, mode, 0).unwrap();
    let refused = damage(&whole, &copy).unwrap_err();
    assert_eq!(refused.to_string(), "it is not a regular file");
}
