//! Calling a container by its id, or by the beginning of it.

use super::Abort;
use crate::history::{ContainerId, Reply};
use crate::limits;

/// The id, or as much of it as people write.
pub(super) fn id_or_prefix(id: ContainerId, by_prefix: bool) -> ContainerId {
    let prefix = id.as_str().get(..limits::ID_PREFIX);
    let prefix = prefix.filter(|_| by_prefix).map(ContainerId::from);
    prefix.unwrap_or(id)
}

/// The outcome of such a call. A runtime need not accept less than the whole id.
pub(super) fn prefix_outcome(
    outcome: Result<Option<Reply>, Abort>,
    by_prefix: bool,
) -> Result<(), Abort> {
    match outcome {
        Err(Abort::Error(fault)) if by_prefix => Err(Abort::Inconclusive(format!(
            "the runtime does not take the beginning of an id for the id: {fault}"
        ))),
        outcome => outcome.map(drop),
    }
}
