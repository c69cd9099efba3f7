//! Whether the kernel's count of OOM kills can be read.

use super::Unavailable;
use crate::drive::session::Session;

pub(super) fn probe_memory_limit(session: &Session) -> Result<(), Unavailable> {
    let kills = session.options().kernel.oom_kills();
    let unread = |fault| format!("the kernel's count of OOM kills cannot be read: {fault}");
    Ok(kills.map(drop).map_err(unread)?)
}
