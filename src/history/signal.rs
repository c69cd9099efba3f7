//! Signals as the CRI numbers them.

use serde::{Deserialize, Serialize};

/// A signal that ends containers, by its number in `runtime.v1.Signal`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(pub i32);

impl Signal {
    /// The runtime's default. In a status: the runtime reports none.
    pub const DEFAULT: Self = Self(0);
    /// `SIGHUP`.
    pub const HANGUP: Self = Self(8);
    /// `SIGQUIT`.
    pub const QUIT: Self = Self(18);
    /// `SIGTERM`.
    pub const TERMINATE: Self = Self(23);
    /// `SIGUSR1`.
    pub const USER_1: Self = Self(29);
    /// `SIGUSR2`.
    pub const USER_2: Self = Self(30);
}
