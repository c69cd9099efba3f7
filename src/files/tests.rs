//! Files under attack: links, drafts of other users, exchanged directories.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

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
            let mut output = draft.begin().unwrap();
            output.write_all(b"new").unwrap();
            output.to_disk().unwrap();
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
    let (dead, other) = (
        "report.0123456789abcdef0123456789abcdef.part",
        "other.0123456789abcdef0123456789abcdef.part",
    );
    let foreign = [
        "report.1.part",
        "report.0123456789_bcdef0123456789abcdef.part",
        "report.part",
    ];
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
    let link = folder
        .path()
        .join("report.0123456789abcdef0123456789abcdef.part");
    symlink(folder.path().join("victim"), &link).unwrap();
    write(&folder.path().join("report"), "new").unwrap();
    assert_eq!(
        names(&folder),
        [
            "report",
            "report.0123456789abcdef0123456789abcdef.part",
            "victim"
        ]
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

#[test]
fn a_pipe_without_a_reader_is_refused_at_once() {
    let folder = folder_with(&[]);
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let refused = write(&path, "x").unwrap_err().to_string();
    assert!(refused.contains("without a reader"), "{refused}");
    let refused = open(&path).unwrap_err().to_string();
    assert!(refused.contains("not a regular file"), "{refused}");
}

/// A user other than that of the tests, unless they are run as this one.
pub(crate) const STRANGER: u32 = 65_534;

#[expect(clippy::print_stderr, reason = "it is a test's reason for passing")]
pub(crate) fn without_another_user(why: &dyn std::fmt::Debug) {
    eprintln!("not tested with another user, as this is not root: {why:?}");
}

/// Gives a file to another user. Returns false, with a note, if that is not permitted: it needs
/// root, and in a user namespace that it knows the other user.
pub(crate) fn give_away(path: &Path) -> bool {
    let given = std::os::unix::fs::lchown(path, Some(STRANGER), Some(STRANGER));
    let is_given = geteuid().as_raw() != STRANGER && given.is_ok();
    if !is_given {
        without_another_user(&given);
    }
    is_given
}

#[test]
fn a_pipe_of_another_user_gets_nothing() {
    let folder = folder_with(&[]);
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    if !give_away(&path) {
        return;
    }
    let mut options = File::options();
    let _reader = options.read(true).write(true).open(&path).unwrap();
    let refused = write(&path, "x").unwrap_err().to_string();
    assert!(refused.contains("a pipe of user 65534"), "{refused}");
}

#[test]
fn a_link_of_another_user_leads_nowhere() {
    let folder = folder_with(&[("victim", "precious")]);
    let (file, inside) = (folder.path().join("file"), folder.path().join("folder"));
    symlink(folder.path().join("victim"), &file).unwrap();
    symlink(folder.path(), &inside).unwrap();
    assert!(open(&file).is_ok() && Folder::open(&inside).is_ok());
    if !(give_away(&file) && give_away(&inside)) {
        return;
    }
    for path in [file, inside.join("victim"), inside.join("new")] {
        let refused = open(&path).unwrap_err().to_string();
        assert!(refused.contains("a link of user 65534"), "{refused}");
    }
    let refused = write(&inside.join("new"), "x").unwrap_err().to_string();
    assert!(refused.contains("a link of user 65534"), "{refused}");
    assert_eq!(names(&folder), ["file", "folder", "victim"]);
}

/// Another user repeatedly replaces the directory of a report by a link to one of root's: in any
/// order, nothing appears behind the link.
#[test]
fn an_exchanged_directory_never_leads_elsewhere() {
    const ATTEMPTS: usize = 300;
    let victim = folder_with(&[("report", "precious")]);
    let folder = folder_with(&[]);
    let [place, link] = ["place", "link"].map(|name| folder.path().join(name));
    fs::create_dir(&place).unwrap();
    symlink(victim.path(), &link).unwrap();
    if !(give_away(&place) && give_away(&link) && give_away(folder.path())) {
        return;
    }
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                let exchange = RenameFlags::EXCHANGE;
                renameat_with(CWD, &place, CWD, &link, exchange).unwrap();
            }
        });
        for _ in 0..ATTEMPTS {
            // It fails where the link is met.
            let _ = write(&place.join("report"), "new");
            if let Ok(mut file) = open(&place.join("report")) {
                let mut text = String::new();
                io::Read::read_to_string(&mut file, &mut text).unwrap();
                assert_eq!(text, "new");
            }
        }
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(names(&victim), ["report"]);
    let kept = fs::read_to_string(victim.path().join("report")).unwrap();
    assert_eq!(kept, "precious");
    if place.is_symlink() {
        renameat_with(CWD, &place, CWD, &link, RenameFlags::EXCHANGE).unwrap();
    }
    write(&place.join("report"), "new").unwrap();
}

#[test]
fn a_directory_is_safe_unless_others_can_exchange_it() {
    let folder = folder_with(&[]);
    fs::create_dir_all(folder.path().join("open/own")).unwrap();
    let is_safe = |name: &str| Folder::open(&folder.path().join(name)).unwrap().is_safe();
    assert!(is_safe("open/own"));
    let mode = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(folder.path().join("open"), mode(0o777)).unwrap();
    assert!(!is_safe("open/own"));
    fs::set_permissions(folder.path().join("open"), mode(0o1777)).unwrap();
    assert!(is_safe("open/own"));
    fs::set_permissions(folder.path().join("open"), mode(0o775)).unwrap();
    let give_to_group = |group| {
        let given = std::os::unix::fs::chown(folder.path().join("open"), None, Some(group));
        geteuid().is_root() && given.is_ok()
    };
    if give_to_group(4) {
        assert!(is_safe("open/own"));
        assert!(give_to_group(1000) && !is_safe("open/own"));
    }
    if give_away(&folder.path().join("open")) {
        assert!(!is_safe("open/own"));
    }
}

#[test]
fn a_path_inside_a_directory_never_leaves_it() {
    let folder = folder_with(&[("outside", "secret")]);
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/file"), "inside").unwrap();
    symlink("/etc/file", root.join("absolute")).unwrap();
    symlink("../../../../outside", root.join("etc/up")).unwrap();
    symlink("/etc/../../outside", root.join("up")).unwrap();
    let root = Folder::open(&root).unwrap();
    let read = |path: &str| {
        let file = root.read_inside(Path::new(path))?;
        Ok::<_, io::Error>(String::from_utf8(read_all(file, 100)?).unwrap())
    };
    assert_eq!(read("/absolute").unwrap(), "inside");
    assert_eq!(read("../../etc/file").unwrap(), "inside");
    for path in ["/etc/up", "/up", "../outside"] {
        assert_eq!(
            read(path).unwrap_err().kind(),
            io::ErrorKind::NotFound,
            "{path}"
        );
    }
}

#[test]
fn a_directory_that_several_threads_create_at_once_is_there_for_each() {
    let folder = tempdir().unwrap();
    for round in 0..100 {
        let path = folder.path().join(format!("{round}/new"));
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            let makes = || {
                barrier.wait();
                create_directory("cases", &path)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(makes)).collect();
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
    }
}
