//! Every bound of the suite in one place, each with its reason.

mod given;

use std::time::Duration;

pub use given::{TimeoutScale, duration};

/// The longest that an event may be on its way, and the longest that a runtime may take to show a
/// change: containerd's own event test waits as long. Scaled by `--timeout-scale`.
pub const EVENT_WAIT: Duration = Duration::from_secs(10);

/// The deadline of an RPC unless `--timeout` sets another. The slowest call of a conformant runtime
/// on a loaded node, `RunPodSandbox`, was measured at 2.6 s.
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// How long the first call may take before the endpoint counts as silent, and how long it may take
/// to connect at all, which is up to the kernel of this host and never stretched.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// The first call has at least this part of the deadline of any other: of 30 s five, and more on a
/// slow machine.
pub const FIRST_PART: u32 = 6;

/// How long a marker's event may take before another marker is sent to prove a subscription: one
/// that was not yet effective for the first may be for the next.
pub const MARKER_WAIT: Duration = Duration::from_millis(250);

/// How often a step asks that asks all the while: some ten times within the shortest removal.
pub const READING_PACE: Duration = Duration::from_millis(5);

/// How long at most a run listens at its end for events that come too late or twice: twice the
/// kubelet's relist period.
pub const QUIET_WINDOW: Duration = Duration::from_secs(2);

/// How long it listens at least.
pub const SHORTEST_QUIET_WINDOW: Duration = Duration::from_millis(50);

/// Between the two, it listens for this part of the time that the cases took: all but the last
/// cases have been listened to long after their end, and a run of one short case ends at once.
pub const QUIET_PART: u32 = 50;

/// How long a lost runtime may take to come back before the run, or its clean-up, gives up on it.
pub const RUNTIME_RETURN: Duration = Duration::from_secs(30);

/// How long the user's commands may take that stop and start the runtime: more than the 90 s after
/// which systemd gives up on either.
pub const RUNTIME_COMMAND: Duration = Duration::from_secs(120);

/// How often a runtime that is gone is looked for.
pub const RUNTIME_LOOK: Duration = Duration::from_millis(250);

/// How often a runtime may be lost before a run gives up on it: each time costs the cases under
/// way, and one that restarts all the time decides nothing.
pub const RUNTIME_LOSSES: usize = 5;

/// The largest message that is accepted; the kubelet's client accepts as much.
pub const MESSAGE_BYTES: usize = 16 << 20;

/// Entries that may wait for their slowest reader. A case that blocks in a call for 30 s meanwhile
/// sees at most 1,000 entries a second from its neighbours.
pub const HISTORY_ENTRIES: usize = 100_000;

/// Bytes that may wait for their slowest reader.
pub const HISTORY_BYTES: usize = 256 << 20;

/// The most cases that may run at once.
pub const TEST_THREADS: usize = 64;

/// Containers, and pods, of a run whose late events are still looked for. A run of the whole
/// catalogue makes some hundreds.
pub const RUN_CONTAINERS: usize = 10_000;

/// The most executions of cases that a report tells: more than the catalogue's, run a thousand
/// times.
pub const EXECUTIONS: usize = 250_000;

/// The most repetitions of the whole plan.
pub const REPETITIONS: u32 = 1_000;

/// What may be on its way to a subscriber that stops reading: so little that a case need not cause
/// thousands of events for the runtime to be held up.
pub const STALLED_WINDOW_BYTES: u32 = 16 << 10;

/// How many markers are sent to learn whether several subscribers get each event: as many as a
/// subscription may miss that takes a second to become effective.
pub const AUDIENCE_MARKERS: u32 = 6;

/// How many events the model runtime keeps for a subscriber that does not read; CRI-O and
/// containerd 1.7 keep as many.
pub const MODEL_QUEUE: usize = 1_000;

/// How long at most it is tried again to remove what a run has left, while the runtime refuses: a
/// start whose caller has left takes as long as any.
pub const SWEEP_WAIT: Duration = Duration::from_secs(5);

/// How often that is tried: some ten times within the shortest start.
pub const SWEEP_PACE: Duration = Duration::from_millis(10);

/// How long the user's command may take that makes a container outside the CRI: some ten times what
/// `ctr run` takes on a slow node.
pub const OUTSIDE_WAIT: Duration = Duration::from_secs(30);

/// How often a case tries a removal again that may be refused at first: several times within the
/// start that it waits for, whose caller has left.
pub const REMOVAL_PACE: Duration = Duration::from_millis(100);

/// How long the processes of a removed sandbox may take to end by themselves: a shim ends after its
/// last container, within some hundred milliseconds.
pub const PROCESS_END: Duration = Duration::from_secs(2);

/// How often they are looked for: reading all of `/proc` takes some milliseconds.
pub const PROCESS_LOOK: Duration = Duration::from_millis(100);

/// How long the kernel may take to release the cgroup of a process that has ended: until its parent
/// has reaped it.
pub const CGROUP_RELEASE: Duration = Duration::from_secs(2);

/// How long a process may take to end that was killed: the kernel needs some milliseconds, and on a
/// node without any time to spare some hundred.
pub const KILL_WAIT: Duration = Duration::from_secs(5);

/// Entries that may wait for `watch` to show them: some seconds of a busy node's events.
pub const WATCH_ENTRIES: usize = 20_000;

/// Bytes that may wait for it.
pub const WATCH_BYTES: usize = 32 << 20;

/// Containers and sandboxes that `watch` follows at once: a kubelet runs some hundreds.
pub const WATCHED: usize = 20_000;

/// The largest answer that is accepted to a list: a kubelet's node has some hundreds of containers
/// of a kilobyte or two, and what an answer holds takes ten times as much memory, in several calls
/// at once.
pub const LIST_BYTES: usize = 4 << 20;

/// Containers or sandboxes that an answer may list; a kubelet's node has some hundreds. What lists
/// more is not looked at, for it would use up the suite's memory.
pub const LISTED: usize = 20_000;

/// How many of those may be what was not asked for: whoever lists all of a node's where a few were
/// asked for does so in each of a run's thousands of lists.
pub const UNASKED: usize = 1_000;

/// How long the entries of a history may wait for the frame that they are written in: a run that
/// is killed loses them.
pub const HISTORY_FRAME: Duration = Duration::from_secs(1);

/// Bytes of history that a run's file may have before compression. The whole catalogue writes some
/// megabytes; who floods the event stream would fill the disk.
pub const HISTORY_FILE_BYTES: u64 = 1 << 30;

/// How much of an id is given where a call is made by its beginning: as much as crictl and ctr
/// show.
pub const ID_PREFIX: usize = 13;

/// How often the suite looks whether the host lets it run.
pub const HEARTBEAT: Duration = Duration::from_millis(50);

/// How late it may be for that and take no notice: a busy host's scheduler is late by some
/// milliseconds.
pub const HEARTBEAT_SLACK: Duration = Duration::from_millis(50);

/// How many markers at least are sent to prove a subscription, however late the suite itself is.
pub const FEWEST_MARKERS: usize = 3;

/// How many files a run has to be able to open: its streams and calls, the registry, the reports.
/// With 24 a core run on containerd still went well; with 12 the registry could accept nobody.
pub(crate) const OPEN_FILES: u64 = 64;
