//! One change: a container's process is killed, and the watchers learn of it.

use std::time::Duration;

use super::arrivals::Arrivals;
use super::error::MeasureError;
use super::population::Pod;
use crate::drive::Session;
use crate::limits;

/// Kills a container of the pod, waits until the given number of watchers know, and replaces it.
/// Returns the delay of each watcher after the end in the kernel; fewer if some exceed the timeout.
pub(super) async fn change(
    session: &Session,
    pod: &mut Pod,
    arrivals: &Arrivals,
    watchers: usize,
) -> Result<Vec<Duration>, MeasureError> {
    let (place, container) = pod.next();
    arrivals.expect(&container);
    let kernel = &session.options().kernel;
    let own = session.client().own(container.as_str());
    let ended = kernel.end_process(&own, limits::KILL_WAIT).await?;
    let bound = session.scaled(limits::EVENT_WAIT);
    let known = arrivals.of(&container, watchers, bound).await;
    pod.replace(place).await?;
    Ok(known.into_iter().map(|at| at.since(ended)).collect())
}
