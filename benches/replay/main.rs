//! The speed and memory of judging a recorded history, on one core.
//!
//! `cargo bench --bench replay -- EVENTS` writes a history of EVENTS events to a file, reads it as
//! `check` does (every byte decoded, every case judged by its expectations and by all invariants,
//! both PLEGs among them), and prints events a second and the peak memory.
//!
//! The history is made of the recordings of containerd 2.1 in `fixtures/histories`, each copied
//! with its own ids, eight parallel cases.
//!
//! # Results
//!
//! Per event there are 4.6 entries, 1.6 kB. On one core of a virtual machine, in each of three runs
//! of a length:
//!
//! | events | events/s | peak memory, 6 MiB before |
//! |---|---|---|
//! | 10 000 | 278 000 to 313 000 | 8 MiB |
//! | 100 000 | 269 000 to 281 000 | 17 MiB |
//! | 1 000 000 | 279 000 to 289 000 | 78 MiB |
//!
//! So an event costs 3.6 µs, for any length of the history. Of that, 1.35 µs are spent on decoding;
//! 2.2 µs on the cases' histories, the judging at their ends, and freeing them: 440 000 to 470 000
//! events/s without decoding.
//!
//! The memory grows by some 1.5 kB per case, of which there are 49 000 in the longest one: each has
//! an outcome in the report, and each failure its evidence.
//!
//! Of some 20 000 instructions for an event about half decode it. No part dominates: link-time
//! optimization gains a tenth, another allocator nearly nothing. Repeated messages and texts are
//! decoded once: three quarters of the sandboxes in events, a third of the containers.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "this is a program for developers"
)]

mod copies;

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cri_event_conformance::testing::history::Entry;
use cri_event_conformance::testing::history::codec::StreamDecoder;
use cri_event_conformance::testing::host;
use cri_event_conformance::testing::outcome::{Outcome, RunReport, Verdict};
use cri_event_conformance::testing::verdicts::{Scope, Verdicts};

/// Without an argument, as under `cargo test --benches`.
const FEW: usize = 10_000;

fn main() {
    let wanted = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let path = std::env::temp_dir().join(format!("replay-{}.binpb", std::process::id()));
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let events = copies::write(wanted.unwrap_or(FEW), &mut out);
    out.flush().unwrap();
    let bytes = fs::metadata(&path).unwrap().len();
    let started = processor_time();
    let decoded = entries(&path).count();
    let decoding = processor_time().saturating_sub(started);
    forget_peak();
    let before = memory_kib("VmRSS:");
    let (began, used) = (host::now(), processor_time());
    let (entries, report) = replay(&path);
    // On a machine that has other work, too, the time on the processor is what counts.
    let (took, used) = (host::elapsed(began), processor_time().saturating_sub(used));
    let peak = memory_kib("VmHWM:");
    fs::remove_file(&path).unwrap();
    let rate = per_second(events, used);
    println!(
        "replay: {events} events in {entries} entries, {} MiB, {} cases",
        bytes >> 20,
        report.outcomes.len()
    );
    println!(
        "replay: {:.2} s on the processor, {:.2} s in all: {rate} events/s, {} entries/s",
        used.as_secs_f64(),
        took.as_secs_f64(),
        per_second(entries, used)
    );
    let judging = used.saturating_sub(decoding);
    println!(
        "replay: of that, {:.2} s to decode {decoded} entries, {:.2} s to judge: {} events/s",
        decoding.as_secs_f64(),
        judging.as_secs_f64(),
        per_second(events, judging)
    );
    println!(
        "replay: at most {} MiB held, {} MiB before",
        peak >> 10,
        before >> 10
    );
    let red = report
        .outcomes
        .iter()
        .filter(|outcome| outcome.verdict != Verdict::Pass);
    let red: Vec<_> = red.map(Outcome::label).take(5).collect();
    println!("replay: not passed: {red:?}");
}

fn entries(path: &Path) -> impl Iterator<Item = Entry> {
    let source = BufReader::with_capacity(1 << 17, File::open(path).unwrap());
    StreamDecoder::new(source).map(Result::unwrap)
}

fn replay(path: &Path) -> (usize, RunReport) {
    let mut verdicts = Verdicts::new(Scope::default());
    let mut count = 0;
    for entry in entries(path) {
        count += 1;
        if let Some(ended) = verdicts.push(&Arc::new(entry)) {
            verdicts.settle(ended.judge());
        }
    }
    (count, verdicts.report(None))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a figure for people"
)]
fn per_second(count: usize, took: Duration) -> u64 {
    (count as f64 / took.as_secs_f64()) as u64
}

/// The CPU time of this thread.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap();
    let nanos = stat.split(' ').next().unwrap();
    Duration::from_nanos(nanos.parse().unwrap())
}

/// Resets the peak of memory, if the kernel allows it.
fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn memory_kib(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let line = line.unwrap().trim().trim_end_matches(" kB");
    line.parse().unwrap()
}
