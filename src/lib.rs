//! Conformance tests for the CRI event stream, `GetContainerEvents`, against real runtimes.
//!
//! # One idea carries it
//!
//! Everything that a run does and sees goes into one append-only [`history`]: each call and its
//! return, each event and its arrival, each fact read from the kernel. Everything that is said
//! about a run is a pure function of that history. So a failure can be shown as a timeline, a
//! verdict can be made again from a recorded file, and a broken runtime can be imitated by editing
//! a history.
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
//! | module | what it does | knows |
//! |---|---|---|
//! | [`escape`] | text of others, made fit to be shown | nothing |
//! | [`history`] | the record: [`history::Entry`], and [`history::CaseHistory`], the part of one case; its files | escape |
//! | [`outcome`] | verdicts and their evidence | history |
//! | [`pleg`] | what a kubelet would have believed: its PLEGs, its pod cache | history |
//! | [`oracle`] | what a history proves, whatever its case: the invariants of every history | history, outcome, pleg |
//! | [`checks`] | what a case can expect: each word's shape, validation and assessment; the verdict on a case | history, oracle, outcome |
//! | [`case`] | a case as data: parse, validate, diagnose YAML | checks, history, outcome |
//! | [`plan`] | which cases run, in what order | case, outcome |
//! | [`verdicts`] | what a history says of its run: every verdict, the whole report | case, checks, history, oracle, outcome, plan |
//! | [`report`] | an outcome as text, JUnit, JSON; two reports compared; a history as a timeline | history, outcome, escape |
//! | [`host`] | clocks, kernel facts, processes, cgroups of our own, the user's command | history |
//! | [`workload`] | the program that containers run, its image, a loopback registry | nothing |
//! | [`metrics`] | a kubelet's PLEG metrics, and their HTTP endpoint | nothing |
//! | [`terminal`] | all that is printed goes through it | host, escape |
//! | [`files`] | the files that are written, safe from others who may write to the folder | nothing |
//! | [`recorder`] | the history while it grows: one writer's end, many readers | files, history, host |
//! | [`cri`] | unary calls and subscriptions, and a server for both; alone knows gRPC | history, host, recorder |
//! | [`model`] | what a correct runtime does, as a runtime without containers | history, host, terminal, workload, cri |
//! | [`catalogue`] | what is required, what checks it, which defect breaks it, who is known to | all above |
//! | [`drive`] | does a case's steps, waits, tears down | all above |
//! | [`run`] | select, prepare, execute, clean up, report | all above |
//! | [`matrix`] | every defect of the model against the cases that must notice it | all above |
//! | [`watch`] | what a node does now, and what a kubelet's PLEGs make of it | all above |
//! | [`cli`] | the command line | all above |
//!
//! # Invariants
//!
//! * `history`, `outcome`, `plan`, `oracle`, `checks`, `pleg`, `verdicts` and `report` do no I/O
//!   and read no clock. Time is data. So it is for the model's `Machine`.
//! * A run's report is what `verdicts` makes of its history, entry by entry. `check` makes the same
//!   of a recorded one, with the same code.
//! * gRPC appears in `cri` alone. The fields of the CRI's messages are listed once, in
//!   [`history::messages`], those of a history in [`history::codec`].
//! * Arrows of the table point one way; `tests/tidy` holds all of this.
//! * No Rust code knows a case by its name. What a case can say is in `case` and `checks`, what its
//!   steps do is in `drive::steps`, what it must have seen is in `checks`.
//! * Whatever is printed goes through [`terminal`], and text of others through [`escape`] before.
//! * Every wait has a condition, a bound and a reason; the bounds are in [`limits`].
//! * Whoever wants the time asks [`host::now`], which follows the simulated clock on a
//!   [`host::Reactor`] that has one: there a run on the model takes seconds of our time.
//! * A violation convicts only with the entries that prove it.
//!
//! # Where to start reading
//!
//! `cases/order/created-started-stopped-deleted.yaml`, then [`drive::CaseRunner`], which does it,
//! then [`checks::judge()`], which judges it. [`run::run`] is the whole of a run.
//!
//! # A new case, a new check, a new invariant
//!
//! A case is a file under `cases/`; see `cases/README.md`. A new step word is a file in
//! `case::steps` with its keys and what makes it wrong, one in `drive::steps` with its effect, and
//! a line in the list of [`case::Step`]. A new check is a file in `checks` with its keys, its
//! validation, its assessment and its tests, and a line in the list of [`checks::Check`]. What a
//! runtime or a node need not have is a variant of [`case::Need`], with a file in `drive::probes`
//! that measures it. An invariant is a file under
//! `oracle/rules` and a line of [`oracle::INVARIANTS`]. Each comes with a history that breaks it,
//! and one beside it that does not. A defect that the suite must notice is an entry of
//! `cases/defects.yaml`, and its hook, one of [`model::faults`]; what a correct runtime may do
//! otherwise is one of [`model::VARIATIONS`].
//!
//! An option is one field of a struct in the module that uses it, such as [`run::RunOptions`],
//! [`drive::DriveOptions`] or [`plan::Selection`]; its doc comment is its help.

pub mod case;
pub mod catalogue;
pub mod checks;
pub mod cli;
pub mod cri;
pub mod drive;
pub mod escape;
pub mod files;
pub mod history;
pub mod host;
pub mod limits;
pub mod matrix;
pub mod metrics;
pub mod model;
pub mod oracle;
pub mod outcome;
pub mod plan;
pub mod pleg;
pub mod recorder;
pub mod report;
pub mod run;
pub mod terminal;
pub mod verdicts;
pub mod watch;
pub mod workload;

/// Version and commit of this suite.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("GIT_COMMIT"), ")");
