//! The output before a watch begins: the watched runtime, and possible side effects on others.

use std::path::Path;

use super::WatchError;
use super::options::{WatchAllowance, WatchOptions};
use crate::cri::Client;
use crate::doctor::is_single_consumer;
use crate::drive::{self, RecordingClient};
use crate::history::RuntimeVersion;
use crate::host::{self, Kernel};
use crate::report::printable;
use crate::run::Endpoints;
use crate::terminal;

/// Refuses to take events from a kubelet that uses the runtime: one that is detected, one whose
/// pods exist, or one that may exist where the host's processes are hidden.
pub(super) async fn refuse_theft(
    socket: Option<&Path>,
    options: &WatchOptions,
    client: &Client,
) -> Result<(), WatchError> {
    let runtime = client.version();
    if !is_single_consumer(runtime) || options.allow.contains(&WatchAllowance::EventTheft) {
        return Ok(());
    }
    let refuse = |sign: String| {
        let runtime = named(runtime);
        Err(WatchError::EventTheft { runtime, sign })
    };
    if let Some(kubelet) = Kernel::Host.kubelet(socket) {
        let (pid, name) = (kubelet.pid, printable(&kubelet.name));
        return refuse(format!(
            "a kubelet runs on this node (process {pid}, `{name}`)"
        ));
    }
    let foreign = drive::foreign_pods(&RecordingClient::new(client.clone())).await;
    let pods = foreign.map_or(0, |foreign| foreign.kubelets.len());
    if pods > 0 {
        return refuse(format!("{pods} ready pods here have a kubelet's labels"));
    }
    match socket {
        Some(socket) if !host::is_server_visible(socket).await => refuse(
            "a kubelet may run on this node, whose processes are hidden (a pod needs hostPID)"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Whether the processes of containers are visible; prints a note if they are not.
pub(super) async fn sees_processes(kernel: &Kernel, socket: Option<&Path>) -> bool {
    let sees = kernel.knows_pids_of(socket).await;
    if !sees {
        terminal::say(
            "note: the processes of containers cannot be seen from here, so that one which is dead \
             while its container is reported as RUNNING shows at its removal only; this needs the \
             host's PID namespace (hostPID) and root",
        );
    }
    sees
}

fn named(runtime: &RuntimeVersion) -> String {
    let [name, version] = [&runtime.runtime_name, &runtime.runtime_version].map(|it| printable(it));
    format!("{name} {version}")
}

/// Prints the watched runtime, and warns of side effects.
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
