//! The defects that walks do not find, or show in more steps than others, each with the reason.

const RESOURCE: &str = "it concerns resources, and walks do not count them";
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
        "created-containers-lost-in-a-kill",
        "the runtime is rarely killed while a container is created and not started",
    ),
    (
        "stopped-before-the-core-dump",
        "it needs a look at the process the moment STOPPED arrives",
    ),
];

/// Those that need more steps than others, how many at most, and why.
pub(super) const MORE_STEPS: &[(&str, usize, &str)] = &[
    ("frozen-monitor-delays-others", 8, TWO_PODS),
    ("no-stop-signal", 8, BEGUN),
    ("own-stop-signal-not-sent", 8, BEGUN),
    ("exit-while-down-is-forgotten", 9, WHILE_DOWN),
    ("created-for-an-image", 7, IMAGE_CALL),
];

const TWO_PODS: &str = "two pods, one of which has to be undisturbed";
const BEGUN: &str = "a program that has surely begun before it is stopped";
const WHILE_DOWN: &str = "what ends by itself while the runtime is down, and is listed after it";
const IMAGE_CALL: &str = "a call to the image service when nothing else happens";
