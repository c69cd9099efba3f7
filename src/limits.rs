//! Every bound of the suite in one place, each with its reason.

mod user_durations;
mod user_sizes;

use std::time::Duration;

pub use user_durations::{TimeoutScale, duration, long_duration};
pub use user_sizes::size;

/// The maximum latency of an event, and the maximum time until a runtime shows a change:
/// containerd's own event test waits as long. Scaled by `--timeout-scale`.
pub const EVENT_WAIT: Duration = Duration::from_secs(10);

/// The deadline of an RPC unless `--timeout` sets another. The slowest call of a conformant runtime
/// on a loaded node, `RunPodSandbox`, was measured at 2.6 s.
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// How long the first call may take before the endpoint counts as silent, and how long it may take
/// to connect at all, which is up to the kernel of this host and never scaled.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// The divisor of the usual deadline that gives the minimum deadline of the first call: five of 30
/// s, and more on a slow machine.
pub const FIRST_PART: u32 = 6;

/// How long to wait for a marker's event before another marker is sent to prove a subscription,
/// which may have become effective only after the first one.
pub const MARKER_WAIT: Duration = Duration::from_millis(250);

/// The interval of a step that polls: some ten times within the shortest removal.
pub const READING_PACE: Duration = Duration::from_millis(5);

/// The maximum time that a run waits at its end for late or repeated events: twice the kubelet's
/// relist period.
pub const QUIET_WINDOW: Duration = Duration::from_secs(2);

/// The minimum time for that.
pub const SHORTEST_QUIET_WINDOW: Duration = Duration::from_millis(50);

/// Between the two, the divisor of the duration of the cases: events of all but the last cases had
/// enough time to arrive, and a run of one short case ends at once.
pub const QUIET_PART: u32 = 50;

/// How long a lost runtime may take to come back before the run, or its clean-up, gives up on it.
pub const RUNTIME_RETURN: Duration = Duration::from_secs(30);

/// The timeout of the user's commands that stop and start the runtime: more than the 90 s after
/// which systemd gives up.
pub const RUNTIME_COMMAND: Duration = Duration::from_secs(120);

/// How long the user's command that prints the runtime's log may take: `journalctl` reads some
/// hundred thousand lines a second.
pub const LOG_WAIT: Duration = Duration::from_secs(30);

/// How long the steps of a case take to have their calls under way, before the runtime is ended: a
/// call reaches a busy runtime within some hundred milliseconds, and nothing shows that it has.
pub const CALL_UNDER_WAY: Duration = Duration::from_secs(1);

/// The interval at which a lost runtime is polled.
pub const RUNTIME_LOOK: Duration = Duration::from_millis(250);

/// How long a kubelet may be paused before its timer starts it. Its node is not ready after 50 s
/// (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/>,
/// `--node-monitor-grace-period`), and 300 s later its pods are evicted by default
/// (<https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>). The tier
/// `core` takes one or two minutes.
pub const KUBELET_PAUSE: Duration = Duration::from_secs(300);

/// How long a run may take for which a kubelet is paused; the rest of the pause is for cleaning up.
pub const PAUSED_RUN: Duration = Duration::from_secs(240);

/// How often a runtime may be lost before a run gives up: each time costs the cases in progress,
/// and with a runtime that keeps restarting nothing can be decided.
pub const RUNTIME_LOSSES: usize = 5;

/// The largest number of bytes that wait until an output is read, as behind a pager: more than the
/// text of a run of all cases, or than an hour of a busy node's events.
pub const OUTPUT_BYTES: usize = 64 << 20;

/// How long a printed text may take to be written before its output counts as stalled. Until then
/// what is printed afterwards, also to another output, comes after it.
pub const OUTPUT_SETTLING: Duration = Duration::from_millis(200);

/// How long a history is waited for at its end of which nothing is read.
pub const STALLED_OUTPUT: Duration = Duration::from_secs(60);

/// The same for all outputs after an interrupt.
pub const HURRIED_OUTPUT: Duration = Duration::from_secs(2);

/// How soon after a signal another one is taken for the same: `timeout` sends one to the process
/// and one to its group, within less than a millisecond unless the node is loaded.
pub const SAME_SIGNAL: Duration = Duration::from_millis(100);

/// The largest message that is accepted; the kubelet's client accepts as much.
pub const MESSAGE_BYTES: usize = 16 << 20;

/// Entries that may be queued for the slowest reader. A case that blocks in a call for 30 s
/// meanwhile sees at most 1,000 entries a second from its neighbours.
pub const HISTORY_ENTRIES: usize = 100_000;

/// Bytes that may be queued for the slowest reader, and of a history that is shown at once.
pub const HISTORY_BYTES: usize = 256 << 20;

/// The maximum number of cases in parallel.
pub const TEST_THREADS: usize = 64;

/// Containers and pods of a run that are checked for late events. A run of the whole catalogue
/// creates some hundreds.
pub const RUN_CONTAINERS: usize = 10_000;

/// The maximum number of executions in a report: more than the whole catalogue, run a thousand
/// times.
pub const EXECUTIONS: usize = 250_000;

/// The maximum of `--repeat`.
pub const REPETITIONS: u32 = 1_000;

/// The flow-control window of a subscriber that stops reading: small, so that a case blocks the
/// stream without thousands of events.
pub const STALLED_WINDOW_BYTES: u32 = 16 << 10;

/// How many markers are sent to determine whether all subscribers receive each event: as many as a
/// subscription may miss that takes a second to become effective.
pub const AUDIENCE_MARKERS: u32 = 6;

/// How many events the model runtime keeps for a subscriber that does not read; CRI-O and
/// containerd 1.7 keep as many.
pub const MODEL_QUEUE: usize = 1_000;

/// How long removals are retried while the runtime refuses them: an abandoned start takes as long
/// as any other.
pub const SWEEP_WAIT: Duration = Duration::from_secs(5);

/// The interval of these retries: some ten times within the shortest start.
pub const SWEEP_PACE: Duration = Duration::from_millis(10);

/// The timeout of the user's command that runs a container outside the CRI: some ten times what
/// `ctr run` takes on a slow node.
pub const OUTSIDE_WAIT: Duration = Duration::from_secs(30);

/// The interval at which a case retries a removal that may be refused at first: several times
/// within the abandoned start that it waits for.
pub const REMOVAL_PACE: Duration = Duration::from_millis(100);

/// How long the processes of a removed sandbox may take to end by themselves: a shim ends after its
/// last container, within some hundred milliseconds.
pub const PROCESS_END: Duration = Duration::from_secs(2);

/// The interval at which they are checked: reading all of `/proc` takes some milliseconds.
pub const PROCESS_LOOK: Duration = Duration::from_millis(100);

/// How long the kernel may take to release the cgroup of a process that has ended: until its parent
/// has reaped it.
pub const CGROUP_RELEASE: Duration = Duration::from_secs(2);

/// How long a killed process may take to end: the kernel needs some milliseconds, and on an
/// overloaded node some hundred.
pub const KILL_WAIT: Duration = Duration::from_secs(5);

/// Entries that may be queued for `watch`: some seconds of a busy node's events.
pub const WATCH_ENTRIES: usize = 20_000;

/// Bytes that may be queued for it: two relists of the largest answers.
pub const WATCH_BYTES: usize = 64 << 20;

/// Containers and sandboxes that `watch` tracks at once: a kubelet runs some hundreds.
pub const WATCHED: usize = 20_000;

/// Pods whose history `watch` keeps at once, as they have changed lately.
pub const FOLLOWED_PODS: usize = 1_000;

/// Entries in the history of such a pod; one that is longer is judged in parts.
pub const WATCH_POD_ENTRIES: usize = 1_000;

/// Bytes of the histories of all such pods: a node that restarts 500 pods at once has some 60 MB.
pub const WATCHED_BYTES: usize = 96 << 20;

/// Bytes of the events whose pods are not known yet, and of the entries that prove violations.
pub const WATCH_ASIDE_BYTES: usize = 16 << 20;

/// For how long such a history may go on; a longer one is judged in parts.
pub const WATCH_CUT: Duration = Duration::from_secs(600);

/// How much longer than an event may be late a pod has to be quiet to be judged: time for the
/// relist that shows its last change, and for one after the last deadline.
pub const WATCH_SETTLING: Duration = Duration::from_secs(3);

/// How long a call or a relist of `watch` may take before that is said. A kubelet gives a call up
/// after two minutes, and its node is not ready after three minutes without a relist.
pub const LATE_RELIST: Duration = Duration::from_secs(10);

/// The interval at which `watch` looks whether the processes of running containers are there: as
/// long as an event may be late by default. Each look reads a file of some hundred bytes for each.
pub const WATCHED_PROCESS_LOOK: Duration = Duration::from_secs(5);

/// The maximum number of processes that it looks at: a kubelet runs some hundred containers.
pub const WATCHED_PROCESSES: usize = 2_000;

/// How many containers it asks the runtime about at each look, to learn their pids.
pub const WATCHED_PIDS: usize = 20;

/// The maximum number of listed containers or sandboxes; a kubelet's node has some hundreds. A
/// larger answer is rejected, since it would exhaust the suite's memory.
pub const LISTED: usize = 20_000;

/// How many of those may be unrequested: a runtime that ignores filters does so in each of a run's
/// thousands of lists.
pub const UNASKED: usize = 1_000;

/// How long entries of a history are buffered before their frame is written: a killed run loses
/// them.
pub const HISTORY_FRAME: Duration = Duration::from_secs(1);

/// The maximum size of a history file before compression. The whole catalogue writes some
/// megabytes; a flood of events would fill the disk.
pub const HISTORY_FILE_BYTES: u64 = 1 << 30;

/// The length of an id prefix in calls with an abbreviated id: as shown by crictl and ctr.
pub const ID_PREFIX: usize = 13;

/// The interval at which the suite checks that the host schedules it.
pub const HEARTBEAT: Duration = Duration::from_millis(50);

/// The tolerated delay of that check: a busy host's scheduler is late by some milliseconds.
pub const HEARTBEAT_SLACK: Duration = Duration::from_millis(50);

/// The minimum number of markers to prove a subscription, however late the suite itself is.
pub const FEWEST_MARKERS: usize = 3;

/// The most pods that `measure` makes: a kubelet has 110 by default, and up to 500 where a node is
/// set up for that.
pub const MEASURED_PODS: u32 = 500;

/// The most containers that it makes in each pod.
pub const MEASURED_IN_POD: u32 = 20;

/// The most containers that it makes in all: their list stays well below [`MESSAGE_BYTES`].
pub const MEASURED_CONTAINERS: u32 = 1_000;

/// The most event streams that it opens at once. More show nothing new, and each has a connection.
pub const MEASURED_SUBSCRIBERS: u32 = 64;

/// The most changes that it makes for a cell of its table: at ten a second, some 20 minutes.
pub const MEASURED_CHANGES: u32 = 10_000;

/// What the logs of its containers may have in all, with `--write-every`: the room that a node has
/// below /var/log without being short of it.
pub const MEASURED_LOG_BYTES: u128 = 1 << 30;

/// The shortest interval at which each of them writes a line there: the program that writes counts
/// in milliseconds, and a hundred lines a second are a lot.
pub const WRITE_PACE: Duration = Duration::from_millis(10);

/// How many pods it makes at once: more only wait for one another, as containerd prepares the root
/// file systems of containers one after the other.
pub const PODS_AT_ONCE: usize = 4;

/// The interval of the changes on a node that `measure pleg` keeps busy. Nearly two a second are
/// what 110 containers cause that each live for a minute; two cores bear some ten. It is no part of
/// a second, so that changes fall at all times between two relists.
pub const BUSY_PACE: Duration = Duration::from_millis(530);

/// The shortest median latency that counts as doubled: below it, doubling is up to the scheduler of
/// the host.
pub const LAG_FLOOR: Duration = Duration::from_millis(1);

/// How many flow collections and directives a text of YAML may have, open or not. The largest file
/// of this repository has some 500.
pub(crate) const YAML_COLLECTIONS: usize = 10_000;

/// How many events of one kind a case keeps of one sandbox or container, from each stream. A
/// correct runtime sends one; further ones show nothing new.
pub(crate) const EVENTS_OF_A_KIND: usize = 100;

/// How many connections an HTTP server of the suite has open at once; a client beyond them waits. A
/// runtime pulling one image needs two or three, and a Prometheus one.
pub(crate) const CONNECTIONS: usize = 16;

/// How long such a connection may last. An answer has a few kilobytes, and a client opens a new
/// connection when it finds its old one closed.
pub(crate) const CONNECTION_LIFETIME: Duration = Duration::from_secs(30);

/// How many files a run must be able to open: its streams and calls, the registry, the reports.
/// With 24 a core run on containerd still went well; with 12 the registry could accept nobody.
pub(crate) const OPEN_FILES: u64 = 64;
