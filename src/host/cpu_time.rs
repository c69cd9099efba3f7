//! The CPU time that processes have used.

use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::RuntimeProcess;

/// The unit of times in `/proc/PID/stat`: `USER_HZ`, 100 a second on every architecture that the
/// suite is built for.
const TICK: Duration = Duration::from_millis(10);

impl RuntimeProcess {
    /// The CPU time that it has used, in steps of 10 ms; that of its children is not included.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        self.check_alive().map_err(io::Error::other)?;
        parse(&stat).ok_or_else(|| io::Error::other("/proc/PID/stat has no CPU time"))
    }
}

/// The CPU time that this process has used.
pub fn own_cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// Fields 14 and 15 of `/proc/PID/stat`: the time in user mode and in the kernel.
fn parse(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11).map(str::parse::<u32>);
    let (user, kernel) = (times.next()?.ok()?, times.next()?.ok()?);
    TICK.checked_mul(user.checked_add(kernel)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_kernel_time_are_added_whatever_the_name_of_the_program() {
        let fields = "S 1 7 7 0 -1 4194560 1 2 3 4 250 31 5 6 20 0 9 0 100";
        let used = parse(&format!("7 (a) b) {fields}"));
        assert_eq!(used, Some(Duration::from_millis(2_810)));
        assert_eq!(parse("7 (a) S 1"), None);
    }

    #[test]
    fn work_uses_cpu_time() {
        let before = own_cpu_time();
        let mut sum = 0_u64;
        while own_cpu_time() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(own_cpu_time() > before);
    }
}
