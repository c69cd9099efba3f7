//! Console output of a run: a line for each case as it ends, then the failures in detail. The
//! summary with the counts belongs to the report.
//!
//! libtest-mimic runs the trials. Its own output has only `ok`, `FAILED` and `ignored`, and would
//! print an undecided case as FAILED; so it prints to `/dev/null`, and this module prints instead:
//! lines of text, one character for each outcome, or libtest's JSON events, one per line. There an
//! outcome other than pass and fail is `ignored`, with a `message`; `verdict` is the verdict as in
//! the suite's reports.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstyle::{AnsiColor, Style};
use libtest_mimic::{Arguments, FormatSetting};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{Format, Look};
use crate::escape::printable_json;
use crate::history::HostInstant;
use crate::outcome::{Level, Outcome, Verdict};
use crate::plan::label;
use crate::report::{cause, counted, cut, failure, failures, github, has_details};
use crate::{host, terminal};

/// The maximum length of a reason, in characters.
const REASON: usize = 500;
/// The width of a line if the output is not a terminal.
pub(super) const COLUMNS: usize = 100;
/// The minimum length of a reason, in characters. A narrower terminal shows none.
const SHORTEST_REASON: usize = 10;
/// The minimum length of a name, in characters: of an id such as `SNP-06b`.
const SHORTEST_NAME: usize = 7;
/// The columns of a line without its name, its verdict and the rest.
const AROUND: usize = "test  ... ".len();
/// The columns that most lines need besides the name.
const REST: usize = "test  ... FAILED (100.0 s)".len();

pub(super) struct OutputLost(pub(super) io::Error);

/// How results are printed, and the number of parallel trials.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConsoleOptions {
    pub(super) look: Look,
    pub(super) threads: usize,
}

/// A case or an invariant: its name, and the function that produces its outcome.
pub(super) struct Trial {
    name: String,
    is_case: bool,
    run: Box<dyn FnOnce() -> Outcome + Send>,
}

/// Renders outcomes as they arrive.
trait Renderer: Send {
    fn begin(&mut self, cases: usize, invariants: usize) -> String;
    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String;
    fn end(&mut self) -> String;
}

/// The renderer, and the first write error, which stops the output.
struct Printer {
    by: Box<dyn Renderer>,
    lost: Option<io::Error>,
}

impl Trial {
    pub(super) fn case(name: String, run: impl FnOnce() -> Outcome + Send + 'static) -> Self {
        Self {
            name,
            is_case: true,
            run: Box::new(run),
        }
    }

    pub(super) fn invariant(name: String, run: impl FnOnce() -> Outcome + Send + 'static) -> Self {
        Self {
            is_case: false,
            ..Self::case(name, run)
        }
    }
}

/// Renders outcomes as another renderer does, but so that GitHub interprets no line as a command.
struct WithoutCommands<T> {
    lines: T,
    token: String,
}

impl<T: Renderer> WithoutCommands<T> {
    pub(super) fn new(lines: T) -> Self {
        let token = uuid::Uuid::new_v4().to_string();
        Self { lines, token }
    }
}

impl<T: Renderer> Renderer for WithoutCommands<T> {
    fn begin(&mut self, cases: usize, invariants: usize) -> String {
        github::stop(&self.token) + &self.lines.begin(cases, invariants)
    }

    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String {
        self.lines.outcome(name, outcome)
    }

    fn end(&mut self) -> String {
        self.lines.end() + &github::resume(&self.token)
    }
}

/// Renders outcomes as JSON events, and counts them.
pub(super) struct Events {
    began: HostInstant,
    passed: usize,
    failed: usize,
    ignored: usize,
    undecided: usize,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Suite(Suite),
    Test(Test<'a>),
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Suite {
    Started { test_count: usize },
    Ok(Counts),
    Failed(Counts),
}

#[derive(Serialize)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// The number of ignored cases that could not be decided.
    undecided: usize,
    measured: usize,
    filtered_out: usize,
    exec_time: f64,
}

#[derive(Serialize)]
struct Test<'a> {
    name: &'a str,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Events {
    pub(super) fn new() -> Self {
        Self {
            began: host::now(),
            passed: 0,
            failed: 0,
            ignored: 0,
            undecided: 0,
        }
    }
}

impl Renderer for Events {
    fn begin(&mut self, cases: usize, invariants: usize) -> String {
        let test_count = cases + invariants;
        line(&Line::Suite(Suite::Started { test_count }))
    }

    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String {
        let started = line(&Line::Test(Test {
            name,
            event: "started",
            verdict: None,
            exec_time: None,
            stdout: None,
            message: None,
        }));
        let (event, count) = match outcome.verdict {
            Verdict::Pass => ("ok", &mut self.passed),
            Verdict::Fail | Verdict::UnexpectedPass => ("failed", &mut self.failed),
            Verdict::Known | Verdict::Error | Verdict::Skip | Verdict::Inconclusive => {
                ("ignored", &mut self.ignored)
            }
        };
        *count += 1;
        if outcome.verdict == Verdict::Error {
            self.undecided += 1;
        }
        let reason = outcome.reason.as_deref().unwrap_or_default();
        let ended = line(&Line::Test(Test {
            name,
            event,
            verdict: Some(outcome.verdict),
            exec_time: Some(outcome.duration.as_secs_f64()),
            stdout: (event == "failed").then(|| failure(outcome)),
            message: (event == "ignored").then(|| cut(reason, REASON)),
        }));
        started + &ended
    }

    fn end(&mut self) -> String {
        let counts = Counts {
            passed: self.passed,
            failed: self.failed,
            ignored: self.ignored,
            undecided: self.undecided,
            measured: 0,
            filtered_out: 0,
            exec_time: host::elapsed(self.began).as_secs_f64(),
        };
        let all_decided = self.failed + self.undecided == 0;
        line(&Line::Suite(if all_decided {
            Suite::Ok(counts)
        } else {
            Suite::Failed(counts)
        }))
    }
}

/// Renders outcomes as lines, and collects the texts to print at the end.
pub(super) struct Lines {
    look: Look,
    widest: usize,
    columns: usize,
    is_terminal: bool,
    /// Skipped and undecided cases with the same reason as an earlier one.
    repeated: BTreeMap<(&'static str, String), Repeated>,
    /// The number of invariants that hold, without advice. They share a line.
    hold: usize,
    failures: Vec<Outcome>,
}

/// A reason that is printed only once.
struct Repeated {
    /// The case with which it was printed.
    first: String,
    again: usize,
}

impl Lines {
    /// `widest` is the width of the longest name, `columns` that of the terminal, if there is one.
    pub(super) fn new(look: Look, widest: usize, columns: Option<usize>) -> Self {
        let room = columns.map(|columns| columns.saturating_sub(REST).max(SHORTEST_NAME));
        Self {
            look,
            widest: room.map_or(widest, |room| room.min(widest)),
            columns: columns.unwrap_or(COLUMNS),
            is_terminal: columns.is_some(),
            repeated: BTreeMap::new(),
            hold: 0,
            failures: Vec::new(),
        }
    }

    fn is_terse(&self) -> bool {
        self.look.format == Format::Terse
    }

    fn line(&mut self, text: &mut String, name: &str, outcome: &Outcome) -> fmt::Result {
        let word = word(outcome);
        if let (Verdict::Skip | Verdict::Error, Some(reason)) = (outcome.verdict, &outcome.reason) {
            let key = (word, reason.clone());
            if let Some(known) = self.repeated.get_mut(&key) {
                known.again += 1;
                return Ok(());
            }
            let first = outcome.id.to_string();
            self.repeated.insert(key, Repeated { first, again: 0 });
        }
        let mut took = String::new();
        if !outcome.is_invariant() && outcome.verdict != Verdict::Skip {
            took = format!(" ({:.1} s)", outcome.duration.as_secs_f64());
        }
        let (mut name, mut width) = (Cow::Borrowed(name), self.widest);
        if self.is_terminal {
            let room = self.columns.saturating_sub(AROUND + word.len());
            let id = name.split(' ').next().unwrap_or_default();
            let of_id = id.chars().count();
            if room < took.len() + of_id {
                took.clear();
            }
            width = width.min(room - took.len().min(room)).max(of_id);
            name = cut(if of_id < width { &name } else { id }, width).into();
        }
        let style = style(outcome.verdict);
        write!(text, "test {name:width$} ... {style}{word}{style:#}{took}")?;
        let column = AROUND + width.max(name.chars().count()) + word.len() + took.len();
        let left = self.columns.saturating_sub(column + ": ".len());
        if let Some(reason) = self.reason(outcome)
            && (left >= SHORTEST_REASON || !self.is_terminal)
        {
            write!(text, ": {}", cut(&reason, left.max(SHORTEST_REASON)))?;
        }
        writeln!(text)
    }

    /// The reason in the line. That of a failure is printed at the end with its evidence, but on a
    /// terminal at once, too.
    fn reason<'a>(&self, outcome: &'a Outcome) -> Option<Cow<'a, str>> {
        match outcome.verdict {
            Verdict::Fail if self.is_terminal => Some(cause(outcome).into()),
            Verdict::Pass | Verdict::Fail => None,
            Verdict::Known
            | Verdict::UnexpectedPass
            | Verdict::Error
            | Verdict::Skip
            | Verdict::Inconclusive => outcome.reason.as_deref().map(Cow::Borrowed),
        }
    }
}

impl Renderer for Lines {
    fn begin(&mut self, cases: usize, invariants: usize) -> String {
        let cases = counted(cases, "case", "cases");
        let invariants = counted(invariants, "invariant", "invariants");
        format!("\n{cases}, judged also by {invariants}\n")
    }

    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String {
        if has_details(outcome) {
            self.failures.push(outcome.clone());
        }
        if self.is_terse() {
            let style = style(outcome.verdict);
            return format!("{style}{}{style:#}", letter(outcome.verdict));
        }
        let is_open = outcome.verdict == Verdict::Error || has_details(outcome);
        if self.look.quiet && !is_open {
            return String::new();
        }
        let holds = outcome.verdict == Verdict::Pass && outcome.advice.is_empty();
        if outcome.is_invariant() && holds && !self.look.verbose {
            self.hold += 1;
            return String::new();
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.line(&mut text, name, outcome);
        text
    }

    fn end(&mut self) -> String {
        let mut text = String::new();
        if self.is_terse() {
            text.push('\n');
        }
        if self.hold > 0 {
            let hold = counted(self.hold, "invariant", "invariants");
            let _ = writeln!(text, "     {hold} ok");
        }
        for ((word, _), Repeated { first, again }) in &self.repeated {
            if *again > 0 {
                let more = format!("     {again} more {word} for the same reason as {first}\n");
                text.push_str(&more);
            }
        }
        text.push_str(&failures(&self.failures, self.look.verbose, self.columns));
        text.push('\n');
        text
    }
}

/// The name of a case or an invariant in the output.
pub(super) fn name(id: &str, name: &str, repetition: Option<u32>) -> String {
    match repetition {
        Some(repetition) => format!("{}#{repetition}", label(id, name)),
        None => label(id, name),
    }
}

/// Runs the trials and prints a line for each as it ends. A write error stops the run. Fails if the
/// output cannot be written to, after the cases in progress have ended.
pub(super) fn present(
    options: ConsoleOptions,
    trials: Vec<Trial>,
    stop: &CancellationToken,
) -> Result<(), OutputLost> {
    let look = options.look;
    let by: Box<dyn Renderer> = match look.format {
        Format::Json => Box::new(Events::new()),
        Format::Pretty | Format::Terse | Format::Github => {
            let widest = trials.iter().map(|trial| trial.name.chars().count()).max();
            let lines = Lines::new(look, widest.unwrap_or(0), terminal::columns());
            if look.format == Format::Github {
                Box::new(WithoutCommands::new(lines))
            } else {
                Box::new(lines)
            }
        }
    };
    let printer = Arc::new(Mutex::new(Printer { by, lost: None }));
    let cases = trials.iter().filter(|trial| trial.is_case).count();
    let invariants = trials.len() - cases;
    say(&printer, stop, |by| by.begin(cases, invariants));
    let trials = trials.into_iter().map(|trial| {
        let (printer, stop) = (printer.clone(), stop.clone());
        libtest_mimic::Trial::test(trial.name.clone(), move || {
            let outcome = (trial.run)();
            say(&printer, &stop, |by| by.outcome(&trial.name, &outcome));
            Ok(())
        })
    });
    // Its counts are meaningless: to libtest-mimic, no trial fails.
    let _ = libtest_mimic::run(&arguments(options.threads), trials.collect());
    say(&printer, stop, |by| by.end());
    let lost = lock(&printer).lost.take();
    lost.map_or(Ok(()), |fault| Err(OutputLost(fault)))
}

/// With a single thread, libtest-mimic starts none, and runs the trials in order.
fn arguments(threads: usize) -> Arguments {
    Arguments {
        test_threads: Some(threads),
        format: Some(FormatSetting::Terse),
        logfile: Some("/dev/null".to_owned()),
        ..Arguments::default()
    }
}

/// Prints a text, unless an earlier write has failed.
fn say(
    printer: &Mutex<Printer>,
    stop: &CancellationToken,
    what: impl FnOnce(&mut dyn Renderer) -> String,
) {
    let mut printer = lock(printer);
    let text = what(&mut *printer.by);
    if printer.lost.is_none()
        && let Err(fault) = terminal::print_styled(&text)
    {
        printer.lost = Some(fault);
        stop.cancel();
    }
}

fn lock(printer: &Mutex<Printer>) -> MutexGuard<'_, Printer> {
    printer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(line: &Line<'_>) -> String {
    let text = serde_json::to_string(line).expect("it has no keys but texts");
    format!("{}\n", printable_json(&text))
}

fn word(outcome: &Outcome) -> &'static str {
    let mut advice = outcome.advice.iter();
    match outcome.verdict {
        Verdict::Pass if advice.any(|advice| advice.level == Level::Should) => {
            "ok, but breaks a SHOULD"
        }
        Verdict::Pass if !outcome.advice.is_empty() => "ok, with advice",
        Verdict::Pass => "ok",
        Verdict::Fail => "FAILED",
        Verdict::Known => "known to fail",
        Verdict::UnexpectedPass => "UNEXPECTEDLY PASSED",
        Verdict::Error => "undecided",
        Verdict::Skip => "skipped",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn letter(verdict: Verdict) -> char {
    match verdict {
        Verdict::Pass => '.',
        Verdict::Fail => 'F',
        Verdict::Known => 'k',
        Verdict::UnexpectedPass => 'P',
        Verdict::Error => 'u',
        Verdict::Skip => 's',
        Verdict::Inconclusive => 'i',
    }
}

fn style(verdict: Verdict) -> Style {
    let color = match verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::Fail | Verdict::UnexpectedPass => AnsiColor::Red,
        Verdict::Known | Verdict::Error | Verdict::Skip | Verdict::Inconclusive => {
            AnsiColor::Yellow
        }
    };
    color.on_default()
}
