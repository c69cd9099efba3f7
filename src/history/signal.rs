//! Signals as the CRI numbers them.

use std::fmt;

use super::protobuf::written_as;

/// A signal to a container, by its number in `runtime.v1.Signal`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal(pub i32);

/// The signals that the suite sends: the name, and the number in Linux.
const SENT: [(Signal, &str, u8); 8] = [
    (Signal::HANGUP, "SIGHUP", 1),
    (Signal::QUIT, "SIGQUIT", 3),
    (Signal::KILL, "SIGKILL", 9),
    (Signal::USER_1, "SIGUSR1", 10),
    (Signal::USER_2, "SIGUSR2", 12),
    (Signal::TERMINATE, "SIGTERM", 15),
    (Signal::CONTINUE, "SIGCONT", 18),
    (Signal::STOP, "SIGSTOP", 19),
];

impl Signal {
    /// The runtime's default. In a status: the runtime reports none.
    pub const DEFAULT: Self = Self(0);
    /// `SIGCONT`.
    pub const CONTINUE: Self = Self(6);
    /// `SIGHUP`.
    pub const HANGUP: Self = Self(8);
    /// `SIGKILL`.
    pub const KILL: Self = Self(13);
    /// `SIGQUIT`.
    pub const QUIT: Self = Self(18);
    /// `SIGSTOP`.
    pub const STOP: Self = Self(21);
    /// `SIGTERM`.
    pub const TERMINATE: Self = Self(23);
    /// `SIGUSR1`.
    pub const USER_1: Self = Self(29);
    /// `SIGUSR2`.
    pub const USER_2: Self = Self(30);

    /// Its number in Linux, if it is one that the suite sends.
    pub fn linux_number(self) -> Option<u8> {
        self.sent().map(|(_, _, number)| number)
    }

    fn sent(self) -> Option<(Self, &'static str, u8)> {
        SENT.into_iter().find(|(signal, ..)| *signal == self)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sent() {
            Some((_, name, _)) => f.write_str(name),
            None => write!(f, "signal {} of the CRI", self.0),
        }
    }
}

written_as! {
    Signal as i32 { |signal| signal.0, |number| Ok(Signal(number)) }
}
