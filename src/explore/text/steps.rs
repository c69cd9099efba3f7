//! The steps of a case.

use std::fmt::Write as _;

use crate::explore::plan::{Branch, Command, ContainerKind, Moment, Op, PodKind, Reader, Work};
use crate::explore::world::{End, Taken};

/// Whether a plan opens subscriptions.
pub(super) fn use_streams(taken: &[Taken]) -> bool {
    taken.iter().any(|taken| {
        let inside = taken.inner.iter().any(|inner| use_streams(inner));
        inside || matches!(taken.op, Op::Subscribe(..) | Op::Deadline(_))
    })
}

/// Writes steps, so many columns to the right.
pub(super) fn write(text: &mut String, taken: &[Taken], indent: usize) {
    for taken in taken {
        step(text, taken, indent);
    }
}

fn step(text: &mut String, taken: &Taken, indent: usize) {
    if taken.op.inner().is_empty() {
        for step in lines(&taken.op, taken.end) {
            let _ = writeln!(text, "{}- {step}", " ".repeat(indent));
        }
    } else {
        block(text, taken, indent);
    }
}

/// The steps that an operation without others inside it is made of.
fn lines(op: &Op, end: End) -> Vec<String> {
    match op {
        Op::Freeze(name) => vec![
            format!("signal: {{container: {name}, signal: SIGSTOP}}"),
            format!("signal: {{container: {name}, signal: SIGCONT}}"),
        ],
        Op::Deadline(name) => vec![
            format!("subscribe: {{as: {name}, deadline: 2s}}"),
            format!("await-end: {{of: {name}, within: 10s}}"),
        ],
        Op::KillSandbox(pod) => vec![
            format!("kill-sandbox: {{sandbox: {pod}}}"),
            format!("await: {{of: {pod}, event: stopped}}"),
            format!("stop-sandbox: {{sandbox: {pod}}}"),
        ],
        op => vec![of_sandbox(op, end).unwrap_or_else(|| simple(op, end))],
    }
}

/// Writes an operation with those inside it.
fn block(text: &mut String, taken: &Taken, indent: usize) {
    let (word, keys, list) = match &taken.op {
        Op::Parallel(branches) => return parallel(text, branches, taken, indent),
        Op::Restart { kill, back_off, .. } => {
            return restart(text, indent, (*kill, *back_off), taken);
        }
        Op::Resubscribe(ops) if ops.is_empty() => {
            let _ = writeln!(text, "{}- resubscribe: {{}}", " ".repeat(indent));
            return;
        }
        Op::Silence(seconds, ops) if ops.is_empty() => {
            let pad = " ".repeat(indent);
            let _ = writeln!(text, "{pad}- stays-silent: {{for: {seconds}s}}");
            return;
        }
        Op::Resubscribe(_) => ("resubscribe", Vec::new(), "meanwhile"),
        Op::Silence(seconds, _) => ("stays-silent", vec![format!("for: {seconds}s")], "steps"),
        Op::StepClock(back, _) => {
            let key = if *back { "back: 10s" } else { "forward: 10s" };
            ("step-clock", vec![key.to_owned()], "steps")
        }
        Op::OnEvent(name, event, _) => ("on-event", of_event(name, *event), "steps"),
        Op::Poll(name, _) => {
            let read = "read: [containers, sandboxes, sandbox-status]".to_owned();
            ("poll-during", vec![format!("of: {name}"), read], "steps")
        }
        Op::Prompt(seconds, _) => {
            let keys = vec![format!("time: {seconds}s")];
            ("calls-return-within", keys, "steps")
        }
        Op::FreezeMonitor(name, _) => {
            let keys = vec![format!("container: {name}")];
            ("freeze-monitor", keys, "steps")
        }
        Op::FillDisk(name, _) => {
            let keys = vec![format!("container: {name}")];
            ("fill-disk", keys, "steps")
        }
        Op::Repeat(times, workers, _) => {
            let workers = (*workers > 1).then(|| format!("workers: {workers}"));
            let times = format!("times: {times}");
            (
                "repeat",
                [times].into_iter().chain(workers).collect(),
                "steps",
            )
        }
        Op::EachHandler(_) => ("for-each-handler", Vec::new(), "steps"),
        _ => return,
    };
    nested(text, indent, (word, &keys, list), taken);
}

fn of_event(name: &str, event: Moment) -> Vec<String> {
    let read = match event {
        Moment::Deleted => "[containers]",
        _ => "[containers, container-status, sandbox-status]",
    };
    vec![
        format!("of: {name}"),
        format!("event: {}", event.word()),
        format!("read: {read}"),
    ]
}

fn parallel(text: &mut String, branches: &[Branch], taken: &Taken, indent: usize) {
    let pad = " ".repeat(indent);
    let _ = writeln!(text, "{pad}- parallel:");
    for (branch, inner) in branches.iter().zip(&taken.inner) {
        let _ = writeln!(text, "{pad}    - steps:");
        if branch.other_client {
            let _ = writeln!(
                text,
                "{pad}        - another-client:\n{pad}            steps:"
            );
            write(text, inner, indent + 14);
        } else {
            write(text, inner, indent + 8);
        }
    }
}

/// Writes a step with keys, and the list of steps under one more.
fn nested(
    text: &mut String,
    indent: usize,
    (word, keys, list): (&str, &[String], &str),
    taken: &Taken,
) {
    let pad = " ".repeat(indent);
    let _ = writeln!(text, "{pad}- {word}:");
    for key in keys {
        let _ = writeln!(text, "{pad}    {key}");
    }
    let _ = writeln!(text, "{pad}    {list}:");
    if let Some(inner) = taken.inner.first() {
        write(text, inner, indent + 6);
    }
}

fn restart(text: &mut String, indent: usize, (kill, back_off): (bool, bool), taken: &Taken) {
    let pad = " ".repeat(indent);
    let how = if kill { "by: kill" } else { "within: 30s" };
    let _ = writeln!(text, "{pad}- restart-runtime:\n{pad}    {how}");
    if back_off {
        let _ = writeln!(text, "{pad}    back-off: true\n{pad}    down: 1s");
    }
    for (key, inner) in ["during", "meanwhile"].into_iter().zip(&taken.inner) {
        if !inner.is_empty() {
            let _ = writeln!(text, "{pad}    {key}:");
            write(text, inner, indent + 6);
        }
    }
    for stream in &taken.ends {
        let _ = writeln!(text, "{pad}- await-end: {{of: {stream}, within: 10s}}");
    }
}

/// The key that says how a call must end.
fn expectation(end: End) -> &'static str {
    match end {
        End::Success => "",
        End::Failure => ", expect: failure",
        End::Either => ", expect: either",
    }
}

/// A step on one line that is about a sandbox.
fn of_sandbox(op: &Op, end: End) -> Option<String> {
    let expect = expectation(end);
    Some(match op {
        Op::Sandbox {
            name,
            attempt_of,
            kind,
        } => {
            let earlier = attempt_of.as_ref().map(|it| format!(", attempt-of: {it}"));
            let earlier = earlier.unwrap_or_default();
            let kind = if earlier.is_empty() {
                sandbox(*kind)
            } else {
                ""
            };
            format!("sandbox: {{as: {name}{earlier}{kind}{expect}}}")
        }
        Op::StopSandbox(pod) => format!("stop-sandbox: {{sandbox: {pod}}}"),
        Op::RemoveSandbox(pod) => format!("remove-sandbox: {{sandbox: {pod}}}"),
        Op::Relist(pod) => format!("relist: {{sandbox: {pod}}}"),
        _ => return None,
    })
}

/// Any other step on one line.
fn simple(op: &Op, end: End) -> String {
    let expect = expectation(end);
    let abandon =
        |after: &Option<u16>| after.map_or(String::new(), |ms| format!(", abandon-after: {ms}ms"));
    match op {
        Op::Create {
            name,
            pod,
            work,
            kind,
            other,
        } => {
            let other = other.as_deref().unwrap_or_default();
            let keys = container(*kind, *work, other);
            let work = workload(*work);
            format!("create: {{as: {name}, in: {pod}, workload: {work}{keys}{expect}}}")
        }
        Op::Start(name, after) => {
            let ends = after.map_or(expect, |_| "");
            format!("start: {{container: {name}{}{ends}}}", abandon(after))
        }
        Op::Stop(name, grace_s, after) => {
            let ends = after.map_or(expect, |_| "");
            let abandon = abandon(after);
            format!("stop: {{container: {name}, grace: {grace_s}s{abandon}{ends}}}")
        }
        Op::Remove(name) => format!("remove: {{container: {name}{expect}}}"),
        Op::RemoveByPrefix(name) => format!("remove: {{container: {name}, by-prefix: true}}"),
        Op::Kill(name) => format!("kill: {{container: {name}}}"),
        Op::Await(name, event) => format!("await: {{of: {name}, event: {}}}", event.word()),
        Op::Exec(name, command) => exec(name, *command, expect),
        Op::ListWithFilters(pod, streamed) => {
            let streamed = if *streamed { ", streamed: true" } else { "" };
            format!("list-with-filters: {{sandbox: {pod}{streamed}}}")
        }
        Op::Call(method, of) => {
            let of = of.as_ref().map(|of| format!(", of: {of}"));
            format!("call: {{method: {method}{}}}", of.unwrap_or_default())
        }
        Op::CallUnknown(method) => format!("call: {{method: {method}, unknown-id: true}}"),
        Op::Subscribe(name, reader) => {
            let reads = match reader {
                Reader::Reads => "",
                Reader::Stalls => ", stalls: true",
                Reader::StoppedProcess => ", stalls: true, own-process: true",
                Reader::Early => ", effective: 250ms",
            };
            format!("subscribe: {{as: {name}{reads}}}")
        }
        Op::ProcessExited(name) => format!("process-exited: {{container: {name}, within: 10s}}"),
        Op::OutsideCri => "outside-cri: {}".to_owned(),
        Op::Unsubscribe(name, hang_up) => {
            let hang_up = if *hang_up { ", hang-up: true" } else { "" };
            format!("unsubscribe: {{subscription: {name}{hang_up}}}")
        }
        Op::Resume(name) => format!("resume: {{subscription: {name}}}"),
        Op::KillMonitor(name) => format!("kill-monitor: {{container: {name}}}"),
        _ => unreachable!("it is written elsewhere"),
    }
}

fn exec(name: &str, command: Command, expect: &str) -> String {
    let (runs, timeout) = match command {
        Command::Exit(code) => (format!("{{exit: {{code: {code}}}}}"), 10),
        Command::Slow(ms) => (format!("{{exit: {{code: 0, after: {ms}ms}}}}"), 10),
        Command::Killed => ("{die: {signal: 9}}".to_owned(), 10),
        Command::TimesOut => ("ignore-term".to_owned(), 1),
    };
    format!("exec: {{container: {name}, runs: {runs}, timeout: {timeout}s{expect}}}")
}

fn sandbox(kind: PodKind) -> &'static str {
    match kind {
        PodKind::Plain => "",
        PodKind::Network => ", own-network: true",
        PodKind::SharedPid => ", shared-pid: true",
        PodKind::Labelled => {
            ", labels: {app: web, tier: front-end}, annotations: {kubernetes.io/config.source: api}"
        }
        PodKind::Memory => ", memory-mib: 64",
        PodKind::Faulty => ", faulty: true",
        PodKind::Refused => ", runtime-handler: no-such-handler",
    }
}

fn container(kind: ContainerKind, work: Work, other: &str) -> String {
    let memory = match work {
        Work::OomGroup => ", memory-mib: 16, oom-group: true",
        _ if work.needs_memory() => ", memory-mib: 16",
        _ => "",
    };
    let kind = match kind {
        ContainerKind::Plain => String::new(),
        ContainerKind::NextAttempt => format!(", attempt-of: {other}"),
        ContainerKind::Tty => ", tty: true".to_owned(),
        ContainerKind::WithMetadata => {
            ", mounted: true, labels: {app: web}, annotations: {io.kubernetes.container.hash: 8f3c}"
                .to_owned()
        }
        ContainerKind::Bulky => ", annotation-kib: 200".to_owned(),
        ContainerKind::StopSignal => ", stop-signal: SIGUSR1".to_owned(),
        ContainerKind::PidTarget => format!(", pid-target: {other}, may-be-refused: true"),
        ContainerKind::NoImage => ", image: missing".to_owned(),
        ContainerKind::Twin => format!(", same-as: {other}"),
        ContainerKind::Abandoned => ", abandon-after: 5ms".to_owned(),
        ContainerKind::CrashAtCreate => ", flaw: crash-at-create, may-be-refused: true".to_owned(),
        ContainerKind::CrashAtStart => ", flaw: crash-at-start".to_owned(),
        ContainerKind::CrashAtKill => ", flaw: crash-at-kill".to_owned(),
        ContainerKind::CrashAtDelete => ", flaw: crash-at-delete".to_owned(),
    };
    format!("{memory}{kind}")
}

fn workload(work: Work) -> String {
    match work {
        Work::UntilTerm => "until-term".to_owned(),
        Work::IgnoreTerm => "ignore-term".to_owned(),
        Work::UntilSignal => "{until-signal: {signal: SIGUSR1, code: 42}}".to_owned(),
        Work::Exit(code, 0) => format!("{{exit: {{code: {code}}}}}"),
        Work::Exit(code, ms) => format!("{{exit: {{code: {code}, after: {ms}ms}}}}"),
        Work::Die(signal, ms) => format!("{{die: {{signal: {signal}, after: {ms}ms}}}}"),
        Work::DumpCore => "{dump-core: {signal: 11, after: 300ms}}".to_owned(),
        Work::Oom | Work::OomByPod => "{allocate: {mib: 128, after: 500ms}}".to_owned(),
        Work::OomOnTerm => "{allocate-on-term: {mib: 128}}".to_owned(),
        Work::OomOfChild => {
            "{allocate-in-child: {mib: 128, after: 500ms, then: 1s, code: 0}}".to_owned()
        }
        Work::OomGroup => {
            "{allocate-in-child: {mib: 128, after: 500ms, then: 5s, code: 0}}".to_owned()
        }
        Work::OrphanChild => "{orphan-child: {code: 3, after: 300ms}}".to_owned(),
        Work::MissingProgram => "missing-program".to_owned(),
        Work::Zombies => "{zombies: 20}".to_owned(),
    }
}
