//! The terminal during and after a run.

use crate::model::Served;
use crate::pty::on_terminal;
use crate::suite::suite;

/// A case that waits for some seconds; others take no time.
const SLOW: &str = "STP-02";
const QUICK: &str = "ORD-";
const CTRL_C: u8 = 3;

/// Whether the progress of a run is shown.
fn is_under_way(screen: &str) -> bool {
    screen.lines().any(is_summary) && screen.contains("  STP-02 ")
}

fn is_summary(line: &str) -> bool {
    let count = line.split_once(" done").map(|(count, _)| count);
    count.is_some_and(|count| count.contains('/') && !count.contains(' '))
}

#[test]
fn a_run_shows_its_progress_and_leaves_nothing_of_it() {
    for columns in [40, 80, 200] {
        let model = Served::start();
        let args = ["-r", &model.endpoint(), SLOW, QUICK];
        let mut run = on_terminal(columns, &[], args);
        run.wait_for("progress", is_under_way);
        assert_eq!(run.end(), 0, "{}", run.contents());
        let screen = run.contents();
        let rest = screen
            .lines()
            .find(|line| is_summary(line) || line.starts_with("  STP-"));
        assert_eq!(rest, None, "{screen}");
        assert!(
            screen.contains("exit code 0: no MUST is broken"),
            "{screen}"
        );
        assert!(!run.screen.screen().hide_cursor());
    }
}

#[test]
fn an_interrupted_run_leaves_the_terminal_as_it_was() {
    let model = Served::start();
    let mut run = on_terminal(80, &[], ["-r", &model.endpoint(), SLOW]);
    run.wait_for("progress", is_under_way);
    run.press(CTRL_C);
    assert_eq!(run.end(), 3, "{}", run.contents());
    let screen = run.contents();
    let said = b"SIGINT: stopping and cleaning up";
    let mut parts = run.written.windows(said.len());
    assert!(parts.any(|part| part == said), "{screen}");
    assert!(!screen.lines().any(is_summary), "{screen}");
    assert!(!run.screen.screen().hide_cursor());
}

#[test]
fn an_earlier_report_tells_how_long_a_run_may_take() {
    let (model, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let endpoint = model.endpoint();
    let report = folder.path().join("report.json");
    let args = ["-r", &endpoint, SLOW, "--json", report.to_str().unwrap()];
    let mut first = on_terminal(80, &[], args);
    first.wait_for("progress", is_under_way);
    assert!(!first.contents().contains(" left"), "{}", first.contents());
    assert_eq!(first.end(), 0, "{}", first.contents());
    let mut second = on_terminal(80, &[], args);
    second.wait_for("estimate", |screen| {
        screen.contains("0/1 done, about 10 s left")
    });
    assert_eq!(second.end(), 0, "{}", second.contents());
}

#[test]
fn colours_can_be_had_or_not() {
    let coloured = |env: &[(&str, &str)], color: &str| {
        let model = Served::start();
        let args = ["-r", &model.endpoint(), "ORD-01", "--color", color];
        let mut run = on_terminal(80, env, args);
        assert_eq!(run.end(), 0, "{}", run.contents());
        run.written.windows(5).any(|bytes| bytes == b"\x1b[32m")
    };
    assert!(coloured(&[], "auto"));
    assert!(!coloured(&[], "never"));
    assert!(!coloured(&[("NO_COLOR", "1")], "auto"));
    assert!(!coloured(&[("TERM", "dumb")], "auto"));
}

#[test]
fn a_watch_shows_a_table_of_pods_and_leaves_nothing_of_it() {
    let is_header = |line: &str| line.starts_with(" POD ");
    for columns in [40, 80, 200] {
        let model = Served::start();
        let endpoint = model.endpoint();
        let mut watch = on_terminal(columns, &[], ["watch", "-r", &endpoint]);
        watch.wait_for("relist", |screen| {
            let joined = screen.replace(['\n', ' '], "");
            joined.contains("thefirstrelistisdone")
        });
        let run = suite(["-r", &endpoint, SLOW]).start();
        watch.wait_for("table", |screen| {
            let mut lines = screen.lines().skip_while(|line| !is_header(line)).skip(1);
            lines.any(|line| line.starts_with(' ') && line.contains(" ready"))
        });
        assert_eq!(run.end().code, 0);
        watch.press(CTRL_C);
        assert_eq!(watch.end(), 0, "{}", watch.contents());
        let screen = watch.contents();
        assert!(!screen.lines().any(is_header), "{screen}");
        assert!(screen.contains("\nrelists: "), "{screen}");
        assert!(!watch.screen.screen().hide_cursor());
    }
}

/// Lines that are longer than the terminal have one word that is.
/// The lines that could have been wrapped at these columns, and were not. Those before the first
/// case and commands to copy are left to the terminal.
fn long(text: &str, columns: usize) -> Vec<&str> {
    let is_free = |line: &str| {
        ["next: ", "image ", "testing "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let is_long = |line: &&str| {
        let words = line.split_whitespace().map(|word| word.chars().count());
        let has_breaks = words.max().unwrap_or(0) < columns / 2;
        line.chars().count() > columns && has_breaks && !is_free(line)
    };
    text.split(['\r', '\n']).filter(is_long).collect()
}

#[test]
fn lines_of_a_watch_fit_the_terminal() {
    let model = Served::start_with(&["--defect", "repeat-stopped"]);
    let endpoint = model.endpoint();
    for columns in [60, 80] {
        let args = ["watch", "-r", &endpoint, "--for", "4s", "--output", "text"];
        let plain = [("NO_COLOR", "1"), ("TERM", "dumb")];
        let mut watch = on_terminal(columns, &plain, args);
        suite(["-r", &endpoint, "STP-01"]).run().fails(1, &[]);
        assert_eq!(watch.end(), 1, "{}", watch.contents());
        let text = String::from_utf8_lossy(&watch.written);
        assert!(text.contains(" BROKEN "), "{text}");
        let columns = usize::from(columns);
        assert_eq!(long(&text, columns), Vec::<&str>::new(), "{columns}");
    }
}

#[test]
fn a_diagnosis_fits_the_terminal() {
    for columns in [40, 200] {
        let args = ["doctor", "-r", "unix:///there-is/none.sock"];
        let mut doctor = on_terminal(columns, &[("NO_COLOR", "1")], args);
        assert_eq!(doctor.end(), 3, "{}", doctor.contents());
        let text = String::from_utf8_lossy(&doctor.written);
        let columns = usize::from(columns);
        assert_eq!(long(&text, columns), Vec::<&str>::new(), "{columns}");
    }
}

#[test]
fn a_failing_run_fits_the_terminal_in_its_locale() {
    for (columns, locale) in [(40, "C"), (60, ""), (80, "C.UTF-8"), (200, "de_DE.utf8")] {
        let args = ["-r", "model", "--defect", "drop-stopped", "ORD-", "STP-"];
        let mut run = on_terminal(columns, &[("LANG", locale), ("NO_COLOR", "1")], args);
        assert_eq!(run.end(), 1, "{}", run.contents());
        let text = String::from_utf8_lossy(&run.written);
        let is_utf8 = locale.to_lowercase().contains("utf");
        assert_eq!(text.is_ascii(), !is_utf8, "{text}");
        let columns = usize::from(columns);
        assert_eq!(long(&text, columns), Vec::<&str>::new(), "{columns}");
    }
}
