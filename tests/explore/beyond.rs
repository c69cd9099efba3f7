//! The defects that walks do not find, or show in more steps than others, each with the reason.

const RESOURCE: &str = "it concerns resources, and walks do not count them";
const CHECKPOINT: &str = "walks make no checkpoints, and so restore no container";
const ONE_STREAM: &str = "where not every subscriber gets every event, walks open no second stream";

/// Their names and reasons.
pub(super) const BEYOND_WALKS: &[(&str, &str)] = &[
    ("cgroup-stays", RESOURCE),
    ("discarded-events-fill-the-log", RESOURCE),
    ("memory-of-containers-is-kept", RESOURCE),
    ("monitor-lives-on", RESOURCE),
    ("mount-stays", RESOURCE),
    ("network-namespace-stays", RESOURCE),
    ("stream-is-never-released", RESOURCE),
    ("thread-for-each-container", RESOURCE),
    ("newest-subscriber-only", ONE_STREAM),
    ("oldest-subscriber-only", ONE_STREAM),
    ("shared-channel", ONE_STREAM),
    (
        "container-unwatched-without-a-monitor",
        "whether a container lives on without its monitor is the runtime's choice",
    ),
    (
        "oom-kill-by-the-pods-limit-marks-all",
        "whether what outlives an OOM kill in its pod is marked, too, is advice, and no walk judges it",
    ),
    ("no-started-after-a-restore", CHECKPOINT),
    ("no-stopped-after-a-failed-restore", CHECKPOINT),
    ("stopped-for-a-checkpoint", CHECKPOINT),
    ("no-stopped-after-a-pause", "walks pause no container"),
    (
        "unlabelled-missing",
        "no kubelet makes a container without its labels, and so walks make none",
    ),
    (
        "headers-with-the-first-event",
        "a second stream has its first event at once",
    ),
    (
        "ok-where-events-are-off",
        "without events no walk is taken, and that is reported as an error",
    ),
    (
        "replay-of-the-tail",
        "what is replayed of a time without a stream is certain of no single container",
    ),
    (
        "stopped-before-the-core-dump",
        "it needs a look at the process the moment STOPPED arrives",
    ),
];

/// Those that need more steps than others, how many at most, and why.
pub(super) const MORE_STEPS: &[(&str, usize, &str)] =
    &[("frozen-monitor-delays-others", 8, TWO_PODS)];

const TWO_PODS: &str = "two pods, one of which has to be undisturbed";
