//! The lines of a history with every kind of entry.

use std::sync::Arc;

use bytes::Bytes;
use expect_test::{Expect, expect};

use super::timeline;
use crate::history::{
    Body, CallId, CaseHistory, CaseRun, ContainerId, ContainerSpec, Entry, Reply, Request,
    RuntimeNanos, SandboxReport, Seq, Subject, SubscriptionId,
};
use crate::report::fixture::{AWKWARD, at, entries};

#[track_caller]
fn check(entries: &[Arc<Entry>], marked: &[Seq], expect: &Expect) {
    let lines = timeline(at(0), entries.iter().map(AsRef::as_ref), marked);
    assert!(lines.iter().all(|line| !line.contains(char::is_control)));
    // The first line keeps `expect!` from taking the others' indentation for its own.
    expect.assert_eq(&format!("lines:\n{}\n", lines.join("\n")));
}

#[test]
fn every_kind_of_entry_is_one_line() {
    check(
        &entries(),
        &[Seq(10)],
        &expect![[r#"
            lines:
                  #0     +0.000  run     0f6a1c1e-3f0b-4b52-9a25-6f2f3c1d7e11 by 0.1.0 (abcdef0) against containerd 2.1.9 at unix:///run/containerd/containerd.sock, 2026-11-20T16:52:40.000Z
                  #1     +0.001  stream  1 asked for
                  #2     +0.009  stream  1 proven live
                  #3     +0.010  case    3 begins: ORD-01
                  #4     +0.011  rpc     RunPodSandbox pod called, call 1
                  #5     +0.098  event   CREATED pod  pod READY  []  lag 1.0 ms
                  #6     +0.112  rpc     RunPodSandbox pod → b7c1d2e3f4a59 in 101.0 ms
                  #7     +0.113  rpc     CreateContainer c in pod called, call 2
                  #8     +0.120  rpc     CreateContainer c in pod → 3f2a9c81d0e4b in 7.0 ms
                  #9     +0.121  rpc     StartContainer c (3f2a9c81d0e4b) called, call 3
            >    #10     +0.150  event   STOPPED c  pod READY  [c RUNNING, d0d0d0d0d0d0d EXITED 137 OOMKilled]  lag 1.0 ms
                 #11     +0.151  event   STARTED c  pod READY  [c RUNNING, d0d0d0d0d0d0d EXITED 137 OOMKilled]  lag 1.0 ms
                 #12     +0.156  rpc     StartContainer c (3f2a9c81d0e4b) → ok in 35.0 ms
                 #13     +0.157  relist  ListContainers of pod called, call 4
                 #14     +0.158  relist  ListContainers of pod → [c RUNNING, 99ffee\u{1b}[31mdd RUNNING] in 1.0 ms
                 #15     +0.159  rpc     StopContainer c (3f2a9c81d0e4b), grace 2s called, call 5
                 #16     +4.159  rpc     StopContainer c (3f2a9c81d0e4b), grace 2s → failed with DEADLINE_EXCEEDED: \u{1b}[31mred\u{1b}[0m \u{0}\u{1} ]]> <b>&amp;"'\r\nnext\u{f… in 4.000 s
                 #17     +4.160  event   UNKNOWN(9) 99ffee\u{1b}[31mdd  NO sandbox status  [(no id) UNKNOWN(3) \u{1b}[31mred\u{1b}[0m …, (no id) UNKNOWN(3) \u{1b}[31mred\u{1b}[0m …, (no id) UNKNOWN(3) \u{1b}[31mred\u{1b}[0m …, (no id) UNKNOWN(3) \u{1b}[31mred\u{1b}[0m …, (no id) UNKNOWN(3) \u{1b}[31mred\u{1b}[0m …, (no id) UNKNOWN(3) \u{1b}[31mred\u{1b}[0m …, and 3 more]  created_at NOT set
                 #18     +9.160  wait    for DELETED of c: did NOT come within 5s: the container runs
                 #19     +9.161  fact    OOM kills of the host since boot: 7
                 #20     +9.162  case    3 has done its steps; teardown begins
                 #21     +9.163  case    3 ends
                 #22     +9.164  stream  1 broke with UNAVAILABLE: \u{1b}[31mred\u{1b}[0m \u{0}\u{1} ]]> <b>&amp;"'\r\nnext\u{fffe} \…
        "#]],
    );
}

#[test]
fn containers_in_a_sandboxs_status_are_shown() {
    let mut all = entries();
    let Body::Event { event, .. } = all[10].body.clone() else {
        panic!("not an event");
    };
    let alone = SandboxReport::from(event.sandbox.expect("a sandbox").into_inner());
    let whole = SandboxReport {
        containers: event.containers,
        timestamp: RuntimeNanos(7),
        ..alone.clone()
    };
    for (place, report) in [(11, alone), (12, whole)] {
        Arc::make_mut(&mut all[place]).body = Body::CallEnded {
            call: CallId(9),
            result: Ok(Reply::SandboxStatus(report)),
            message: Bytes::new(),
        };
    }
    check(
        &all[11..13],
        &[],
        &expect![[r#"
        lines:
             #11     +0.151  rpc     call 9 → READY
             #12     +0.156  rpc     call 9 → READY  [3f2a9c81d0e4b RUNNING, d0d0d0d0d0d0d EXITED 137 OOMKilled]  read at 7
    "#]],
    );
}

#[test]
fn an_id_without_its_call_is_shown_short() {
    check(
        &entries()[10..13],
        &[],
        &expect![[r#"
            lines:
                 #10     +0.150  event   STOPPED 3f2a9c81d0e4b  b7c1d2e3f4a59 READY  [3f2a9c81d0e4b RUNNING, d0d0d0d0d0d0d EXITED 137 OOMKilled]  lag 1.0 ms
                 #11     +0.151  event   STARTED 3f2a9c81d0e4b  b7c1d2e3f4a59 READY  [3f2a9c81d0e4b RUNNING, d0d0d0d0d0d0d EXITED 137 OOMKilled]  lag 1.0 ms
                 #12     +0.156  rpc     call 3 → ok
        "#]],
    );
}

#[test]
fn a_name_drives_no_terminal_wherever_it_is_learnt() {
    let mut entries = entries();
    for entry in &mut entries {
        if let Body::CallBegan { request, .. } = &mut Arc::make_mut(entry).body {
            rename(request);
        }
    }
    // Without the call that makes the sandbox, its name is learnt from a container of it.
    for first in [0, 6] {
        let entries = entries[first..].iter().map(AsRef::as_ref);
        for line in timeline(at(0), entries, &[]) {
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}

fn rename(request: &mut Request) {
    if let Request::RunSandbox(spec) = request {
        Arc::make_mut(spec).binding = AWKWARD.to_owned();
    }
    if let Request::CreateContainer(spec) = request {
        let spec = Arc::make_mut(spec);
        spec.binding = AWKWARD.to_owned();
        Arc::make_mut(&mut spec.sandbox_spec).binding = AWKWARD.to_owned();
    }
}

#[test]
fn names_of_several_cases_and_streams_are_distinguished() {
    let mut entries = entries();
    let mut change = |seq: usize, body| {
        let at = entries[seq].at;
        let seq_number = entries[seq].seq;
        entries[seq] = Arc::new(Entry {
            seq: seq_number,
            at,
            body,
        });
    };
    change(
        2,
        Body::SubscriptionOpened {
            subscription: SubscriptionId(2),
            observer: None,
        },
    );
    change(0, Body::CaseEnded { case: CaseRun(2) });
    change(
        1,
        Body::CaseBegan {
            case: CaseRun(4),
            id: "X".to_owned(),
            definition: String::new(),
            timeout_percent: 100,
        },
    );
    check(
        &entries[..13],
        &[],
        &expect![[r#"
            lines:
                  #0     +0.000  case    2 ends
                  #1     +0.001  case    4 begins: X
                  #2     +0.009  stream  2 asked for
                  #3     +0.010  case    3 begins: ORD-01
                  #4     +0.011  rpc     RunPodSandbox pod@3 called, call 1
                  #5     +0.098  event   CREATED pod@3  pod@3 READY  []  lag 1.0 ms, stream 1
                  #6     +0.112  rpc     RunPodSandbox pod@3 → b7c1d2e3f4a59 in 101.0 ms
                  #7     +0.113  rpc     CreateContainer c@3 in pod@3 called, call 2
                  #8     +0.120  rpc     CreateContainer c@3 in pod@3 → 3f2a9c81d0e4b in 7.0 ms
                  #9     +0.121  rpc     StartContainer c@3 (3f2a9c81d0e4b) called, call 3
                 #10     +0.150  event   STOPPED c@3  pod@3 READY  [c@3 RUNNING, d0d0d0d0d0d0d EXITED 137 OOMKilled]  lag 1.0 ms, stream 1
                 #11     +0.151  event   STARTED c@3  pod@3 READY  [c@3 RUNNING, d0d0d0d0d0d0d EXITED 137 OOMKilled]  lag 1.0 ms, stream 1
                 #12     +0.156  rpc     StartContainer c@3 (3f2a9c81d0e4b) → ok in 35.0 ms
        "#]],
    );
}

#[test]
fn a_container_that_is_returned_twice_keeps_its_first_name() {
    let case = CaseRun(0);
    let creation = |number, binding: &str| {
        let spec = ContainerSpec {
            binding: binding.to_owned(),
            ..ContainerSpec::default()
        };
        let call = CallId(number);
        let request = Request::CreateContainer(Arc::new(spec));
        let result = Ok(Reply::Container(ContainerId::from("beef")));
        let began = Body::CallBegan {
            call,
            case: Some(case),
            request,
            message: Bytes::new(),
        };
        [
            began,
            Body::CallEnded {
                call,
                result,
                message: Bytes::new(),
            },
        ]
    };
    let removal = Body::CallBegan {
        call: CallId(2),
        case: Some(case),
        request: Request::RemoveContainer(ContainerId::from("beef")),
        message: Bytes::new(),
    };
    let creations = [creation(0, "c"), creation(1, "twin")];
    let bodies = creations.into_iter().flatten().chain([removal]);
    let entry = |(seq, body)| {
        let (seq, at) = (Seq(seq), at(0));
        Arc::new(Entry { seq, at, body })
    };
    let entries: Vec<_> = (0..).zip(bodies).map(entry).collect();
    let mut history = CaseHistory::new(case);
    for entry in &entries {
        history.push(entry);
    }
    let names: Vec<_> = history.subjects().iter().map(Subject::binding).collect();
    assert_eq!(names, [Some("c")]);
    let lines = timeline(at(0), entries.iter().map(AsRef::as_ref), &[]);
    assert!(lines[4].contains("RemoveContainer c (beef)"), "{lines:#?}");
}
