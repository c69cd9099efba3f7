//! The checks that follow from what is certain after a plan.

use crate::explore::plan::{ContainerKind, Moment, PodKind, Work};
use crate::explore::world::{Container, EndedBy, Life, Pod, PodState, Remains, Unmade, World};

/// The checks, each as a line of a case.
pub(super) fn checks(world: &World, silent: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, container) in &world.containers {
        of_container(name, container, world, &mut lines);
        if !silent {
            of_answers(name, container, world, &mut lines);
        }
    }
    for (name, pod) in &world.pods {
        of_pod(name, pod, &mut lines);
        let has_addresses = pod.has_certain_events && pod.kind == PodKind::Network && !silent;
        if has_addresses && pod.state == PodState::Ready {
            push(&mut lines, "addresses", format!("{{of: {name}}}"));
        }
        if pod.has_certain_events && pod.state == PodState::Removed {
            for container in world.names_in(name) {
                let is_heard = world.containers.get(&container);
                if is_heard.is_some_and(|it| it.has(Moment::Deleted)) {
                    let first = format!("{{of: {container}, event: deleted}}");
                    let then = format!("{{of: {name}, event: deleted}}");
                    push(
                        &mut lines,
                        "order",
                        format!("{{first: {first}, then: {then}}}"),
                    );
                }
            }
        }
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
        push(&mut lines, "aftermath", format!("{{of: {name}, is: {is}}}"));
    }
    for (name, stream) in &world.streams {
        let stays = if stream.behind { "" } else { ", stays: open" };
        let events = match stream {
            stream if stream.stalled || !stream.accompanied => "",
            _ => ", events: same-as-main-stream",
        };
        if !stays.is_empty() || !events.is_empty() {
            push(
                &mut lines,
                "subscription",
                format!("{{of: {name}{stays}{events}}}"),
            );
        }
    }
    lines
}

/// What may remain of a creation that a client has given up.
const OF_GIVEN_UP: [Remains; 2] = [Remains::Consistent, Remains::Unobserved];

/// Whether the sandbox of what could not be made may have a container of which no client knows, and
/// of which one of these may remain.
fn has_unknown(world: &World, unmade: &Unmade, remains: &[Remains]) -> bool {
    let mut others = world.unmade.values();
    others.any(|other| {
        remains.contains(&other.remains) && unmade.pod.is_some() && unmade.pod == other.pod
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "every caller has made the text for this"
)]
fn push(lines: &mut Vec<String>, word: &str, keys: String) {
    lines.push(format!("{word}: {keys}"));
}

fn of_container(name: &str, container: &Container, world: &World, lines: &mut Vec<String>) {
    let mut push = |word, keys: String| push(lines, word, keys);
    let of = format!("of: {name}");
    push("no-repeats", format!("{{{of}}}"));
    let pod = world.pods.get(&container.pod);
    if pod.is_none_or(|pod| !pod.names_handler) {
        push("matches-spec", format!("{{{of}}}"));
    }
    if container.failed {
        push("never", format!("{{{of}, event: started}}"));
    }
    if !container.tail.is_empty() {
        let words: Vec<&str> = container.tail.iter().map(|event| event.word()).collect();
        push(
            "includes",
            format!("{{{of}, in-order: [{}]}}", words.join(", ")),
        );
    }
    let Some(events) = &container.events else {
        return;
    };
    if container.listed {
        push("filtered", format!("{{{of}}}"));
    }
    let words: Vec<&str> = events.iter().map(|event| event.word()).collect();
    push(
        "events",
        format!("{{{of}, exactly: [{}]}}", words.join(", ")),
    );
    push("message-size", format!("{{{of}, at-most-kib: 4096}}"));
    if !world.clock_stepped {
        push("created-at-valid", format!("{{{of}}}"));
        push("status-times", format!("{{{of}}}"));
        let limits = "median: 1900ms, p99: 1900ms";
        push("latency", format!("{{{of}, event: created, {limits}}}"));
    }
    if container.asked && !world.clock_stepped {
        push("same-status", format!("{{{of}}}"));
    }
    // Of what is removed while it runs, a rule about all snapshots tells more.
    let removed_running = container.ended_by == Some(EndedBy::Removal);
    if container.kind != ContainerKind::PidTarget && !removed_running {
        push("own-status", format!("{{{of}}}"));
    }
    // Where the limit of a pod is exceeded, a runtime may say of all that ends there that it was
    // killed for it.
    let not_oom = match pod.map(|pod| pod.kind) {
        Some(PodKind::Memory) => "",
        _ => ", not-reason: [OOMKilled]",
    };
    let withstands_term = container.withstands_term(pod.map(|pod| pod.kind));
    of_own_exit(&of, container, not_oom, lines);
    of_ending(&of, container, withstands_term, not_oom, lines);
}

/// What the answers to the run's own calls must show, if it makes some.
fn of_answers(name: &str, container: &Container, world: &World, lines: &mut Vec<String>) {
    let pod = world.pods.get(&container.pod);
    let is_relisted = pod.is_some_and(|pod| pod.relisted);
    if let Some(state) = last_state(container).filter(|_| is_relisted) {
        push(lines, "last-state", format!("{{of: {name}, is: {state}}}"));
    }
    if container.life == Life::Failed {
        push(lines, "explained", format!("{{of: {name}}}"));
    }
    let events = container.events.iter().flatten().skip(1);
    for event in events {
        let event = event.word();
        push(lines, "shown", format!("{{of: {name}, event: {event}}}"));
    }
}

/// How a container must have ended by itself.
fn of_own_exit(of: &str, container: &Container, not_oom: &str, lines: &mut Vec<String>) {
    let mut push = |word, keys: String| push(lines, word, keys);
    if !container.has(Moment::Stopped) || container.ended_by.is_some() {
        return;
    }
    let stopped = format!("{of}, event: stopped");
    match container.work {
        Work::Oom | Work::OomGroup | Work::OomByPod => push(
            "status",
            format!("{{{stopped}, exit-code: {{is: 137}}, reason: [OOMKilled]}}"),
        ),
        Work::Exit(..) | Work::Die(..) | Work::DumpCore | Work::OrphanChild
            if container.life == Life::Exited || container.life == Life::Ending =>
        {
            push(
                "status",
                format!("{{{stopped}, exit-code: declared{not_oom}}}"),
            );
            push(
                "timing",
                format!("{{{stopped}, after: start-returned, at-most: 9s}}"),
            );
        }
        Work::OomOfChild => push("status", format!("{{{stopped}, exit-code: declared}}")),
        _ => {}
    }
}

/// How a container must have been ended.
fn of_ending(
    of: &str,
    container: &Container,
    withstands_term: bool,
    not_oom: &str,
    lines: &mut Vec<String>,
) {
    let mut push = |word, keys: String| push(lines, word, keys);
    let Some(ended_by) = container
        .ended_by
        .filter(|_| container.has(Moment::Stopped))
    else {
        return;
    };
    let stopped = format!("{of}, event: stopped");
    let mut exits_with = |code: u8| {
        push(
            "status",
            format!("{{{stopped}, exit-code: {{is: {code}}}{not_oom}}}"),
        );
    };
    match (ended_by, container.work) {
        (EndedBy::Kill, work) if !work.needs_memory() => exits_with(137),
        (EndedBy::Removal, Work::IgnoreTerm) if withstands_term => exits_with(137),
        (EndedBy::Stop { grace_s, .. }, Work::IgnoreTerm) if withstands_term => {
            exits_with(137);
            if container.stops == 1 {
                push(
                    "timing",
                    format!(
                        "{{{stopped}, after: stop-called, at-least: {}ms, at-most: {}s}}",
                        (u32::from(grace_s) * 1_000).saturating_sub(100),
                        grace_s + 5
                    ),
                );
            }
        }
        (
            // Without a grace period, some runtimes send the stop signal all the same.
            EndedBy::Stop {
                has_begun: true,
                grace_s: 1..,
            },
            Work::UntilTerm,
        ) => exits_with(0),
        (
            EndedBy::Stop {
                has_begun: true,
                grace_s: 2..,
            },
            Work::UntilSignal,
        ) if container.kind == ContainerKind::StopSignal => exits_with(42),
        _ => {}
    }
}

/// The state that the last list must show, and the exit code where only SIGKILL can have ended it.
fn last_state(container: &Container) -> Option<&'static str> {
    match container.life {
        Life::Created => Some("created"),
        Life::Running => Some("running"),
        Life::Exited if container.ended_by == Some(EndedBy::Kill) => Some("exited, exit-code: 137"),
        Life::Exited => Some("exited"),
        Life::Ending | Life::Failed | Life::Removed | Life::Unsure => None,
    }
}

fn of_pod(name: &str, pod: &Pod, lines: &mut Vec<String>) {
    let of = format!("of: {name}");
    push(lines, "no-repeats", format!("{{{of}}}"));
    if !pod.has_certain_events {
        return;
    }
    if pod.listed {
        push(lines, "filtered", format!("{{{of}}}"));
    }
    if !pod.names_handler {
        push(lines, "matches-spec", format!("{{{of}}}"));
    }
    let events = match pod.state {
        PodState::Ready | PodState::Dead => "started",
        PodState::Stopped | PodState::Removed => "started, stopped",
    };
    push(lines, "includes", format!("{{{of}, in-order: [{events}]}}"));
    if pod.state == PodState::Stopped {
        push(lines, "answered", format!("{{{of}}}"));
    }
    if pod.state == PodState::Ready {
        push(lines, "never", format!("{{{of}, event: stopped}}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::capabilities::Capabilities;

    /// The lines on what remains of these creations in one sandbox.
    fn lines(creations: &[(&str, Remains)]) -> Vec<String> {
        let mut world = World::new(Capabilities::default());
        for (name, remains) in creations {
            let unmade = Unmade {
                remains: *remains,
                pod: Some("pod".to_owned()),
            };
            world.unmade.insert((*name).to_owned(), unmade);
        }
        checks(&world, true)
    }

    #[test]
    fn no_rest_is_judged_that_could_be_that_of_another_creation() {
        use Remains::{Absent, Consistent, Unobserved};
        assert_eq!(lines(&[("a", Absent), ("b", Absent)]).len(), 2);
        assert_eq!(lines(&[("a", Absent), ("b", Consistent)]).len(), 1);
        assert_eq!(lines(&[("a", Consistent), ("b", Consistent)]).len(), 2);
        assert_eq!(lines(&[("a", Consistent), ("b", Unobserved)]).len(), 0);
        assert_eq!(lines(&[("a", Absent), ("b", Unobserved)]).len(), 0);
    }

    #[test]
    fn a_rest_in_another_sandbox_is_judged() {
        let mut world = World::new(Capabilities::default());
        for (name, remains) in [("a", Remains::Absent), ("b", Remains::Unobserved)] {
            let pod = Some(format!("pod-of-{name}"));
            world
                .unmade
                .insert(name.to_owned(), Unmade { remains, pod });
        }
        assert_eq!(checks(&world, true).len(), 1);
    }
}
