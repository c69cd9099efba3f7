//! The checks that follow from the certain effects of a plan.

use std::time::Duration;

use serde_json::{Value, json};

use super::plan::with_word;
use super::world::{Container, EndedBy, Life, Pod, PodState, Remains, Unmade, World};
use crate::case::WorkloadSpec;
use crate::checks::Check;
use crate::history::EventKind;

/// The checks on a walk. In a silent one nothing but its steps asks the runtime.
pub(super) fn checks(world: &World, silent: bool) -> Vec<Check> {
    let mut all = Vec::new();
    for (name, container) in &world.containers {
        all.extend(of_container(name, container, world));
        if !silent {
            all.extend(of_answers(name, container, world));
        }
    }
    for (name, pod) in &world.pods {
        all.extend(of_pod(name, pod, world, silent));
    }
    for (name, unmade) in &world.unmade {
        let is = match unmade.remains {
            // What is left of it could not be told from what a client has given up.
            Remains::Absent if has_unknown(world, unmade, &OF_GIVEN_UP) => continue,
            Remains::Absent => "absent",
            Remains::Consistent if has_unknown(world, unmade, &[Remains::Unobserved]) => continue,
            Remains::Consistent => "consistent",
            Remains::Unobserved => continue,
        };
        all.push(check("aftermath", json!({"of": name, "is": is})));
    }
    for (name, stream) in &world.streams {
        let mut keys = json!({"of": name});
        if !stream.behind {
            keys["stays"] = "open".into();
        }
        if !stream.stalled && stream.accompanied {
            keys["events"] = "same-as-main-stream".into();
        }
        if keys != json!({"of": name}) {
            all.push(check("subscription", keys));
        }
    }
    all
}

/// The possible remains of a creation that a client has given up.
const OF_GIVEN_UP: [Remains; 2] = [Remains::Consistent, Remains::Unobserved];

/// Whether the sandbox of a failed creation may have a container that no client knows, with one of
/// these remains.
fn has_unknown(world: &World, unmade: &Unmade, remains: &[Remains]) -> bool {
    let mut others = world.unmade.values();
    others.any(|other| {
        remains.contains(&other.remains) && unmade.pod.is_some() && unmade.pod == other.pod
    })
}

/// A check by its word and its keys, as a case file has them.
fn check(word: &str, keys: Value) -> Check {
    with_word(word, keys)
}

fn of_container(name: &str, container: &Container, world: &World) -> Vec<Check> {
    let on = |word| check(word, json!({"of": name}));
    let home = world.pods.get(&container.spec.sandbox);
    let mut all = vec![on("no-repeats")];
    if container.failed {
        all.push(check("never", json!({"of": name, "event": "started"})));
    }
    if !container.tail.is_empty() {
        let keys = json!({"of": name, "in-order": container.tail});
        all.push(check("includes", keys));
    }
    let Some(events) = &container.events else {
        return all;
    };
    all.push(check("events", json!({"of": name, "exactly": events})));
    all.push(check(
        "message-size",
        json!({"of": name, "at-most-kib": 4096}),
    ));
    if !world.clock_stepped {
        let limits = json!({"of": name, "event": "created", "median": "1900ms", "p99": "1900ms"});
        all.push(check("latency", limits));
    }
    if container.has(EventKind::Stopped) {
        all.extend(of_end(name, container, home));
    }
    all
}

/// The checks of the answers to the run's own calls.
fn of_answers(name: &str, container: &Container, world: &World) -> Vec<Check> {
    let mut all = Vec::new();
    let is_relisted = world
        .pods
        .get(&container.spec.sandbox)
        .is_some_and(|pod| pod.relisted);
    let last = match container.life {
        Life::Created => Some("created"),
        Life::Running => Some("running"),
        Life::Exited => Some("exited"),
        Life::Ending | Life::Failed | Life::Removed | Life::Unsure => None,
    };
    if let Some(state) = last.filter(|_| is_relisted) {
        let mut keys = json!({"of": name, "is": state});
        if state == "exited" && container.ended_by == Some(EndedBy::Kill) {
            keys["exit-code"] = 137.into();
        }
        all.push(check("last-state", keys));
    }
    if container.life == Life::Failed {
        all.push(check("explained", json!({"of": name})));
    }
    all
}

/// How a container must have ended: by itself, or from outside.
fn of_end(name: &str, container: &Container, home: Option<&Pod>) -> Vec<Check> {
    let of_stopped = |word, mut keys: Value| {
        keys["of"] = name.into();
        keys["event"] = "stopped".into();
        check(word, keys)
    };
    // Where the limit of a pod is exceeded, a runtime may say of all that ends there that it was
    // killed for it.
    let is_limited = home.is_some_and(|pod| pod.spec.memory_mib.is_some());
    let exits = |code: Value| {
        let mut keys = json!({"exit-code": code});
        if !is_limited {
            keys["not-reason"] = json!(["OOMKilled"]);
        }
        of_stopped("status", keys)
    };
    let exits_with = |code: u8| exits(json!({"is": code}));
    let spec = &container.spec;
    let withstands_term = container.withstands_term(home.map(|pod| &pod.spec));
    let Some(ended_by) = container.ended_by else {
        return of_own_exit(container, &exits, &of_stopped);
    };
    match (ended_by, &spec.workload) {
        (EndedBy::Kill, _) if spec.memory_mib.is_none() => vec![exits_with(137)],
        (EndedBy::Removal, WorkloadSpec::IgnoreTerm) if withstands_term => vec![exits_with(137)],
        (EndedBy::Stop { grace, .. }, WorkloadSpec::IgnoreTerm) if withstands_term => {
            let mut all = vec![exits_with(137)];
            if container.stops == 1 {
                let at_least = grace.as_millis().saturating_sub(100);
                let at_most = grace.as_secs() + 5;
                let keys = json!({
                    "after": "stop-called",
                    "at-least": format!("{at_least}ms"),
                    "at-most": format!("{at_most}s"),
                });
                all.push(of_stopped("timing", keys));
            }
            all
        }
        // Without a grace period, some runtimes send the stop signal all the same.
        (
            EndedBy::Stop {
                grace,
                has_begun: true,
            },
            WorkloadSpec::UntilTerm,
        ) if grace > Duration::ZERO => {
            vec![exits_with(0)]
        }
        (
            EndedBy::Stop {
                grace,
                has_begun: true,
            },
            WorkloadSpec::UntilSignal(_),
        ) if grace >= Duration::from_secs(2) && spec.stop_signal.is_some() => {
            vec![exits_with(42)]
        }
        _ => Vec::new(),
    }
}

/// How a container must have ended by itself.
fn of_own_exit(
    container: &Container,
    exits: &dyn Fn(Value) -> Check,
    of_stopped: &dyn Fn(&'static str, Value) -> Check,
) -> Vec<Check> {
    match container.spec.workload {
        WorkloadSpec::AllocateInChild(_) if !container.spec.oom_group => {
            vec![of_stopped("status", json!({"exit-code": "declared"}))]
        }
        WorkloadSpec::Allocate(_) | WorkloadSpec::AllocateInChild(_) => {
            let keys = json!({"exit-code": {"is": 137}, "reason": ["OOMKilled"]});
            vec![of_stopped("status", keys)]
        }
        WorkloadSpec::Exit(_)
        | WorkloadSpec::Die(_)
        | WorkloadSpec::DumpCore(_)
        | WorkloadSpec::OrphanChild(_)
            if matches!(container.life, Life::Exited | Life::Ending) =>
        {
            let soon = json!({"after": "start-returned", "at-most": "9s"});
            vec![exits("declared".into()), of_stopped("timing", soon)]
        }
        _ => Vec::new(),
    }
}

fn of_pod(name: &str, pod: &Pod, world: &World, silent: bool) -> Vec<Check> {
    let on = |word| check(word, json!({"of": name}));
    let mut all = vec![on("no-repeats")];
    if !pod.has_certain_events {
        return all;
    }
    let events = match pod.state {
        PodState::Ready | PodState::Dead => &["started"][..],
        PodState::Stopped | PodState::Removed => &["started", "stopped"],
    };
    all.push(check("includes", json!({"of": name, "in-order": events})));
    match pod.state {
        PodState::Stopped => all.push(on("answered")),
        PodState::Ready => {
            all.push(check("never", json!({"of": name, "event": "stopped"})));
            if pod.spec.own_network && !silent {
                all.push(on("addresses"));
            }
        }
        PodState::Removed => {
            let deleted = |name: &str| json!({"of": name, "event": "deleted"});
            let containers = world.containers.iter();
            let inside = containers.filter(|(_, it)| it.spec.sandbox == name);
            let heard = inside.filter(|(_, it)| it.has(EventKind::Deleted));
            all.extend(heard.map(|(container, _)| {
                let order = json!({"first": deleted(container), "then": deleted(name)});
                check("order", order)
            }));
        }
        PodState::Dead => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::plan::Capabilities;

    /// The number of checks on the remains of these creations, each in its sandbox.
    fn count(creations: &[(&str, Remains, &str)]) -> usize {
        let mut world = World::new(Capabilities::default());
        for (name, remains, pod) in creations {
            let unmade = Unmade {
                remains: *remains,
                pod: Some((*pod).to_owned()),
                lacks_image: false,
            };
            world.unmade.insert((*name).to_owned(), unmade);
        }
        checks(&world, true).len()
    }

    #[test]
    fn no_rest_is_judged_that_could_be_that_of_another_creation() {
        use Remains::{Absent, Consistent, Unobserved};
        assert_eq!(count(&[("a", Absent, "pod"), ("b", Absent, "pod")]), 2);
        assert_eq!(count(&[("a", Absent, "pod"), ("b", Consistent, "pod")]), 1);
        assert_eq!(
            count(&[("a", Consistent, "pod"), ("b", Consistent, "pod")]),
            2
        );
        assert_eq!(
            count(&[("a", Consistent, "pod"), ("b", Unobserved, "pod")]),
            0
        );
        assert_eq!(count(&[("a", Absent, "pod"), ("b", Unobserved, "pod")]), 0);
    }

    #[test]
    fn a_rest_in_another_sandbox_is_judged() {
        let creations = [
            ("a", Remains::Absent, "pod-of-a"),
            ("b", Remains::Unobserved, "pod-of-b"),
        ];
        assert_eq!(count(&creations), 1);
    }
}
