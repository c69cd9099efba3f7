//! Failures of this suite itself, provoked by its own tests.

use std::time::Duration;

/// The variable that names the case whose steps panic.
pub const PANIC_IN: &str = "CRI_EVENT_CONFORMANCE_PANIC_IN";
/// The variable that names the case whose judging panics.
pub const PANIC_JUDGING: &str = "CRI_EVENT_CONFORMANCE_PANIC_JUDGING";

/// Cases in which this suite itself shall fail, for its own tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sabotage {
    /// Panic after the first step of this case.
    pub steps_of: Option<String>,
    /// Panic when this case is judged.
    pub verdict_of: Option<String>,
    /// Hold up all that it does, so often and for so long, in simulated time.
    pub hold_up: Option<(Duration, Duration)>,
}

impl Sabotage {
    /// What the environment asks for. Release builds ignore it.
    pub fn from_environment() -> Self {
        let named = |variable| std::env::var(variable).ok();
        if cfg!(debug_assertions) {
            Self {
                steps_of: named(PANIC_IN),
                verdict_of: named(PANIC_JUDGING),
                hold_up: None,
            }
        } else {
            Self::default()
        }
    }

    /// Panics if the case is the one.
    pub fn strike(wanted: Option<&str>, case: &str) {
        assert!(wanted != Some(case), "as the environment asked for");
    }
}
