//! All that is printed goes through here, and nothing else writes to standard output or to standard
//! error: what a runtime, a history or a report of others has put into a text drives no terminal.
//!
//! One invariant: what nobody reads any more stops nothing.

use std::io::{self, IsTerminal, Write};

use crate::escape::{printable, printable_lines, printable_styled};
use crate::host;

/// Standard output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output;

/// Standard error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors;

/// Prints a text, each line of which has its line break.
///
/// # Errors
/// If standard output takes nothing more.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(printable_lines(text).as_bytes())?;
    out.flush()
}

/// Prints a text that has colours, which are taken out where they are not wanted.
///
/// # Errors
/// If standard output takes nothing more.
pub fn print_styled(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(printable_styled(text).as_bytes())?;
    out.flush()
}

/// Says something on standard error, in a line or several.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable_lines(text));
}

/// Says something that has colours, which are taken out where they are not wanted.
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

/// Whether anybody still reads standard output.
#[must_use]
pub fn is_read() -> bool {
    host::is_read(&io::stdout())
}

/// Columns of standard output, if it is a terminal.
#[must_use]
pub fn columns() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// Draws a line over the last one of the terminal, as much of it as there is room for.
pub fn draw(line: &str) {
    let errors = io::stderr();
    let width = rustix::termios::tcgetwinsize(&errors).map_or(80, |size| size.ws_col);
    let room = usize::from(width).saturating_sub(1);
    let line: String = printable(line).chars().take(room).collect();
    let _ = write!(errors.lock(), "\r\u{1b}[2K{line}\r");
}

/// Clears the line that [`draw`] has drawn.
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
