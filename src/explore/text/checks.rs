//! The checks that follow from what is certain after a plan.

use crate::explore::plan::{ContainerKind, Moment, PodKind, Work};
use crate::explore::world::{Container, EndedBy, Life, PodState, Remains, World};

/// The checks, each as a line of a case.
pub(super) fn checks(world: &World) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, container) in &world.containers {
        of_container(name, container, world, &mut lines);
    }
    for (name, pod) in &world.pods {
        of_pod(name, pod.state, pod.heard, &mut lines);
    }
    for (name, remains) in &world.unmade {
        let is = match remains {
            Remains::Absent => "absent",
            Remains::Consistent => "consistent",
            Remains::Unheard => continue,
        };
        push(&mut lines, "aftermath", format!("{{of: {name}, is: {is}}}"));
    }
    for (name, stream) in &world.streams {
        if !stream.stalled {
            push(&mut lines, "subscription", format!("{{of: {name}, stays: open}}"));
        }
    }
    lines
}

fn push(lines: &mut Vec<String>, word: &str, keys: String) {
    lines.push(format!("{word}: {keys}"));
}

fn of_container(name: &str, container: &Container, world: &World, lines: &mut Vec<String>) {
    let mut push = |word, keys: String| push(lines, word, keys);
    let of = format!("of: {name}");
    push("no-repeats", format!("{{{of}}}"));
    push("matches-spec", format!("{{{of}}}"));
    let Some(events) = &container.events else {
        return;
    };
    let words: Vec<&str> = events.iter().map(|event| event.word()).collect();
    push("events", format!("{{{of}, exactly: [{}]}}", words.join(", ")));
    push("created-at-valid", format!("{{{of}}}"));
    push("status-times", format!("{{{of}}}"));
    if container.kind != ContainerKind::PidTarget {
        push("own-status", format!("{{{of}}}"));
    }
    if !container.has(Moment::Stopped) {
        return;
    }
    let stopped = format!("{of}, event: stopped");
    let killed_137 = "exit-code: {is: 137}, not-reason: [OOMKilled]";
    let pod = world.pods.get(&container.pod);
    let limited = pod.is_some_and(|pod| pod.kind == PodKind::Memory);
    match (container.ended_by, container.work) {
        (None, Work::Oom | Work::OomGroup) => push(
            "status",
            format!("{{{stopped}, exit-code: {{is: 137}}, reason: [OOMKilled]}}"),
        ),
        (None, Work::Exit(..) | Work::Die(..) | Work::DumpCore | Work::OrphanChild)
            if container.life == Life::Exited || container.life == Life::Ending =>
        {
            push("status", format!("{{{stopped}, exit-code: declared, not-reason: [OOMKilled]}}"));
            push(
                "timing",
                format!("{{{stopped}, after: start-returned, at-most: 9s}}"),
            );
        }
        (Some(EndedBy::Kill | EndedBy::Stop { grace_s: 0, .. }), work)
            if !work.needs_memory() && !limited =>
        {
            push("status", format!("{{{stopped}, {killed_137}}}"));
        }
        (Some(EndedBy::Stop { grace_s, .. }), Work::IgnoreTerm) if !limited => {
            push("status", format!("{{{stopped}, {killed_137}}}"));
            if container.stops == 1 {
                push(
                    "timing",
                    format!(
                        "{{{stopped}, after: stop-called, at-least: {}ms, at-most: {}s}}",
                        u32::from(grace_s) * 1_000 - 100,
                        grace_s + 5
                    ),
                );
            }
        }
        (Some(EndedBy::Stop { warm: true, .. }), Work::UntilTerm) if !limited => {
            push("status", format!("{{{stopped}, exit-code: {{is: 0}}}}"));
        }
        _ => {}
    }
}

fn of_pod(name: &str, state: PodState, heard: bool, lines: &mut Vec<String>) {
    let of = format!("of: {name}");
    push(lines, "no-repeats", format!("{{{of}}}"));
    if !heard {
        return;
    }
    push(lines, "matches-spec", format!("{{{of}}}"));
    let events = match state {
        PodState::Ready | PodState::Dead => "started",
        PodState::Stopped | PodState::Removed => "started, stopped",
    };
    push(lines, "includes", format!("{{{of}, in-order: [{events}]}}"));
    if state == PodState::Ready {
        push(lines, "never", format!("{{{of}, event: stopped}}"));
    }
}
