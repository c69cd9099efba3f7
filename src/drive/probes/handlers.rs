//! Whether the runtime reports two runtime handlers or more.

use super::Unavailable;
use super::runtime_status;
use crate::drive::session::Session;

pub(super) async fn probe_handlers(session: &Session) -> Result<(), Unavailable> {
    let status = runtime_status(session).await?;
    let named = status.handlers.iter().filter(|name| !name.is_empty());
    if named.count() < 2 {
        return Err(Unavailable::because(
            "the runtime's Status does not report several runtime handlers; configure another one \
             to have its events tested, or test one by --runtime-handler",
        ));
    }
    Ok(())
}
