//! Files given by the user: reports, cases, expectations, histories. Errors are reported before the
//! run, and no file is left.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::suite::{Ended, shut_out, suite, unprivileged};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/bad-cases")
        .join(name);
    path.to_str().unwrap().to_owned()
}

/// The entries of a directory.
fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A run with a report at this path, at a missing runtime.
fn report_to(option: &str, path: &str) -> Ended {
    suite(["ORD-01", "-r", "/no/such/socket", option, path]).run()
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_runtime_is_looked_for() {
    for (option, what) in [
        ("--junit", "JUnit report"),
        ("--json", "JSON report"),
        ("--history", "history"),
    ] {
        report_to(option, "/no/such/folder/x")
            .fails(2, &[what, "/no/such/folder/x", "No such file"]);
        report_to(option, "/").fails(2, &[what, "to /:", "directory"]);
        report_to(option, "").fails(2, &[]);
    }
}

#[test]
fn a_report_in_a_folder_that_is_not_ours_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("read-only");
    fs::create_dir(&inner).unwrap();
    let mut mode = fs::metadata(&inner).unwrap().permissions();
    mode.set_readonly(true);
    fs::set_permissions(&inner, mode).unwrap();
    for option in ["--junit", "--json", "--history"] {
        let path = inner.join("report");
        unprivileged([
            "ORD-01",
            "-r",
            "/no/such/socket",
            option,
            path.to_str().unwrap(),
        ])
        .run()
        .fails(2, &[path.to_str().unwrap(), "Permission denied"]);
    }
}

#[test]
fn absolute_paths_do_not_need_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    let mode = fs::metadata(&closed).unwrap().permissions();
    let report = folder.path().join("r.json");
    let report = ["--json", report.to_str().unwrap()];
    let all = ["ORD-01", "-r", "/no/such/socket"].into_iter();
    shut_out(&closed, all.chain(report))
        .run()
        .fails(3, &["no socket"]);
    assert_eq!(names(&folder), ["closed", "r.json"]);
    fs::set_permissions(&closed, mode).unwrap();
}

#[test]
fn a_run_that_cannot_begin_leaves_its_reports_and_a_wrong_command_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["--junit", "j.xml", "--json", "r.json", "--history", "h"];
    let all = ["ORD-01", "-r", "/no/such/socket"].into_iter().chain(files);
    suite(all)
        .inside(folder.path())
        .run()
        .fails(3, &["no socket"]);
    assert_eq!(names(&folder), ["j.xml", "r.json"]);
    for name in names(&folder) {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    for (last, path) in [("--junit", "/"), ("--json", "/"), ("--history", "/")] {
        let others = files.chunks(2).filter(|pair| pair[0] != last).flatten();
        let args = ["ORD-01", "-r", "/no/such/socket", last, path]
            .into_iter()
            .chain(others.copied());
        suite(args)
            .inside(folder.path())
            .run()
            .fails(2, &["directory"]);
        assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    }
}

#[test]
fn a_wrong_command_leaves_older_files_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["j.xml", "r.json", "h"] {
        fs::write(folder.path().join(name), "older").unwrap();
    }
    let files = ["--junit", "j.xml", "--json", "r.json", "--history", "h"];
    let wrong = ["ORD-01", "-r", "/no/such/socket", "--markdown", "/"];
    suite(wrong.into_iter().chain(files))
        .inside(folder.path())
        .run()
        .fails(2, &["directory"]);
    assert_eq!(names(&folder), ["h", "j.xml", "r.json"]);
    for name in names(&folder) {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(text, "older");
    }
}

#[test]
fn a_wrong_case_is_reported_with_its_line_and_a_way_to_mend_it() {
    for (file, message) in [
        (
            "typo-in-a-step.yaml",
            &[
                "`cuntainer`",
                ".yaml:9:13",
                "^^^^^^^^^",
                "did you mean `container`?",
            ][..],
        ),
        (
            "unknown-key.yaml",
            &["`flavour`", ".yaml:6:1", "^^^^^^^", "expected one of"],
        ),
        ("wrong-type.yaml", &["found the text", ".yaml:7:14", "^^^"]),
        (
            "undefined-container.yaml",
            &["`cc`", ".yaml:9:24", "^^", "did you mean `c`?"],
        ),
        ("two-documents.yaml", &["error:"]),
        ("empty.yaml", &["error:"]),
    ] {
        let path = fixture(file);
        let message: Vec<_> = message.iter().copied().chain([path.as_str()]).collect();
        suite(["--list", "--cases", &path]).run().fails(2, &message);
        let ended = suite(["--cases", &path, "-r", "/no/such/socket"]).run();
        assert_eq!(ended.fails(2, &message).out, "");
    }
}

#[test]
fn all_wrong_cases_of_a_folder_are_reported_at_once() {
    let folder = fixture("several-files");
    let ended = suite(["--list", "--cases", &folder]).run().fails(2, &[]);
    assert!(ended.err.matches("error:").count() > 1, "{ended:#?}");
}

#[test]
fn what_is_no_case_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.yaml");
    fs::File::create(&large)
        .unwrap()
        .set_len(10_000_000)
        .unwrap();
    let binary = folder.path().join("binary.yaml");
    fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for (path, message) in [
        (large, "larger than 64 KiB"),
        (binary, "error:"),
        (empty, "no `.yaml` file"),
        (PathBuf::from("/no/such/cases"), "No such file"),
        (PathBuf::from("/dev/zero"), "not a regular file"),
    ] {
        let path = path.to_str().unwrap();
        suite(["--list", "--cases", path])
            .run()
            .fails(2, &[message, path]);
    }
}

#[test]
fn a_wrong_expectation_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known.yaml");
    let known = |entry: &str| format!("runtime: containerd\nknown:\n{entry}");
    for (text, message) in [
        (String::new(), "missing key `runtime`"),
        ("known: yes\n".to_owned(), "known.yaml:1:8"),
        (known("  - {case: ORD-01, reason: r}\n"), "link"),
        (
            known("  - {case: ORD-01, reason: r, link: l, color: c}\n"),
            "color",
        ),
        (
            known("  - {case: ORD-99, reason: r, link: l}\n"),
            "`ORD-99`",
        ),
        (
            known("  - {case: INV-01, reason: r, link: l, in: [ORD-99]}\n"),
            "`ORD-99`",
        ),
        (
            known(
                "  - {case: ORD-01, reason: r, link: l}\n  - {case: ORD-01, reason: q, link: l}\n",
            ),
            "`ORD-01` is listed twice",
        ),
        ("#".repeat(2 << 20), "1 MiB"),
    ] {
        fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        suite(["ORD-01", "-r", "/no/such/socket", "--expectations", path])
            .run()
            .fails(2, &["error: ", path, message]);
    }
    let missing = ["-r", "/no/such/socket", "--expectations", "/no/such/file"];
    suite(missing)
        .run()
        .fails(2, &["/no/such/file", "No such file"]);
}

#[test]
fn what_is_no_history_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let show = |path: &Path| suite([Path::new("show"), path]).run();
    let missing = folder.path().join("missing");
    show(&missing).fails(2, &[missing.to_str().unwrap(), "No such file"]);
    show(folder.path()).fails(2, &["directory"]);
    show(Path::new("/dev/zero")).fails(2, &["/dev/zero", "not a regular file"]);
    let file = folder.path().join("file");
    fs::write(&file, vec![0; 1 << 16]).unwrap();
    show(&file).fails(2, &["does not begin as a history"]);
    fs::write(&file, "").unwrap();
    show(&file).fails(2, &[file.to_str().unwrap(), "empty"]);
    let passwd = show(Path::new("/etc/passwd")).fails(2, &["this is no history"]);
    assert!(
        !passwd.err.contains("entry #") && !passwd.err.contains("byte"),
        "{passwd:#?}"
    );
    for foreign in [
        &b"<?xml version=\"1.0\"?>"[..],
        &[0xff; 64],
        &[0],
        b"\x0a\xff\xff\xff\xff\x0f",
    ] {
        fs::write(&file, foreign).unwrap();
        let ended = show(&file).fails(2, &[file.to_str().unwrap()]);
        assert_eq!(ended.out, "");
    }
}

#[test]
fn a_history_that_was_cut_off_is_shown_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    let run = ["ORD-01", "-r", "model", "--history"];
    let ended = suite(run.iter().copied().chain([path.to_str().unwrap()])).run();
    assert_eq!(ended.code, 0, "{ended:#?}");
    let show = || suite([Path::new("show"), &path]);
    let whole = show().run().succeeds();
    assert!(whole.contains("RunPodSandbox"), "{whole}");
    show().run_unread().succeeds();
    show().run_for_a_line().succeeds();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cut = show().run().fails(2, &["within a frame", "is whole"]);
    assert!(whole.starts_with(&cut.out) && !cut.out.is_empty());
}

#[test]
fn a_history_becomes_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (history, trace) = (folder.path().join("history"), folder.path().join("trace"));
    let run = ["ORD-01", "-r", "model", "--history"];
    let ended = suite(run.iter().copied().chain([history.to_str().unwrap()])).run();
    assert_eq!(ended.code, 0, "{ended:#?}");
    let show = |to: &Path| suite([Path::new("show"), &history, Path::new("--perfetto"), to]).run();
    let out = show(&trace).succeeds();
    assert_eq!(out, format!("Perfetto trace: {}\n", trace.display()));
    let whole = fs::read(&trace).unwrap();
    let holds = |text: &[u8]| whole.windows(text.len()).any(|part| part == text);
    assert!(holds(b"RunPodSandbox") && holds(b"events, stream 0"));
    let part = folder.path().join("part");
    let of_case = |id: &str| {
        let [history, part] = [&history, &part].map(|path| path.to_str().unwrap());
        suite(["show", history, id, "--perfetto", part]).run()
    };
    of_case("ORD-01").succeeds();
    let length = fs::read(&part).unwrap().len();
    assert!(length > 1_000 && length < whole.len(), "{length} bytes");
    of_case("ORD-02").fails(4, &["no case matches `ORD-02` in "]);
    let bytes = fs::read(&history).unwrap();
    show(&history).fails(2, &["would overwrite", history.to_str().unwrap()]);
    assert_eq!(fs::read(&history).unwrap(), bytes, "it must stay as it is");
    fs::write(&history, &bytes[..bytes.len() - 1]).unwrap();
    show(&trace).fails(2, &["within a frame"]);
    let cut = fs::read(&trace).unwrap();
    assert!(!cut.is_empty() && cut.len() < whole.len());
}
