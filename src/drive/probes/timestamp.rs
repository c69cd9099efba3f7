//! Whether `PodSandboxStatus` reports when it was read.

use super::Unavailable;
use crate::drive::session::Session;
use crate::history::{Reply, Request};

pub(super) async fn probe_timestamp(session: &Session) -> Result<(), Unavailable> {
    let pod = session.marker_pod().await;
    let (sandbox, _) = pod.map_err(|fault| fault.to_string())?;
    match session.call(None, Request::SandboxStatus(sandbox)).await {
        Ok(Reply::SandboxStatus(report)) if report.timestamp.0 != 0 => Ok(()),
        Ok(_) => Err(Unavailable::because(
            "PodSandboxStatus has no timestamp, which a runtime need not give; CRI-O has one where \
             enable_pod_events is set",
        )),
        Err(fault) => Err(format!("PodSandboxStatus failed: {fault}").into()),
    }
}
