//! Conformance tests for the CRI event stream, `GetContainerEvents`, against real runtimes.
//!
//! # The central idea
//!
//! Everything that a run does and observes is recorded in one append-only [`history`]: each call
//! and its return, each event and its arrival, each fact read from the kernel. Verdicts depend only
//! on the recorded history. So a failure can be shown as a timeline, a recorded run can be judged
//! again, and a broken runtime can be imitated by editing a history.
//!
//! # Glossary
//!
//! * *History*: the record of a run, a sequence of *entries* such as a call, a reply or an event.
//! * *Subscription*: one event stream, opened by `GetContainerEvents`.
//! * *Snapshot*: the sandbox status and the container statuses that an event carries.
//! * *PLEG*: the kubelet's pod lifecycle event generator, which detects changes of pods. The
//!   Generic PLEG *relists*: it lists all pods and compares. The Evented PLEG consumes events.
//! * *Case*: a YAML file with *steps* and *checks*. *Invariant*: a rule on every case's history.
//! * *Violation*: evidence that the runtime broke a check or an invariant.
//! * *Verdict* of a case or invariant: pass, fail, error, skip or inconclusive.
//! * *Guarantee*: one of twelve promises to consumers of events, such as Complete. Each requirement
//!   belongs to one, and by it each case and invariant; each kind of findings breaks one.
//! * *Profile*: a kind of consumer, such as kubelet 1.37, with its own requirement levels (MUST,
//!   SHOULD, MAY).
//! * *Defect*: a bug that the [`model`] runtime can have, and that the suite must notice.
//! * *Expectation file*: known failures of a runtime, which do not fail a run.
//!
//! ```text
//! cases/*.yaml ─► case ─► plan ─► run ─► drive ─► cri ─► the runtime
//!                                         │ ▲      │
//!                            host, workload │      ▼
//!                              recorder ─► history ─► verdicts (oracle) ─► outcome ─► report
//! ```
//!
//! # Where things are
//!
//! | module | purpose | knows |
//! |---|---|---|
//! | [`escape`] | escapes foreign text for display | nothing |
//! | [`statistics`] | statistical tests: tails and bounds of distributions | nothing |
//! | [`queue`] | writes to outputs on separate threads, so that a stalled one does not block the rest | nothing |
//! | [`yaml`] | reads YAML with limits on its nesting | escape |
//! | [`files`] | opens all files, safely in directories that other users can write to | queue |
//! | [`history`] | the record: [`history::Entry`], and [`history::CaseHistory`], the part of one case or of one foreign pod; its files | escape |
//! | [`outcome`] | verdicts and their evidence | history |
//! | [`listener`] | HTTP servers with limits on their connections | nothing |
//! | [`workload`] | the program of the test containers, its image, a loopback registry | listener |
//! | [`pleg`] | the kubelet's PLEGs and its pod cache | history |
//! | [`oracle`] | the invariants of every history, independent of its case | history, outcome, pleg, workload |
//! | [`checks`] | the expectations of a case: each word's shape, validation and assessment; the verdict on a case | history, oracle, outcome |
//! | [`case`] | a case as data: parse, validate, diagnose YAML | checks, escape, files, history, outcome, yaml |
//! | [`plan`] | selects and orders the cases of a run | case, outcome |
//! | [`verdicts`] | derives a run's verdicts and report from its history | case, checks, history, oracle, outcome, plan, statistics, yaml |
//! | [`report`] | an outcome as text, Markdown, HTML, JUnit, JSON, annotations; reports compared, or thousands as one; a history as a timeline or a Perfetto trace | case, history, outcome, escape, statistics |
//! | [`gate`] | reports judged by a policy | case, checks, outcome, report, statistics, verdicts, yaml |
//! | [`host`] | clocks, kernel facts, processes, cgroups, the user's commands | files, history, queue, yaml |
//! | [`metrics`] | a kubelet's PLEG metrics, and their HTTP endpoint | listener |
//! | [`terminal`] | all output to the terminal | host, escape, queue |
//! | [`recorder`] | the history of a run in progress: one writer, many readers | files, history, host |
//! | [`cri`] | unary calls and subscriptions, a server for both, and a proxy; the only module with gRPC | files, history, host, recorder |
//! | [`model`] | a conformant runtime without containers, with optional defects, and a relay that gives them to a real one | history, host, terminal, workload, cri |
//! | [`catalogue`] | requirements, the cases and invariants that check them, defects, known failures and their pages | all above |
//! | [`drive`] | executes the steps of a case, waits, tears down | all above |
//! | [`run`] | select, prepare, execute, clean up, report | all above |
//! | [`matrix`] | runs every defect against the cases that must notice it | all above |
//! | [`explore`] | takes random walks, shrinks each failure to a case | all above |
//! | [`doctor`] | reports whether a node is fit for Evented PLEG and has it enabled | all above |
//! | [`watch`] | streams, records and judges the events of a node | all above |
//! | [`measure`] | measures the latency and the cost of events, and the cost of relists instead | all above |
//! | [`cli`] | the command line | all above |
//!
//! # Invariants
//!
//! * `history`, `outcome`, `plan`, `oracle`, `checks`, `pleg`, `verdicts`, `report` and `gate` do
//!   no I/O and read no clock: time is data. The same holds for the model's `Machine`.
//! * `verdicts` derives a run's report from its history, entry by entry, and `check` does the same
//!   with a recorded history.
//! * gRPC appears only in `cri`. A field of the CRI's messages, or of a history, is listed once:
//!   in the type that has it, with its tag.
//! * A module uses only modules above it in the table; `tests/tidy` checks all of this.
//! * No Rust code depends on a case by its name. The case language is in `case` and `checks`, the
//!   effects of its steps in `drive::steps`.
//! * Output is printed by [`terminal`], and foreign text passes through [`escape`] before.
//! * Every wait has a condition, a timeout and a reason; the timeouts are in [`limits`].
//! * [`host::now`] is the only clock. It follows the simulated clock of a [`host::Reactor`], with
//!   which a run on the model takes seconds.
//! * A violation always names the entries that prove it.
//! * Nothing is public but [`main`] and [`testing`], the names that tests, benchmarks and fuzz
//!   targets use.
//!
//! # Where to start reading
//!
//! `cases/order/created-started-stopped-deleted.yaml`, then [`drive::CaseRunner`], which executes
//! it, then [`checks::judge()`], which judges it. [`run::run`] is the whole of a run.
//!
//! # A new case, a new check, a new invariant
//!
//! A case is a file under `cases/`; see `cases/README.md`. A new step word has its keys and its
//! rule in the file of its family in `case::steps`, its effect in the file of the same name in
//! `drive::steps`, and a line in the list of [`case::Step`]. A new check is a file in `checks`
//! with its keys, its validation, its assessment and its tests, and its `mod` line and a line in
//! the list of [`checks::Check`], both in `checks.rs`. An optional feature of a runtime or a node
//! is a variant of [`case::Need`], with a function in `drive::probes` that measures it. An
//! invariant is a file under `oracle/rules` and a line of [`oracle::INVARIANTS`]; a field of the
//! CRI is a row of `oracle::fields`, and is judged wherever it is said. Each comes with a history
//! that breaks it, and the most similar one that does not. A new requirement has a place
//! in the list of [`outcome::Guarantee`], a new kind of findings names its guarantee. A defect
//! that the suite must notice is an entry of `cases/defects.yaml`, and its hook, one of
//! [`model::faults`]; a permitted deviation of a correct runtime is one of [`model::VARIATIONS`].
//!
//! An option is one field of a struct in the module that uses it, such as [`run::RunOptions`],
//! [`drive::DriveOptions`] or [`plan::Selection`]; its doc comment is its help.

mod case;
mod catalogue;
mod checks;
mod cli;
mod cri;
mod doctor;
mod drive;
mod escape;
mod explore;
mod files;
mod gate;
#[cfg(test)]
#[path = "../tests/support/golden.rs"]
mod golden;
mod history;
mod host;
mod limits;
mod listener;
mod matrix;
mod measure;
mod metrics;
mod model;
mod oracle;
mod outcome;
mod plan;
mod pleg;
mod queue;
mod recorder;
mod report;
mod run;
mod statistics;
mod terminal;
#[doc(hidden)]
pub mod testing;
mod verdicts;
mod watch;
mod workload;
mod yaml;

pub use cli::main;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("GIT_COMMIT"), ")");
