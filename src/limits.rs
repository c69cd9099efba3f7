//! All limits of the suite, each with its reason.

mod user;

use std::time::Duration;

pub use user::{TimeoutScale, duration, long_duration, size};

/// The maximum latency of an event, and the maximum time until a runtime shows a change:
/// containerd's own event test waits as long. Scaled by `--timeout-scale`.
pub const EVENT_WAIT: Duration = Duration::from_secs(10);

/// The latency above which an event comes after the relist that it saves: that begins within a
/// second, and may take another one on a loaded node. In runs on a node with fourteen times the
/// load of its processors, the worst of some 8,000 events that nothing held up came after 1.1 s,
/// with six times after 0.1 s. Scaled by `--timeout-scale`.
pub const SAVED_RELIST: Duration = Duration::from_secs(2);

/// The deadline of an RPC unless `--timeout` sets another. The slowest call of a conformant runtime
/// on a loaded node, `RunPodSandbox`, was measured at 2.6 s.
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// The deadline of the first call, after which the endpoint counts as silent, and the minimum time
/// to connect, which depends on the kernel of this host and is never scaled.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// The divisor of the usual deadline that gives the minimum deadline of the first call: five of 30
/// s, and more on a slow machine.
pub const FIRST_PART: u32 = 6;

/// The events that a relay keeps for a client that does not read, some hundred kilobytes; then it
/// does not read from the runtime either.
pub const RELAYED_EVENTS: usize = 100;

/// The wait for a marker's event before another marker is sent to prove a subscription, which may
/// have become effective only after the first one.
pub const MARKER_WAIT: Duration = Duration::from_millis(250);

/// The interval of a step that polls: some ten times within the shortest removal.
pub const READING_PACE: Duration = Duration::from_millis(5);

/// How often a run relists one pod on demand between two relists of all pods, the next of which
/// shows the rest: a start, a stop and another start. Of a hundred lives in a second, each such
/// relist would cost a run more than the life.
pub const RELISTS_OF_A_POD: usize = 3;

/// The maximum time that a run waits at its end for late or repeated events: twice the kubelet's
/// relist period.
pub const QUIET_WINDOW: Duration = Duration::from_secs(2);

/// The minimum of that time.
pub const SHORTEST_QUIET_WINDOW: Duration = Duration::from_millis(50);

/// The divisor of the duration of the cases for a value between the two: events of all but the last
/// cases had enough time to arrive, and a run of one short case ends at once.
pub const QUIET_PART: u32 = 50;

/// The time that a lost runtime may take to come back before the run, or its clean-up, fails.
pub const RUNTIME_RETURN: Duration = Duration::from_secs(30);

/// The timeout of the user's commands that stop and start the runtime: more than the 90 s after
/// which systemd gives up.
pub const RUNTIME_COMMAND: Duration = Duration::from_secs(120);

/// The timeout of the user's command that prints the runtime's log: `journalctl` reads some hundred
/// thousand lines a second.
pub const LOG_WAIT: Duration = Duration::from_secs(30);

/// The time after which the steps of a case have their calls under way, before the runtime is
/// stopped: a call reaches a busy runtime within some hundred milliseconds, but that cannot be
/// observed.
pub const CALL_UNDER_WAY: Duration = Duration::from_secs(1);

/// The interval at which a lost runtime is polled.
pub const RUNTIME_LOOK: Duration = Duration::from_millis(250);

/// The maximum time for which a kubelet is paused before its timer starts it. Its node is not ready
/// after 50 s
/// (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/>,
/// `--node-monitor-grace-period`), and 300 s later its pods are evicted by default
/// (<https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>). The tier
/// `core` takes one or two minutes.
pub const KUBELET_PAUSE: Duration = Duration::from_secs(300);

/// The pause of a kubelet above which a run's report warns: the node is not ready soon.
pub const KUBELET_PAUSE_WARNED: Duration = Duration::from_secs(40);

/// The maximum duration of a run with a paused kubelet; the rest of the pause is for the clean-up.
pub const PAUSED_RUN: Duration = Duration::from_secs(240);

/// The number of times a runtime may be lost before a run stops: each time costs the cases in
/// progress, and with a runtime that keeps restarting nothing can be decided.
pub const RUNTIME_LOSSES: usize = 5;

/// The number of calls of one method that a runtime may leave unanswered until the run stops, if it
/// has answered none: each costs its deadline, and the clean-up of its case more.
pub const UNANSWERED_CALLS: u32 = 2;

/// The number of calls of one method that a runtime may leave unanswered in a row until the run
/// stops: more than those of all concurrent cases at one pause of the runtime.
pub const HUNG_CALLS: u32 = 6;

/// The number of containers that stay CREATED after their start until the run stops, if none ever
/// ran: each costs the timeouts of its case.
pub const IDLE_STARTS: usize = 3;

/// The maximum number of bytes that wait for an output, such as a pager: more than the text of a
/// run of all cases, or than an hour of a busy node's events.
pub const OUTPUT_BYTES: usize = 64 << 20;

/// The time in which a printed text must be written before its output counts as stalled. Until then
/// later texts, even to another output, are printed after it.
pub const OUTPUT_SETTLING: Duration = Duration::from_millis(200);

/// The timeout for a stalled history file at its end.
pub const STALLED_OUTPUT: Duration = Duration::from_secs(60);

/// The timeout for all outputs after an interrupt.
pub const HURRIED_OUTPUT: Duration = Duration::from_secs(2);

/// The time in which a second signal counts as the same: `timeout` sends one to the process and one
/// to its group, within less than a millisecond unless the node is loaded.
pub const SAME_SIGNAL: Duration = Duration::from_millis(100);

/// The maximum size of a message, equal to that of the kubelet's client.
pub const MESSAGE_BYTES: usize = 16 << 20;

/// The flow-control window of a call through a relay, equal to that of the kubelet's client: a
/// runtime waits for a consumer that does not read nearly as soon as without the relay.
pub const RELAY_WINDOW_BYTES: u32 = 64 << 10;

/// The maximum number of calls in progress on one connection through a relay. A kubelet has some
/// ten; of one method that hangs, it has one more for each pod and deadline.
pub const RELAYED_CALLS: u32 = 10_000;

/// The maximum size of the headers, and of the trailers, of a call through a relay: a runtime's
/// error has some hundred bytes, and up to some ten kilobytes with the output of a hook.
pub const RELAYED_HEADER_BYTES: u32 = 1 << 20;

/// The maximum number of entries queued for the slowest reader. A case that blocks in a call for 30
/// s sees at most 1,000 entries a second from its neighbours.
pub const HISTORY_ENTRIES: usize = 100_000;

/// The maximum number of bytes queued for the slowest reader, and of a displayed history.
pub const HISTORY_BYTES: usize = 256 << 20;

/// The maximum number of cases in parallel.
pub const TEST_THREADS: usize = 64;

/// The maximum number of containers and pods of a run that are checked for late events. A run of
/// the whole catalogue creates some hundreds.
pub const RUN_CONTAINERS: usize = 10_000;

/// The maximum number of executions in a report: more than the whole catalogue, run a thousand
/// times.
pub const EXECUTIONS: usize = 250_000;

/// The maximum of `--repeat`.
pub const REPETITIONS: u32 = 1_000;

/// The flow-control window of a subscriber that stops reading: small, so that a case blocks the
/// stream without thousands of events.
pub const STALLED_WINDOW_BYTES: u32 = 16 << 10;

/// The number of markers sent to determine whether all subscribers receive each event: as many as a
/// subscription may miss that takes a second to become effective.
pub const AUDIENCE_MARKERS: u32 = 6;

/// The maximum number of events that the model runtime queues for a subscriber that does not read;
/// the same as in CRI-O and containerd 1.7.
pub const MODEL_QUEUE: usize = 1_000;

/// The time for which removals are retried while the runtime refuses them: an abandoned start takes
/// as long as any other.
pub const SWEEP_WAIT: Duration = Duration::from_secs(5);

/// The number of objects that a clean-up removes at a time, so that a call that hangs holds up no
/// other one: a runtime has no more to do than with a kubelet's pods.
pub const REMOVALS_AT_ONCE: usize = 8;

/// The interval of these retries: some ten times within the shortest start.
pub const SWEEP_PACE: Duration = Duration::from_millis(10);

/// The timeout of the user's command that runs a container outside the CRI: some ten times the
/// duration of `ctr run` on a slow node.
pub const OUTSIDE_WAIT: Duration = Duration::from_secs(30);

/// The interval at which a case retries a removal that may be refused at first: several times
/// within the abandoned start that it waits for.
pub const REMOVAL_PACE: Duration = Duration::from_millis(100);

/// The time in which the processes of a removed sandbox must end on their own: a shim ends after
/// its last container, within some hundred milliseconds.
pub const PROCESS_END: Duration = Duration::from_secs(2);

/// The interval at which they are checked: reading all of `/proc` takes some milliseconds.
pub const PROCESS_LOOK: Duration = Duration::from_millis(100);

/// The time in which the kernel must release the cgroup of a process that has ended: until its
/// parent has reaped it.
pub const CGROUP_RELEASE: Duration = Duration::from_secs(2);

/// The time in which a killed process must end: the kernel needs some milliseconds, and on an
/// overloaded node some hundred.
pub const KILL_WAIT: Duration = Duration::from_secs(5);

/// The maximum number of entries queued for `watch`: some seconds of a busy node's events.
pub const WATCH_ENTRIES: usize = 20_000;

/// The maximum number of bytes queued for it: two relists of the largest answers.
pub const WATCH_BYTES: usize = 64 << 20;

/// The maximum number of containers and sandboxes that `watch` tracks: a kubelet runs some
/// hundreds.
pub const WATCHED: usize = 20_000;

/// The maximum length in bytes of an id or a name of an object that `watch` tracks: a pod's name
/// has at most 253, and an id in containerd 76.
pub const WATCHED_NAME: usize = 256;

/// The maximum number of pods whose history `watch` retains, because they have changed lately.
pub const FOLLOWED_PODS: usize = 1_000;

/// The maximum number of entries in the history of such a pod; a longer one is judged in parts.
pub const WATCH_POD_ENTRIES: usize = 1_000;

/// The maximum number of bytes in the histories of all such pods: a node that restarts 500 pods at
/// once has some 60 MB.
pub const WATCHED_BYTES: usize = 96 << 20;

/// The maximum number of bytes in events without a known pod, and in the entries that prove
/// violations.
pub const WATCH_ASIDE_BYTES: usize = 16 << 20;

/// The maximum duration of such a history; a longer one is judged in parts.
pub const WATCH_CUT: Duration = Duration::from_secs(600);

/// The time in which a runtime that has ended its streams may still answer before it stops:
/// containerd 2.1 does for some milliseconds, and for longer on a loaded node.
pub const RUNTIME_STOPS: Duration = Duration::from_secs(2);

/// The time for which a pod must be idle before it is judged, in addition to the maximum latency of
/// an event: for the relist that shows its last change, and for one after the last deadline.
pub const WATCH_SETTLING: Duration = Duration::from_secs(3);

/// The duration after which a call or a relist of `watch` is reported as late. A kubelet cancels a
/// call after two minutes, and its node is not ready after three minutes without a relist.
pub const LATE_RELIST: Duration = Duration::from_secs(10);

/// The interval at which `watch` checks the processes of running containers: the default maximum
/// latency of an event. Each check reads a file of some hundred bytes per process.
pub const WATCHED_PROCESS_LOOK: Duration = Duration::from_secs(5);

/// The maximum number of processes that it checks: a kubelet runs some hundred containers.
pub const WATCHED_PROCESSES: usize = 2_000;

/// The number of containers whose pids it requests from the runtime at each check.
pub const WATCHED_PIDS: usize = 20;

/// The maximum number of listed containers or sandboxes; a kubelet's node has some hundreds. A
/// larger answer is rejected, since it would exhaust the suite's memory.
pub const LISTED: usize = 20_000;

/// The maximum number of unrequested ones: a runtime that ignores filters returns them in each of a
/// run's thousands of lists.
pub const UNASKED: usize = 1_000;

/// The time for which entries of a history are buffered before their frame is written: a killed run
/// loses them.
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

/// The minimum number of markers to prove a subscription, for any delay of the suite itself.
pub const FEWEST_MARKERS: usize = 3;

/// The maximum number of pods in `measure`: a kubelet has 110 by default, and up to 500 on a node
/// configured for that.
pub const MEASURED_PODS: u32 = 500;

/// The maximum number of containers in each of its pods.
pub const MEASURED_IN_POD: u32 = 20;

/// The maximum number of containers in all: their list stays well below [`MESSAGE_BYTES`].
pub const MEASURED_CONTAINERS: u32 = 1_000;

/// The maximum number of its event streams. More show nothing new, and each has a connection.
pub const MEASURED_SUBSCRIBERS: u32 = 64;

/// The maximum number of changes for a cell of its table: at ten a second, some 20 minutes.
pub const MEASURED_CHANGES: u32 = 10_000;

/// The maximum size of all its container logs, with `--write-every`: the usual free space of a node
/// below /var/log.
pub const MEASURED_LOG_BYTES: u128 = 1 << 30;

/// The minimum interval at which each of them writes a line: the program that writes counts in
/// milliseconds, and a hundred lines a second are a lot.
pub const WRITE_PACE: Duration = Duration::from_millis(10);

/// The number of pods that it creates in parallel: more would only wait, as containerd prepares the
/// root file systems of containers sequentially.
pub const PODS_AT_ONCE: usize = 4;

/// The interval of the changes on a node that `measure pleg` keeps busy. Nearly two a second are
/// the load of 110 containers with a lifetime of a minute each; two cores can handle some ten. It
/// is no divisor of a second, so that changes are spread over the time between two relists.
pub const BUSY_PACE: Duration = Duration::from_millis(530);

/// The minimum median latency that counts as doubled: below it, doubling may be caused by the
/// scheduler of the host.
pub const LAG_FLOOR: Duration = Duration::from_millis(1);

/// The maximum number of flow collections and directives in a YAML text, open or not. The largest
/// file of this repository has some 500.
pub(crate) const YAML_COLLECTIONS: usize = 10_000;

/// The number of events of one kind that a case retains per sandbox or container and stream. A
/// correct runtime sends one; further ones show nothing new.
pub(crate) const EVENTS_OF_A_KIND: usize = 100;

/// The maximum number of open connections of an HTTP server of the suite; further clients wait. A
/// runtime pulling one image needs two or three, and a Prometheus one.
pub(crate) const CONNECTIONS: usize = 16;

/// The maximum duration of such a connection. An answer has a few kilobytes, and a client opens a
/// new connection when its old one is closed.
pub(crate) const CONNECTION_LIFETIME: Duration = Duration::from_secs(30);

/// The number of files that a run must be able to open: its streams and calls, the registry, the
/// reports. With 24 a core run on containerd still succeeded; with 12 the registry could accept no
/// connection.
pub(crate) const OPEN_FILES: u64 = 64;
