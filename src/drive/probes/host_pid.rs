//! Whether the sandboxes' own processes can be found on this host.

use super::Unavailable;
use crate::drive::session::Session;

/// How the process of a sandbox can be found.
pub(super) const FIND_SANDBOX: &str = "By default CRI-O gives sandboxes no process: set \
    `drop_infra_ctr = false`. Else run the suite as root in the host's namespaces, on the runtime's node";

pub(super) async fn probe_host_pid(session: &Session) -> Result<(), Unavailable> {
    let (sandbox, _) = session.marker_pod().await?;
    let own = session.client().own(sandbox.as_str());
    let found = session.options().kernel.check_process(&own);
    let explain = |missing| {
        format!(
            "the own processes of sandboxes are out of reach, as was measured when the run began: \
             {missing}. {FIND_SANDBOX}"
        )
    };
    Ok(found.map(drop).map_err(explain)?)
}
