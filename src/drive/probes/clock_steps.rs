//! Whether the user allows the host's wall clock to be set.

use super::Unavailable;
use crate::drive::options::Allowance;
use crate::drive::session::Session;
use crate::host::Kernel;

pub(super) fn probe_clock_steps(session: &Session) -> Result<(), Unavailable> {
    let options = session.options();
    let simulated = matches!(options.kernel, Kernel::Simulated(_));
    if simulated || options.asked.allow.contains(&Allowance::ClockSteps) {
        return Ok(());
    }
    Err(Unavailable::because(
        "the host's wall clock would be set 10 s back and forward for a moment, which all that \
         runs there sees; on a node that can bear it, as root, allow it by --allow clock-steps",
    ))
}
