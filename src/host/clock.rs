//! The clocks: the host's, or a simulated one.
//!
//! In simulated time waiting takes no real time: as soon as every task waits, the clock jumps to
//! the next deadline. Tokio's paused clock does that, on one thread; [`now`] follows it in code
//! that runs on such a runtime.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use tokio::runtime::{Builder, Handle, Id, Runtime};
use tokio::time::Instant;

use super::Disturbance;
use crate::history::HostInstant;

/// The simulated clocks: the instant at which each began, by Tokio's and by the host's clock.
static SIMULATED: RwLock<Option<HashMap<Id, (Instant, HostInstant)>>> = RwLock::new(None);

/// Drives the tasks of a run, in real or simulated time.
#[derive(Debug)]
pub struct Reactor {
    runtime: Runtime,
    simulated: bool,
}

impl Reactor {
    /// A multi-threaded reactor with the host's clock.
    pub fn real() -> io::Result<Self> {
        let runtime = Runtime::new()?;
        Ok(Self {
            runtime,
            simulated: false,
        })
    }

    /// A single-threaded reactor with a simulated clock, which begins at the host's time.
    pub fn simulated() -> io::Result<Self> {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build()?;
        let began = {
            let _within = runtime.enter();
            (Instant::now(), real_now())
        };
        let mut all = SIMULATED.write().unwrap_or_else(PoisonError::into_inner);
        let id = runtime.handle().id();
        all.get_or_insert_default().insert(id, began);
        Ok(Self {
            runtime,
            simulated: true,
        })
    }
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }
    pub fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// Drives the tasks while `work` waits for them, possibly on several threads.
    pub fn drive_during<T>(&self, work: impl FnOnce(&Handle) -> T) -> T {
        let handle = self.runtime.handle();
        if !self.simulated {
            return work(handle);
        }
        let (done, over) = tokio::sync::oneshot::channel::<()>();
        std::thread::scope(|scope| {
            // Ends with the work, even if it panics.
            scope.spawn(|| self.runtime.block_on(over));
            let _done = done;
            work(handle)
        })
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        if self.simulated {
            let mut all = SIMULATED.write().unwrap_or_else(PoisonError::into_inner);
            all.as_mut()
                .map(|all| all.remove(&self.runtime.handle().id()));
        }
    }
}

/// The current time by both clocks.
pub fn now() -> HostInstant {
    simulated_now().unwrap_or_else(real_now)
}

/// The ticks of a second in `/proc/PID/stat`: `USER_HZ` of every architecture that the suite is
/// built for.
const TICKS_PER_SECOND: u64 = 100;

/// A time since boot in clock ticks, the unit in which `/proc/PID/stat` shows a process's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTicks(pub(super) u64);

impl BootTicks {
    /// After every process.
    pub const NEVER: Self = Self(u64::MAX);

    /// The current time, rounded down as the kernel does.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let below = u64::try_from(now.tv_nsec).unwrap_or(0) / (1_000_000_000 / TICKS_PER_SECOND);
        Self(
            seconds
                .saturating_mul(TICKS_PER_SECOND)
                .saturating_add(below),
        )
    }
}

impl std::str::FromStr for BootTicks {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl std::fmt::Display for BootTicks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Advances a simulated clock while no task can run, past due deadlines.
pub async fn hold_up(by: std::time::Duration) {
    if simulated_now().is_some() {
        tokio::time::advance(by).await;
    }
}

/// Steps the wall clock: the simulated one on a simulated reactor, otherwise the host's.
pub fn step_clock(by_ns: i64) -> io::Result<Disturbance> {
    let name = "the wall clock";
    let reactor = Handle::try_current().ok().map(|reactor| reactor.id());
    if let Some(reactor) = reactor
        && step_simulated(reactor, by_ns).is_some()
    {
        return Ok(Disturbance::simulated(name, move || {
            step_simulated(reactor, -by_ns);
            Ok(())
        }));
    }
    let stepped = Arc::new(Mutex::new(0));
    let restored = stepped.clone();
    let disturbance = Disturbance::new(name, move || step_host_to(0, &restored));
    step_host_to(by_ns, &stepped)?;
    Ok(disturbance)
}

fn step_simulated(reactor: Id, by_ns: i64) -> Option<()> {
    let mut all = SIMULATED.write().unwrap_or_else(PoisonError::into_inner);
    let (_, at) = all.as_mut()?.get_mut(&reactor)?;
    at.realtime_ns = at.realtime_ns.saturating_add(by_ns);
    Some(())
}

/// Sets the host's wall clock `to_ns` before or after the right time; `stepped_ns` is its current
/// step.
fn step_host_to(to_ns: i64, stepped_ns: &Mutex<i64>) -> io::Result<()> {
    let mut stepped_ns = stepped_ns.lock().unwrap_or_else(PoisonError::into_inner);
    let by_ns = to_ns - *stepped_ns;
    if by_ns == 0 {
        return Ok(());
    }
    let wanted = real_now().realtime_ns.saturating_add(by_ns);
    let wanted = Timespec {
        tv_sec: wanted.div_euclid(1_000_000_000),
        tv_nsec: wanted.rem_euclid(1_000_000_000),
    };
    clock_settime(ClockId::Realtime, wanted)?;
    *stepped_ns = to_ns;
    Ok(())
}

fn simulated_now() -> Option<HostInstant> {
    let all = SIMULATED.read().unwrap_or_else(PoisonError::into_inner);
    let all = all.as_ref()?;
    let (began, at) = *all.get(&Handle::try_current().ok()?.id())?;
    let passed = u64::try_from(Instant::now().duration_since(began).as_nanos()).unwrap_or(u64::MAX);
    Some(HostInstant {
        monotonic_ns: at.monotonic_ns.saturating_add(passed),
        realtime_ns: at.realtime_ns.saturating_add_unsigned(passed),
    })
}

pub(super) fn real_now() -> HostInstant {
    let monotonic = clock_gettime(ClockId::Monotonic);
    let realtime = clock_gettime(ClockId::Realtime);
    let monotonic = i128::from(monotonic.tv_sec) * 1_000_000_000 + i128::from(monotonic.tv_nsec);
    let realtime = i128::from(realtime.tv_sec) * 1_000_000_000 + i128::from(realtime.tv_nsec);
    HostInstant {
        monotonic_ns: u64::try_from(monotonic).unwrap_or(0),
        realtime_ns: i64::try_from(realtime).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Nothing to wait for but the clock.
    async fn wait_an_hour() {
        let never = std::future::pending::<()>();
        assert!(tokio::time::timeout(HOUR, never).await.is_err());
    }

    #[test]
    fn both_clocks_run() {
        let before = now();
        let after = now();
        assert!(after.monotonic_ns >= before.monotonic_ns);
        assert!(before.realtime_ns > 1_700_000_000_000_000_000);
    }

    #[test]
    fn a_simulated_hour_is_over_at_once_and_passes_on_that_runtime_alone() {
        let reactor = Reactor::simulated().unwrap();
        let real = now();
        let (before, after) = reactor.runtime().block_on(async {
            let before = now();
            wait_an_hour().await;
            (before, now())
        });
        assert!(after.since(before) >= HOUR);
        assert!(after.realtime_ns - before.realtime_ns >= 3_600_000_000_000);
        assert!(now().since(real) < HOUR);
    }

    #[test]
    fn a_simulated_wall_clock_is_wrong_until_it_is_put_right_and_no_other_clock_is() {
        let reactor = Reactor::simulated().unwrap();
        reactor.runtime().block_on(async {
            let before = now();
            let stepped = step_clock(-10_000_000_000).unwrap();
            let meanwhile = now();
            assert_eq!(meanwhile.realtime_ns, before.realtime_ns - 10_000_000_000);
            assert_eq!(meanwhile.monotonic_ns, before.monotonic_ns);
            stepped.undo().unwrap();
            assert_eq!(now(), before);
            drop(step_clock(5).unwrap());
            assert_eq!(now(), before);
        });
    }

    #[test]
    fn threads_that_only_wait_are_waited_for() {
        let reactor = Reactor::simulated().unwrap();
        let waited = reactor.drive_during(|handle| {
            let task = handle.spawn(wait_an_hour());
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| handle.block_on(task));
                waiting.join().is_ok_and(|waited| waited.is_ok())
            })
        });
        assert!(waited);
    }
}
