//! Whether the process of the runtime can be found on this host, and what it holds be counted.

use std::collections::BTreeSet;

use super::Unavailable;
use crate::drive::session::Session;
use crate::history::Holder;

pub(super) async fn probe_runtime_process(session: &Session) -> Result<(), Unavailable> {
    let options = session.options();
    let (kernel, socket) = (&options.kernel, options.endpoint.socket());
    let none = BTreeSet::new();
    for holder in [Holder::Runtime, Holder::Pods] {
        let counted = kernel.resources(socket, holder, &none).await;
        let explain = |missing| {
            format!(
                "what the process of the runtime holds is out of sight, as was measured when the \
                 run began: {missing}. Run the suite as root in the host's pid namespace, on the \
                 runtime's node, and let the runtime make its socket itself"
            )
        };
        counted.map(drop).map_err(explain)?;
    }
    Ok(())
}
