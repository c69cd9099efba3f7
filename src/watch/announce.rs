//! What is said before a watch begins: what is watched, and whom that may disturb.

use std::path::Path;

use super::error::WatchError;
use super::options::{WatchAllowance, WatchOptions};
use crate::cri::Client;
use crate::doctor::is_single_consumer;
use crate::history::RuntimeVersion;
use crate::host::Kernel;
use crate::report::printable;
use crate::run::Endpoints;
use crate::terminal;

/// Refuses to take events from a kubelet that uses the runtime.
pub(super) fn refuse_theft(
    socket: Option<&Path>,
    options: &WatchOptions,
    runtime: &RuntimeVersion,
) -> Result<(), WatchError> {
    if !is_single_consumer(runtime) || options.allow.contains(&WatchAllowance::EventTheft) {
        return Ok(());
    }
    match Kernel::Host.kubelet(socket) {
        None => Ok(()),
        Some(kubelet) => Err(WatchError::EventTheft {
            runtime: named(runtime),
            pid: kubelet.pid,
        }),
    }
}

fn named(runtime: &RuntimeVersion) -> String {
    let [name, version] = [&runtime.runtime_name, &runtime.runtime_version].map(|it| printable(it));
    format!("{name} {version}")
}

/// Prints what is watched, and warns of side effects.
pub(super) fn announce(endpoints: &Endpoints, client: &Client) {
    let runtime = client.version();
    terminal::say(&format!(
        "watching {} at {}",
        named(runtime),
        endpoints.runtime
    ));
    if is_single_consumer(runtime) {
        terminal::say(
            "warning: containerd 1.7 sends each event to only one of its subscribers: while this \
             command runs, a kubelet with EventedPLEG and other subscribers miss the events shown \
             here, and the events that they receive are missing here",
        );
    }
}
