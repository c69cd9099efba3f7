//! All output to standard output and standard error, with control characters escaped: texts from a
//! runtime, a history or a foreign report cannot control the terminal.
//!
//! On a terminal a *status* of some lines can be shown below the output, such as the progress of a
//! run. It is hidden while text is printed, and leaves no trace.
//!
//! Two invariants: a closed output never panics, and one that is not read blocks nothing.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use unicode_width::UnicodeWidthChar;

use crate::escape::{fitted, printable, printable_lines, printable_styled};
use crate::host;
use crate::queue::Queue;

static STATUS: LazyLock<Status> = LazyLock::new(Status::new);

static OUT: LazyLock<Queue> = LazyLock::new(|| {
    if LEAVES_STDOUT.load(Ordering::Relaxed) {
        Queue::begin(io::stderr())
    } else {
        Queue::begin(io::stdout())
    }
});
static ERRORS: LazyLock<Queue> = LazyLock::new(|| Queue::begin(io::stderr()));

/// Whether standard output is an output file.
static LEAVES_STDOUT: AtomicBool = AtomicBool::new(false);

/// Whether the locale has more characters than ASCII.
static IS_UTF8: LazyLock<bool> = LazyLock::new(|| {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let mut set = variables
        .filter_map(env::var_os)
        .filter(|it| !it.is_empty());
    set.next().is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
});

/// The columns by which a line with two ellipses is longer in ASCII.
const LONGER_IN_ASCII: usize = 4;

/// The maximum number of drawings per second: each change of a line redraws the status.
const DRAWINGS: u8 = 200;

#[derive(Clone, Copy, Debug, Default)]
pub struct Output;

#[derive(Clone, Copy, Debug, Default)]
pub struct Errors;

/// Prints all texts to standard error from now on. Called before the first one.
pub fn print_to_errors() {
    LEAVES_STDOUT.store(true, Ordering::Relaxed);
}

/// Prints a text that ends with a line break.
pub fn print(text: &str) -> io::Result<()> {
    print_now(&printable_lines(text))
}

/// Prints a text with colours, which are removed if they are not wanted, on a terminal wrapped.
pub fn print_styled(text: &str) -> io::Result<()> {
    let choice = AutoStream::choice(&io::stdout());
    let text = match columns() {
        Some(columns) => fitted(text, columns, plain).into(),
        None => printable_styled(text),
    };
    print_now(&coloured(&text, choice))
}

/// Prints a text that ends with a line break, on a terminal wrapped.
pub fn print_wrapped(text: &str) -> io::Result<()> {
    match columns() {
        Some(columns) => print(&fitted(&printable_lines(text), columns, plain)),
        None => print(text),
    }
}

/// Prints a message of one or more lines to standard error, on a terminal wrapped.
pub fn say(text: &str) {
    let text = for_errors(&printable_lines(text));
    let _ = STATUS.aside(|| say_now(&text));
}

/// Prints a message with colours, which are removed if they are not wanted, to standard error.
pub fn say_styled(text: &str) {
    let text = for_errors(&printable_styled(text));
    let choice = AutoStream::choice(&io::stderr());
    let _ = STATUS.aside(|| say_now(&coloured(&text, choice)));
}

/// Waits until all is printed; after an interrupt, only while it is being read.
pub fn finish() {
    let _ = OUT.drain(Duration::MAX);
    let _ = ERRORS.drain(Duration::MAX);
}

/// A message with its line break, wrapped if standard error is a terminal.
fn for_errors(text: &str) -> String {
    if io::stderr().is_terminal() {
        let (columns, _) = error_size();
        return fitted(text, columns, plain);
    }
    text.to_owned() + "\n"
}

fn plain(text: &str) -> String {
    strip_str(text).to_string()
}

fn print_now(text: &str) -> io::Result<()> {
    STATUS.aside(|| {
        let _ = ERRORS.settle();
        OUT.push(shown(text, io::stdout().is_terminal()).as_bytes())?;
        OUT.settle()
    })
}

fn say_now(text: &str) -> io::Result<()> {
    ERRORS.push(shown(text, io::stderr().is_terminal()).as_bytes())?;
    ERRORS.settle()
}

/// The text as an output shows it: in ASCII on a terminal whose locale has no other characters.
fn shown(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if !is_terminal || text.is_ascii() || *IS_UTF8 {
        return Cow::Borrowed(text);
    }
    let mut ascii = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '…' => ascii.push_str("..."),
            '→' => ascii.push_str("->"),
            '│' => ascii.push('|'),
            '►' => ascii.push('>'),
            '–' | '─' => ascii.push('-'),
            'µ' => ascii.push('u'),
            '≥' => ascii.push_str(">="),
            letter if letter.is_ascii() => ascii.push(letter),
            _ => ascii.push('?'),
        }
    }
    Cow::Owned(ascii)
}

fn coloured(text: &str, choice: ColorChoice) -> String {
    match choice {
        ColorChoice::Never => plain(text),
        _ => text.to_owned(),
    }
}

pub fn errors_have_colours() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Whether a status can be shown: whether standard error is a terminal that can clear a line.
pub fn has_status() -> bool {
    let is_dumb = env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    io::stderr().is_terminal() && !is_dumb
}

/// The maximum columns and rows of a status: half of the terminal, so that there is room for the
/// output. `None` if a status cannot be shown, or nothing is printed to a terminal.
pub fn status_size() -> Option<(usize, usize)> {
    let (columns, rows) = error_size();
    let shown = has_status() && io::stdout().is_terminal();
    // The last column stays free.
    shown.then_some((columns.saturating_sub(1), rows / 2))
}

/// Shows these lines as the status, each truncated to the width of the terminal; an empty slice
/// removes it.
pub fn show_status(lines: &[String]) {
    STATUS.show(lines);
}

/// Whether standard output is still open for reading.
pub fn is_read() -> bool {
    host::is_read(&io::stdout())
}

/// The width of standard output, if it is a terminal.
pub fn columns() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    let reserved = if *IS_UTF8 { 0 } else { LONGER_IN_ASCII };
    (size.ws_col > 0).then(|| usize::from(size.ws_col).saturating_sub(reserved))
}

/// The columns and rows of the terminal of standard error.
fn error_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// The beginning of a line, without the last column: some terminals wrap a full line.
fn fitting(line: &str, columns: usize) -> String {
    let mut width = 0;
    let fits = |letter: &char| {
        width += letter.width().unwrap_or_default();
        width < columns
    };
    line.chars().take_while(fits).collect()
}

/// The lines below the output.
struct Status {
    drawn: MultiProgress,
    lines: Mutex<Vec<ProgressBar>>,
    style: ProgressStyle,
}

impl Status {
    fn new() -> Self {
        let errors = Term::read_write_pair(io::stdin(), Drawing);
        let target = ProgressDrawTarget::term(errors, DRAWINGS);
        Self {
            drawn: MultiProgress::with_draw_target(target),
            lines: Mutex::default(),
            style: ProgressStyle::with_template("{msg}").expect("it is a template"),
        }
    }

    fn lines(&self) -> MutexGuard<'_, Vec<ProgressBar>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints while the status is hidden.
    fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        let lines = self.lines();
        let Some(last) = lines.last() else {
            return print();
        };
        // A terminal that is gone takes nothing more.
        let _ = self.drawn.clear();
        let printed = print();
        last.tick();
        settle();
        printed
    }

    fn show(&self, texts: &[String]) {
        let (columns, _) = error_size();
        let mut lines = self.lines();
        let fewer = texts.len() < lines.len();
        let kept = texts.len().min(lines.len());
        for surplus in lines.drain(kept..) {
            self.drawn.remove(&surplus);
        }
        if fewer {
            let _ = self.drawn.clear();
        }
        for (nth, text) in texts.iter().enumerate() {
            if nth == lines.len() {
                let line = ProgressBar::new_spinner().with_style(self.style.clone());
                lines.push(self.drawn.add(line));
            }
            let text = fitting(&shown(&printable(text), true), columns);
            if lines[nth].message() != text {
                lines[nth].set_message(text);
            }
        }
        if let (true, Some(last)) = (fewer, lines.last()) {
            last.tick();
        }
        if !lines.is_empty() {
            settle();
        }
    }
}

/// Moves the cursor to the beginning of the status's last line. At its end, where a drawing leaves
/// it, the `^C` that a terminal echoes would begin a new line, and the first one would remain.
fn settle() {
    let _ = ERRORS.push(b"\r");
}

/// The output of the status.
#[derive(Debug)]
struct Drawing;

impl Write for Drawing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ERRORS.push(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Drawing {
    fn as_raw_fd(&self) -> RawFd {
        io::stderr().as_raw_fd()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        print(&String::from_utf8_lossy(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Errors {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        STATUS.aside(|| say_now(&printable_styled(&text)))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
