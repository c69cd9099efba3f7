//! All output to standard output and standard error, with control characters escaped: texts from a
//! runtime, a history or a foreign report cannot control the terminal.
//!
//! On a terminal a *status* of some lines can be shown below all that is printed, such as the
//! progress of a run. It is out of the way while something is printed, and leaves nothing behind.
//!
//! One invariant: a closed output never panics.

use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use unicode_width::UnicodeWidthChar;

use crate::escape::{printable, printable_lines, printable_styled};
use crate::host;

/// The status of this process.
static STATUS: LazyLock<Status> = LazyLock::new(Status::new);

/// How often a second the status may be drawn at most: each change of one of its lines draws it.
const DRAWINGS: u8 = 200;

/// Standard output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output;

/// Standard error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors;

/// Prints a text, whose lines end with a line break.
///
/// # Errors
/// If standard output cannot be written to.
pub fn print(text: &str) -> io::Result<()> {
    STATUS.aside(|| {
        let mut out = io::stdout().lock();
        out.write_all(printable_lines(text).as_bytes())?;
        out.flush()
    })
}

/// Prints a text with colours, which are removed if they are not wanted.
///
/// # Errors
/// If standard output cannot be written to.
pub fn print_styled(text: &str) -> io::Result<()> {
    STATUS.aside(|| {
        let mut out = anstream::stdout().lock();
        out.write_all(printable_styled(text).as_bytes())?;
        out.flush()
    })
}

/// Prints a message of one or more lines to standard error.
pub fn say(text: &str) {
    let _ = STATUS.aside(|| writeln!(io::stderr(), "{}", printable_lines(text)));
}

/// Prints a message with colours, which are removed if they are not wanted, to standard error.
pub fn say_styled(text: &str) {
    let _ = STATUS.aside(|| writeln!(anstream::stderr(), "{}", printable_styled(text)));
}

/// Whether colours are wanted on standard error.
#[must_use]
pub fn errors_have_colours() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Whether a status can be shown: whether standard error is a terminal that can clear a line.
#[must_use]
pub fn has_status() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    io::stderr().is_terminal() && !is_dumb
}

/// The columns and rows that a status may have: half of the terminal, so that there is room for
/// what is printed. None if a status cannot be shown, or nothing is printed to a terminal.
#[must_use]
pub fn status_size() -> Option<(usize, usize)> {
    let (columns, rows) = error_size();
    let shown = has_status() && io::stdout().is_terminal();
    // The last column stays free.
    shown.then_some((columns.saturating_sub(1), rows / 2))
}

/// Shows these lines as the status, each cut to the width of the terminal; none remove it.
pub fn show_status(lines: &[String]) {
    STATUS.show(lines);
}

/// Whether standard output is still open for reading.
#[must_use]
pub fn is_read() -> bool {
    host::is_read(&io::stdout())
}

/// The width of standard output, if it is a terminal.
#[must_use]
pub fn columns() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// The columns and rows of the terminal of standard error.
fn error_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// The beginning of a line that leaves the last column free: what stands there is on the next line
/// for some terminals.
fn fitting(line: &str, columns: usize) -> String {
    let mut width = 0;
    let fits = |letter: &char| {
        width += letter.width().unwrap_or_default();
        width < columns
    };
    line.chars().take_while(fits).collect()
}

/// The lines below all that is printed.
struct Status {
    drawn: MultiProgress,
    lines: Mutex<Vec<ProgressBar>>,
    style: ProgressStyle,
}

impl Status {
    fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWINGS);
        Self {
            drawn: MultiProgress::with_draw_target(target),
            lines: Mutex::default(),
            style: ProgressStyle::with_template("{msg}").expect("it is a template"),
        }
    }

    fn lines(&self) -> MutexGuard<'_, Vec<ProgressBar>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints while the status is out of the way.
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
            let text = fitting(&printable(text), columns);
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

/// Puts the cursor to the beginning of the status's last line. At its end, where a drawing leaves
/// it, the `^C` that a terminal echoes would begin a new line, and the first one would remain.
fn settle() {
    let _ = write!(io::stderr(), "\r");
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        print(&String::from_utf8_lossy(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

impl Write for Errors {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        STATUS.aside(|| io::stderr().write_all(printable_styled(&text).as_bytes()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
