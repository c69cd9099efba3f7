//! Files under attack: links, other people's drafts, places that change.

use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::{TempDir, tempdir};

use super::*;

fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn write(path: &Path, text: &str) -> Result<(), OutputError> {
    Draft::open("report", path)?.complete(|out| out.write_all(text.as_bytes()))
}

#[test]
fn a_file_is_its_owners_alone_and_leaves_no_draft() {
    let folder = folder_with(&[("report", "older")]);
    let path = folder.path().join("report");
    write(&path, "new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(&folder), ["report"]);
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    for begins in [false, true] {
        let folder = folder_with(&[("victim", "precious")]);
        let (victim, path) = (folder.path().join("victim"), folder.path().join("report"));
        symlink(&victim, &path).unwrap();
        if begins {
            let draft = Draft::open("history", &path).unwrap();
            draft.begin().unwrap().write_all(b"new").unwrap();
        } else {
            write(&path, "new").unwrap();
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(!path.symlink_metadata().unwrap().is_symlink());
    }
}

#[test]
fn a_link_that_is_planted_once_the_draft_is_open_is_not_followed_either() {
    let folder = folder_with(&[("victim", "precious")]);
    let (victim, path) = (folder.path().join("victim"), folder.path().join("report"));
    let draft = Draft::open("report", &path).unwrap();
    symlink(&victim, &path).unwrap();
    draft.complete(|out| out.write_all(b"new")).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_link_to_a_device_is_refused_and_the_device_is_not() {
    let folder = folder_with(&[]);
    let path = folder.path().join("link");
    symlink("/dev/null", &path).unwrap();
    let refused = write(&path, "x").unwrap_err().to_string();
    assert!(refused.contains("a link to a device"), "{refused}");
    write(Path::new("/dev/null"), "x").unwrap();
    let full = write(Path::new("/dev/full"), "x").unwrap_err().to_string();
    assert!(full.contains("No space left"), "{full}");
    let mut open = tempfile::tempfile().unwrap();
    open.write_all(b"before ").unwrap();
    let ours = format!("/dev/fd/{}", open.as_raw_fd());
    write(Path::new(&ours), "after").unwrap();
    assert_eq!(open.metadata().unwrap().len(), 12);
}

#[test]
fn a_pipe_is_written_to_and_stays_one() {
    let folder = folder_with(&[]);
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut options = File::options();
    let mut reader = options.read(true).write(true).open(&path).unwrap();
    write(&path, "text").unwrap();
    let mut read = [0; 4];
    io::Read::read_exact(&mut reader, &mut read).unwrap();
    assert_eq!(&read, b"text");
    assert!(path.symlink_metadata().unwrap().file_type().is_fifo());
}

#[test]
fn a_file_that_must_be_new_takes_no_place() {
    let folder = folder_with(&[]);
    let path = folder.path().join("known.yaml");
    let draft = Draft::open_new("expectation file", &path).unwrap();
    fs::write(&path, "precious").unwrap();
    draft.complete(|out| out.write_all(b"new")).unwrap_err();
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert!(Draft::open_new("expectation file", &path).is_err());
    assert_eq!(names(&folder), ["known.yaml"]);
}

#[test]
fn what_cannot_be_written_leaves_the_older_file_and_no_draft() {
    let folder = folder_with(&[("report", "older")]);
    let path = folder.path().join("report");
    let draft = Draft::open("report", &path).unwrap();
    let failed = draft.complete(|out| {
        out.write_all(b"half")?;
        Err(io::Error::other("the disk is full"))
    });
    assert!(failed.unwrap_err().to_string().contains("the disk is full"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    assert_eq!(names(&folder), ["report"]);
}

#[test]
fn a_draft_of_a_dead_run_is_removed_and_a_living_ones_stays() {
    let (dead, other) = ("report.0123456789ab.part", "other.0123456789ab.part");
    let foreign = ["report.1.part", "report.0123456789_b.part", "report.part"];
    let files = [dead, other].into_iter().chain(foreign);
    let files: Vec<_> = files.map(|name| (name, "")).collect();
    let folder = folder_with(&files);
    let path = folder.path().join("report");
    let living = Draft::open("report", &path).unwrap();
    let second = Draft::open("report", &path).unwrap();
    let found = names(&folder);
    assert!(!found.contains(&dead.to_owned()), "{found:?}");
    assert!(found.contains(&other.to_owned()), "{found:?}");
    assert!(
        foreign
            .iter()
            .all(|name| found.contains(&(*name).to_owned()))
    );
    for draft in [living, second] {
        draft.complete(|out| out.write_all(b"x")).unwrap();
    }
}

#[test]
fn a_link_with_the_name_of_a_draft_is_left_alone() {
    let folder = folder_with(&[("victim", "precious")]);
    let link = folder.path().join("report.0123456789ab.part");
    symlink(folder.path().join("victim"), &link).unwrap();
    write(&folder.path().join("report"), "new").unwrap();
    assert_eq!(
        names(&folder),
        ["report", "report.0123456789ab.part", "victim"]
    );
}

#[test]
fn one_place_takes_one_thing() {
    let folder = folder_with(&[]);
    let path = folder.path().join("x");
    let draft = Draft::open("JSON report", &path).unwrap();
    let again = folder.path().join("./x");
    let refused = draft.differs_from("JUnit report", &again).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("the JUnit report has the same path")
    );
    draft
        .differs_from("history", &folder.path().join("y"))
        .unwrap();
}
