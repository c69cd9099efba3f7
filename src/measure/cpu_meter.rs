//! The CPU time of the runtime and of the suite.

use std::time::Duration;

use crate::drive::Session;
use crate::host::{self, RuntimeProcess};

#[derive(Debug)]
pub(super) struct CpuMeter {
    /// The runtime's process; `None` if unknown.
    runtime: Option<RuntimeProcess>,
    simulated: bool,
}

/// CPU times; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes {
    /// The runtime's process, without its children.
    pub(super) runtime: Option<Duration>,
    pub(super) own: Option<Duration>,
}

impl CpuMeter {
    /// A meter of the session's runtime, and the reason if that one cannot be measured.
    pub(super) async fn find(session: &Session) -> (Self, Option<String>) {
        let options = session.options();
        let simulated = options.kernel.is_simulated();
        let found = match options.endpoint.socket() {
            _ if simulated => Err("the model runs in the suite's own process".to_owned()),
            Some(socket) => RuntimeProcess::find(socket)
                .await
                .map_err(|fault| fault.to_string()),
            None => Err("a relay stands between the suite and the runtime's socket".to_owned()),
        };
        let (runtime, unknown) = match found {
            Ok(runtime) => (Some(runtime), None),
            Err(fault) => (None, Some(fault)),
        };
        let note = unknown.map(|why| format!("the runtime's CPU time is not measurable: {why}"));
        (Self { runtime, simulated }, note)
    }

    /// The CPU times so far.
    pub(super) fn read(&self) -> CpuTimes {
        let runtime = self.runtime.as_ref();
        CpuTimes {
            runtime: runtime.and_then(|process| process.cpu_time().ok()),
            own: (!self.simulated).then(host::own_cpu_time),
        }
    }
}

impl CpuTimes {
    /// The CPU time since an earlier reading.
    pub(super) fn since(self, earlier: Self) -> Self {
        let used = |now: Option<Duration>, before: Option<Duration>| {
            let (now, before) = (now?, before?);
            Some(now.saturating_sub(before))
        };
        Self {
            runtime: used(self.runtime, earlier.runtime),
            own: used(self.own, earlier.own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_at_both_ends_is_not_known() {
        let seconds = |number| Some(Duration::from_secs(number));
        let before = CpuTimes {
            runtime: seconds(3),
            own: None,
        };
        let after = CpuTimes {
            runtime: seconds(5),
            own: seconds(1),
        };
        let used = after.since(before);
        assert_eq!((used.runtime, used.own), (seconds(2), None));
    }
}
