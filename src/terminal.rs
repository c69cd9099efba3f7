//! All output to standard output and standard error, with control characters escaped: texts from a
//! runtime, a history or a foreign report cannot control the terminal.
//!
//! One invariant: a closed output never panics.

use std::io::{self, IsTerminal, Write};

use crate::escape::{printable, printable_lines, printable_styled};
use crate::host;

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
    let mut out = io::stdout().lock();
    out.write_all(printable_lines(text).as_bytes())?;
    out.flush()
}

/// Prints a text with colours, which are removed if they are not wanted.
///
/// # Errors
/// If standard output cannot be written to.
pub fn print_styled(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(printable_styled(text).as_bytes())?;
    out.flush()
}

/// Prints a message of one or more lines to standard error.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable_lines(text));
}

/// Prints a message with colours, which are removed if they are not wanted, to standard error.
pub fn say_styled(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", printable_styled(text));
}

/// Whether colours are wanted on standard error.
#[must_use]
pub fn errors_have_colours() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Whether standard error is a terminal.
#[must_use]
pub fn errors_are_a_terminal() -> bool {
    io::stderr().is_terminal()
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

/// Overwrites the last line of the terminal, truncated to its width.
pub fn draw(line: &str) {
    let errors = io::stderr();
    let width = rustix::termios::tcgetwinsize(&errors).map_or(80, |size| size.ws_col);
    let room = usize::from(width).saturating_sub(1);
    let line: String = printable(line).chars().take(room).collect();
    let _ = write!(errors.lock(), "\r\u{1b}[2K{line}\r");
}

/// Clears the line drawn by [`draw`].
pub fn clear() {
    let _ = write!(io::stderr().lock(), "\r\u{1b}[2K");
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
        io::stderr().write_all(printable_styled(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
