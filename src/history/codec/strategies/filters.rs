//! Arbitrary filters of lists.

use proptest::option;
use proptest::prelude::{Strategy, any};

use super::{container, container_state, labels, sandbox, sandbox_state};
use crate::history::{ContainerFilter, Request, SandboxFilter};

pub(super) fn find_sandboxes() -> impl Strategy<Value = Request> {
    let id = option::of(sandbox());
    let filter = (id, option::of(sandbox_state()), labels(), any::<bool>());
    let filter = filter.prop_map(|(id, state, labels, streamed)| SandboxFilter {
        id,
        state,
        labels,
        streamed,
    });
    filter.prop_map(Request::FindSandboxes)
}

pub(super) fn find_containers() -> impl Strategy<Value = Request> {
    let ids = (option::of(container()), option::of(sandbox()));
    let filter = (ids, option::of(container_state()), labels(), any::<bool>());
    let filter = filter.prop_map(|((id, sandbox), state, labels, streamed)| ContainerFilter {
        id,
        state,
        sandbox,
        labels,
        streamed,
    });
    filter.prop_map(Request::FindContainers)
}
