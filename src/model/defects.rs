//! Named ways of being wrong, each of which some case or invariant must notice.
//!
//! A defect changes a [`Behaviour`] and nothing else. `tests/defects.rs` runs what a line names on
//! a model with the defect, and demands that it fails.

mod hooks;

use std::time::Duration;

use super::behaviour::{Behaviour, ExitNotice, NonTransition, Transition};
use hooks::{
    add_empty_status, add_started_to_failed_start, constant_time, delay_container_deleted,
    delay_created, delay_stopped, delete_on_stop, drop_created, drop_deleted, drop_every_seventh,
    drop_of_sandboxes, drop_own_status, drop_started, drop_stopped, drop_third_of_stream,
    exit_code_zero, future_time, keep_in_deleted, milliseconds, no_image, no_sandbox,
    no_sandbox_when_deleted, no_time, no_uid, other_uid, previous_snapshot, running_siblings,
    seconds, short_id, time_goes_back, twice, twice_stopped, unknown_kind,
};

/// One way of being wrong.
#[derive(Clone, Copy, Debug)]
pub struct Defect {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// What the runtime does.
    pub what: &'static str,
    /// Where it has been seen, or the reason to expect it.
    pub imitates: &'static str,
    /// The cases and invariants that must fail.
    pub noticed_by: &'static [&'static str],
    /// Makes a behaviour wrong.
    pub apply: fn(&mut Behaviour),
}

macro_rules! defects {
    ($($name:literal: $what:literal, like $imitates:literal, noticed by [$($noticed:literal),*],
        $apply:expr;)*) => {
        &[$(Defect {
            name: $name,
            what: $what,
            imitates: $imitates,
            noticed_by: &[$($noticed),*],
            apply: $apply,
        },)*]
    };
}

/// All defects.
pub const DEFECTS: &[Defect] = defects! {
    "no-created": "no container's CREATED is sent",
        like "events are discarded: containerd/containerd#8892",
        noticed by ["CMP-08", "ORD-01", "ORD-05", "INV-11"],
        |wrong| wrong.events.push(drop_created);
    "no-started": "no container's STARTED is sent",
        like "events are discarded: containerd/containerd#8892",
        noticed by ["ORD-01", "SNP-01", "STP-01"],
        |wrong| wrong.events.push(drop_started);
    "no-stopped": "no container's STOPPED is sent",
        like "events are discarded: containerd/containerd#8892",
        noticed by ["FEA-01", "CMP-05", "EXT-01", "OOM-01", "SBX-03", "STP-02", "INV-11"],
        |wrong| wrong.events.push(drop_stopped);
    "no-deleted": "no container's DELETED is sent",
        like "CRI-O 1.36 when a sandbox is removed",
        noticed by ["ORD-01", "CMP-08", "SBX-04", "SNP-04"],
        |wrong| wrong.events.push(drop_deleted);
    "no-seventh": "every seventh event of a stream is lost",
        like "a full channel drops events: containerd 1.7",
        noticed by ["CMP-01"],
        |wrong| wrong.events.push(drop_every_seventh);
    "no-third-of-stream": "the third event of each stream is lost",
        like "a stream that has ended takes an event along: containerd 1.7 and 2.1",
        noticed by ["REC-02"],
        |wrong| wrong.events.push(drop_third_of_stream);
    "no-sandbox-events": "sandboxes have no events",
        like "CRI-O never sends CREATED and DELETED of a sandbox",
        noticed by ["SBX-01", "SBX-03", "SBX-04", "SNP-01"],
        |wrong| wrong.events.push(drop_of_sandboxes);
    "everything-twice": "every event is sent twice",
        like "two paths announce one change",
        noticed by ["ORD-01", "CMP-02", "INV-02"],
        |wrong| wrong.events.push(twice);
    "stopped-twice": "STOPPED comes from the call and from the exit",
        like "containerd/containerd#4769, cri-o/cri-o#6631",
        noticed by ["ORD-01", "CMP-02", "INV-02"],
        |wrong| wrong.events.push(twice_stopped);
    "repeated-stop-told": "stopping what has stopped sends STOPPED again",
        like "cri-o/cri-o#6631",
        noticed by ["CMP-02", "INV-02"],
        |wrong| wrong.told_too = &[NonTransition::RepeatedStop];
    "never-ran-but-stopped": "the removal of a container that never ran sends STOPPED",
        like "CRI-O 1.36",
        noticed by ["CMP-08"],
        |wrong| wrong.told_too = &[NonTransition::EndOfNeverRun];
    "deleted-on-stop": "a stop sends DELETED, too",
        like "cri-o/cri-o#6625",
        noticed by ["ORD-01", "STP-01"],
        |wrong| wrong.events.push(delete_on_stop);
    "created-late": "CREATED comes 20 ms late",
        like "two goroutines send the two events: kubernetes/kubernetes#122763",
        noticed by ["ORD-05", "INV-01"],
        |wrong| wrong.events.push(delay_created);
    "stopped-late": "STOPPED comes 20 ms late",
        like "DELETED overtakes STOPPED: containerd 2.1, internal/cri/server/events.go",
        noticed by ["ORD-06", "STP-06", "INV-01"],
        |wrong| wrong.events.push(delay_stopped);
    "deleted-late": "a container's DELETED comes 20 ms late",
        like "a sandbox's DELETED overtakes those of its containers",
        noticed by ["SBX-04"],
        |wrong| wrong.events.push(delay_container_deleted);
    "sandbox-missing": "no event tells the sandbox's status",
        like "kubernetes/kubernetes#114371",
        noticed by ["SNP-01", "INV-06"],
        |wrong| wrong.events.push(no_sandbox);
    "sandbox-missing-when-deleted": "a sandbox's DELETED does not tell its status",
        like "containerd 1.7",
        noticed by ["SNP-01", "INV-06"],
        |wrong| wrong.events.push(no_sandbox_when_deleted);
    "uid-empty": "the sandbox's UID is empty",
        like "kubelet evented.go ignores an event without it",
        noticed by ["SNP-01", "INV-06"],
        |wrong| wrong.events.push(no_uid);
    "uid-of-another": "the sandbox's UID is another pod's",
        like "snapshots of pods get mixed up",
        noticed by ["SNP-01", "INV-06"],
        |wrong| wrong.events.push(other_uid);
    "own-status-missing": "a snapshot lacks the event's own container",
        like "CRI-O: containers without a UID's label are missing",
        noticed by ["SNP-04"],
        |wrong| wrong.events.push(drop_own_status);
    "own-status-in-deleted": "a container is still in the snapshot of its DELETED",
        like "the snapshot is taken before the removal",
        noticed by ["SNP-04", "INV-08"],
        |wrong| wrong.events.push(keep_in_deleted);
    "empty-status": "a snapshot has a status in which nothing is set",
        like "cri-o/cri-o#9663",
        noticed by ["INV-07"],
        |wrong| wrong.events.push(add_empty_status);
    "image-missing": "the statuses of a snapshot have no image",
        like "cri-o/cri-o#9663",
        noticed by ["INV-07"],
        |wrong| wrong.events.push(no_image);
    "stale-snapshot": "an event shows its container as the event before did",
        like "the snapshot comes from a cache",
        noticed by ["INV-08"],
        |wrong| wrong.events.push(previous_snapshot);
    "stale-siblings": "a snapshot shows siblings RUNNING that have exited",
        like "containerd 2.1, generateAndSendContainerEvent",
        noticed by ["INV-13"],
        |wrong| wrong.events.push(running_siblings);
    "code-zero-in-events": "events tell the exit code 0, whatever it was",
        like "the event is made before the exit is read",
        noticed by ["EXT-01", "STP-02", "INV-13"],
        |wrong| wrong.events.push(exit_code_zero);
    "time-missing": "created_at is not set",
        like "cri-o/cri-o#8580",
        noticed by ["INV-04"],
        |wrong| wrong.events.push(no_time);
    "time-in-seconds": "created_at is in seconds",
        like "cri-o/cri-o#8580",
        noticed by ["INV-04"],
        |wrong| wrong.events.push(seconds);
    "time-in-milliseconds": "created_at is in milliseconds",
        like "cri-o/cri-o#8580",
        noticed by ["INV-04"],
        |wrong| wrong.events.push(milliseconds);
    "time-in-future": "created_at is an hour ahead",
        like "another clock than the host's",
        noticed by ["INV-04"],
        |wrong| wrong.events.push(future_time);
    "time-constant": "created_at is always the same, from long ago",
        like "the time at which the runtime was started is sent for that of the event",
        noticed by ["INV-04"],
        |wrong| wrong.events.push(constant_time);
    "time-goes-back": "created_at of each event is before that of the last",
        like "kubelet 1.26 to 1.36, pod cache: an older time is dropped",
        noticed by ["INV-05"],
        |wrong| wrong.events.push(time_goes_back);
    "id-shortened": "STARTED carries the first 13 digits of an id",
        like "the id that people are shown",
        noticed by ["INV-03"],
        |wrong| wrong.events.push(short_id);
    "kind-unknown": "STARTED has a number that the CRI does not define",
        like "a runtime ahead of the CRI",
        noticed by ["INV-03", "ORD-01"],
        |wrong| wrong.events.push(unknown_kind);
    "failed-start-untold": "a start that fails has no STOPPED",
        like "containerd 1.7 and 2.1, container_start.go",
        noticed by ["FLR-02", "INV-11"],
        |wrong| wrong.untold = &[Transition::FailedStart];
    "failed-start-started": "a start that fails sends STARTED",
        like "the event is sent before the start",
        noticed by ["FLR-02"],
        |wrong| wrong.events.push(add_started_to_failed_start);
    "forced-removal-untold": "the removal of a running container sends no STOPPED",
        like "the container is forgotten before its exit is noticed",
        noticed by ["STP-06"],
        |wrong| wrong.untold = &[Transition::ForcedRemoval];
    "end-with-sandbox-untold": "the stop of a sandbox sends no STOPPED of its containers",
        like "the exit handlers go with the sandbox",
        noticed by ["SBX-03", "SBX-04"],
        |wrong| wrong.untold = &[Transition::EndWithSandbox];
    "removal-with-sandbox-untold": "the removal of a sandbox sends no DELETED of its containers",
        like "CRI-O 1.36",
        noticed by ["SBX-04"],
        |wrong| wrong.untold = &[Transition::RemovalWithSandbox];
    "exit-noticed-when-asked": "an exit is noticed when a call comes",
        like "events are made from lists",
        noticed by ["CMP-05"],
        |wrong| wrong.exit_notice = ExitNotice::WhenAsked;
    "exit-noticed-late": "an exit is noticed 15 s late",
        like "containerd after the death of a shim, at its worst",
        noticed by ["CMP-05", "FEA-01"],
        |wrong| wrong.exit_notice = ExitNotice::Late(Duration::from_secs(15));
    "exit-never-noticed": "an exit that nobody asked for is not noticed",
        like "CRI-O after the death of conmon",
        noticed by ["CMP-05", "FEA-01", "EXT-01", "OOM-01"],
        |wrong| wrong.exit_notice = ExitNotice::Never;
    "no-grace": "a container is killed at once, whatever its grace period",
        like "the timeout is read as milliseconds",
        noticed by ["STP-01", "STP-02"],
        |wrong| wrong.grace_percent = 0;
    "much-grace": "a grace period takes ten times as long",
        like "the kill waits for a lock",
        noticed by ["STP-02"],
        |wrong| wrong.grace_percent = 1_000;
    "no-stop-signal": "no SIGTERM is sent",
        like "the signal goes to a process that does not hand it on",
        noticed by ["STP-01"],
        |wrong| wrong.sends_stop_signal = false;
    "code-255": "every exit code is 255",
        like "cri-o/cri-o#9846",
        noticed by ["EXT-01", "STP-01", "STP-02", "OOM-01"],
        |wrong| wrong.exit_code = |_| 255;
    "killed-is-success": "a killed container exits with 0",
        like "the code is read without the signal",
        noticed by ["STP-02", "OOM-01"],
        |wrong| wrong.exit_code = |end| if end.code == 137 { 0 } else { end.code };
    "oom-is-error": "a container that was killed for its memory has the reason Error",
        like "containerd/containerd#8893, #8180, #12260",
        noticed by ["OOM-01"],
        |wrong| wrong.exit_reason = |end| if end.code == 0 { "Completed" } else { "Error" };
};
