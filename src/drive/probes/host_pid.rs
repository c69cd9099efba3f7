//! Whether the sandboxes' own processes can be found on this host.

use super::Unavailable;
use crate::drive::session::Session;

pub(super) async fn probe_host_pid(session: &Session) -> Result<(), Unavailable> {
    let (sandbox, _) = session.marker_pod().await?;
    let own = session.client().own(sandbox.as_str());
    let found = session.options().kernel.check_process(&own);
    let explain = |missing| {
        format!(
            "the own processes of sandboxes are out of reach, as was measured when the run began: \
             {missing}. Run the suite as root in the host's pid namespace, on the runtime's node; \
             for CRI-O set `drop_infra_ctr = false`"
        )
    };
    Ok(found.map(drop).map_err(explain)?)
}
