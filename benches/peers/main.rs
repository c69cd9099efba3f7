//! The suite beside its peers, critest and crictl, on one runtime in one session.
//!
//! `cargo bench --bench peers -- --runtime-endpoint ENDPOINT [--bin DIR]` measures, each if DIR has
//! the program:
//!
//! * the time until a program has started and printed its list;
//! * the delay with which `watch` and `crictl events` print an event that both receive, and the
//!   cost, while a part of the suite runs;
//! * a run of that part, and one of critest's specs that need no image but the sandbox's.
//!
//! The parts do not test the same: the rates show the user's waiting time, not the speed of the
//! programs. `ci/bench peers` does it on a private containerd.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "this is a program for developers"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Parser;
use cri_event_conformance::testing::host;

/// The argument that Cargo itself passes to a benchmark.
const OF_CARGO: &str = "--bench";
const SUITE: &str = env!("CARGO_BIN_EXE_cri-event-conformance");
/// The number of starts of a program.
const STARTS: u32 = 20;
/// The areas of the suite that run, with the known failures of the runtime.
const SELECTED: [&str; 4] = ["exit", "stop", "--expectations", "builtin"];
/// The specs of critest, most of which need no image.
const SPECS: &str = "PodSandbox|Idempotence|Runtime info";
/// Those among them that need one.
const SPECS_WITH_IMAGE: &str = "sysctls|StopContainer";

#[derive(Parser)]
struct Options {
    /// The runtime's socket.
    #[arg(long)]
    runtime_endpoint: String,
    /// The directory of critest and crictl.
    #[arg(long, value_name = "DIR")]
    bin: Option<PathBuf>,
}

fn main() {
    let given: Vec<String> = std::env::args().filter(|word| word != OF_CARGO).collect();
    if given.len() < 2 {
        // As under `cargo bench` and `cargo test --benches`, which are to make no containers.
        println!("peers: not measured; name a runtime, as with --runtime-endpoint");
        return;
    }
    let options = Options::parse_from(given);
    let peer = |name: &str| {
        let program = options.bin.as_ref()?.join(name);
        program.is_file().then_some(program)
    };
    let (crictl, critest) = (peer("crictl"), peer("critest"));
    start_up(crictl.as_deref(), critest.as_deref());
    let endpoint = &options.runtime_endpoint;
    let mut watchers = vec![Watcher::start(
        "watch",
        ours(endpoint, &["watch", "--output", "json"]),
    )];
    if let Some(crictl) = &crictl {
        let template = "--template={{.createdAt}}";
        let mut command = Command::new(crictl);
        command.args([
            "--runtime-endpoint",
            endpoint,
            "events",
            "--output=go-template",
            template,
        ]);
        watchers.push(Watcher::start("crictl events", command));
    }
    let run = run("the suite", ours(endpoint, &SELECTED));
    watchers.into_iter().for_each(Watcher::report);
    println!("{run}");
    if let Some(critest) = &critest {
        let mut command = Command::new(critest);
        command.args([
            "-runtime-endpoint",
            endpoint,
            "-ginkgo.no-color",
            "-ginkgo.focus",
            SPECS,
            "-ginkgo.skip",
            SPECS_WITH_IMAGE,
        ]);
        println!("{}", self::run("critest", command));
    }
}

fn ours(endpoint: &str, words: &[&str]) -> Command {
    let mut command = Command::new(SUITE);
    command.args(words).args(["--runtime-endpoint", endpoint]);
    command
}

/// Prints the start-up time of each program.
fn start_up(crictl: Option<&Path>, critest: Option<&Path>) {
    let suite = Some(Path::new(SUITE));
    let starts: [(_, &[&str]); 4] = [
        (suite, &["--version"]),
        (suite, &["--list"]),
        (crictl, &["--version"]),
        (critest, &["-ginkgo.dry-run", "-ginkgo.v"]),
    ];
    for (program, words) in starts {
        let Some(program) = program else { continue };
        let times = (0..STARTS).map(|_| {
            let began = host::now();
            let mut command = Command::new(program);
            command
                .args(words)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let status = command.status().unwrap();
            assert!(status.success(), "{command:?}: {status}");
            host::elapsed(began)
        });
        let name = program.file_name().unwrap().display();
        println!(
            "start: {name} {}: {}",
            words.join(" "),
            Spread::new(times.collect())
        );
    }
}

/// Runs a program to its end; returns its duration and number of tests.
fn run(name: &str, mut command: Command) -> String {
    let began = host::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    let took = host::elapsed(began).as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines();
    let tests = lines.clone().filter(|line| line.starts_with("test "));
    let says = lines.rev().find(|line| line.starts_with("Ran "));
    let says = says.map_or_else(|| format!("{} tests", tests.count()), str::to_owned);
    format!("run: {name}: {took:.1} s, {}: {says}", output.status)
}

/// A program that prints a line for each event.
struct Watcher {
    name: &'static str,
    process: Child,
    /// The time of each line, and its text.
    lines: JoinHandle<Vec<(i64, String)>>,
}

impl Watcher {
    fn start(name: &'static str, mut command: Command) -> Self {
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let lines = thread::spawn(move || {
            let stamped = lines.map_while(Result::ok);
            stamped
                .map(|line| (host::now().realtime_ns, line))
                .collect()
        });
        Self {
            name,
            process,
            lines,
        }
    }

    /// Ends the program, and prints the delays of its lines after the `created_at` in them.
    fn report(mut self) {
        let cost = cost(self.process.id());
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.process.wait().unwrap();
        let lines = self.lines.join().unwrap();
        let lags = lines.iter().filter_map(|(came, line)| {
            let lag = came.checked_sub(created_at(line)?)?;
            Some(Duration::from_nanos(u64::try_from(lag).ok()?))
        });
        println!(
            "events: {}: {}; {cost}",
            self.name,
            Spread::new(lags.collect())
        );
    }
}

/// The `created_at` of an event's line, in nanoseconds.
fn created_at(line: &str) -> Option<i64> {
    let value = match line.split_once("\"created_at_ns\":") {
        Some((_, rest)) => rest.split([',', '}']).next()?,
        None => line.trim(),
    };
    value.parse().ok()
}

/// The cost of a process so far: CPU time, and peak memory.
fn cost(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    let fields: BTreeMap<&str, &str> = fields.map(|(name, value)| (name, value.trim())).collect();
    let memory = fields.get("VmHWM").copied().unwrap_or("unknown");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Fields 14 and 15: the time in user mode and in the kernel, in hundredths of a second.
    let fields = stat
        .rsplit_once(") ")
        .map_or("", |(_, fields)| fields)
        .split(' ');
    let times = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u32>().ok());
    let cpu_ms = 10 * times.sum::<u32>();
    format!("{cpu_ms} ms on a processor, {memory} at most")
}

/// Sorted durations.
struct Spread(Vec<Duration>);

impl Spread {
    fn new(mut spans: Vec<Duration>) -> Self {
        spans.sort_unstable();
        Self(spans)
    }

    fn at(&self, percent: usize) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let span = self.0.get(last * percent / 100).copied();
        span.unwrap_or_default().as_secs_f64() * 1_000.0
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [median, p95, worst] = [50, 95, 100].map(|percent| self.at(percent));
        let times = self.0.len();
        write!(
            f,
            "{times}: median {median:.2} ms, p95 {p95:.2} ms, worst {worst:.2} ms"
        )
    }
}
