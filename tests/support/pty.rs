//! The program on a pseudoterminal, with a parser for the screen.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use cri_event_conformance::testing::host;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use vt100::Parser;

/// The timeout of a hanging test.
const BOUND: Duration = Duration::from_secs(120);
/// Lines of the terminal.
const ROWS: NonZeroU16 = NonZeroU16::new(24).unwrap();

/// The program with its standard input, output and error on a terminal.
pub(crate) struct OnTerminal {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    /// The content of the screen.
    pub(crate) screen: Parser,
    pub(crate) written: Vec<u8>,
}

/// Starts the program with these arguments on a terminal of this width.
pub(crate) fn on_terminal<T: AsRef<OsStr>>(
    columns: u16,
    env: &[(&str, &str)],
    args: impl IntoIterator<Item = T>,
) -> OnTerminal {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let size = Winsize {
        ws_row: ROWS.get(),
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&controller, size).unwrap();
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let terminal = ioctl_tiocgptpeer(&controller, flags).unwrap();
    let stdio = || Stdio::from(terminal.try_clone().unwrap());
    // In a session of its own, whose terminal this is: so Ctrl-C reaches it.
    let child = Command::new("setsid")
        .args([
            "--ctty",
            "--wait",
            env!("CARGO_BIN_EXE_cri-event-conformance"),
        ])
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TERM", "xterm-256color")
        .envs(env.iter().copied())
        .stdin(stdio())
        .stdout(stdio())
        .stderr(stdio())
        .spawn()
        .unwrap();
    let keyboard = File::from(controller);
    let mut reader = keyboard.try_clone().unwrap();
    let (sender, output) = mpsc::channel();
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        // The terminal fails when the last program on it has ended.
        while let Ok(length @ 1..) = reader.read(&mut chunk) {
            if sender.send(chunk[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    OnTerminal {
        child,
        keyboard,
        output,
        screen: Parser::new(ROWS, NonZeroU16::new(columns).unwrap(), 0),
        written: Vec::new(),
    }
}

impl OnTerminal {
    /// Waits until the screen satisfies a condition, with a timeout.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, is_so: impl Fn(&str) -> bool) {
        let began = host::now();
        while !is_so(&self.contents()) {
            let left = BOUND.saturating_sub(host::elapsed(began));
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(fault) => panic!("no {what} came, {fault}:\n{}", self.contents()),
            }
        }
    }

    pub(crate) fn press(&mut self, key: u8) {
        self.keyboard.write_all(&[key]).unwrap();
    }

    /// Waits for its end, and returns the exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> i32 {
        let began = host::now();
        loop {
            let left = BOUND.saturating_sub(host::elapsed(began));
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it still runs:\n{}", self.contents()),
            }
        }
        self.child.wait().unwrap().code().unwrap()
    }

    /// The lines of the screen.
    pub(crate) fn contents(&self) -> String {
        let screen = self.screen.screen();
        let rows = screen.rows(0, screen.size().1.get());
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n")
    }

    /// Adds output to the screen; no line of it may be wider than the screen.
    fn take(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
        self.screen.process(bytes);
        let screen = self.screen.screen();
        let (_, columns) = screen.size();
        let mut rows = (0..).zip(screen.rows(0, columns.get()));
        // A status fills its lines with spaces, after which the terminal continues in the next
        // line.
        let is_wide = |row, text: &str| screen.row_wrapped(row) && !text.ends_with(' ');
        let wide = rows.find(|(row, text)| is_wide(*row, text) && must_fit(text));
        assert!(wide.is_none(), "{wide:?} is too wide:\n{}", self.contents());
    }
}

/// Whether a line must not be wider than the terminal: a result, the progress of a run, or a line
/// of the table of pods.
fn must_fit(text: &str) -> bool {
    let of_table = text.starts_with(" POD ") || text.contains("  ready, ");
    of_table
        || text.starts_with("test ")
        || text.contains(" done")
        || text.contains(" s  waits for")
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.child.kill();
    }
}
