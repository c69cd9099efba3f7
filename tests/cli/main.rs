//! Tests of the built program, without a real runtime: with sockets of the tests, and a fake
//! server.

#![expect(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

mod check;
mod commands;
mod consumer;
mod debug_pod;
mod doctor;
mod endpoints;
mod expectations;
mod explore;
mod fake_cri;
mod files;
mod gate;
mod hostile;
mod kubelet;
#[path = "../support/logs.rs"]
mod logs;
mod measure;
mod model;
mod on_a_terminal;
mod preflight;
mod profiles;
#[path = "../support/pty.rs"]
mod pty;
mod relay;
mod removal;
mod reports;
mod rerun;
mod selection;
mod sonobuoy;
mod stalled;
#[path = "../support/suite.rs"]
mod suite;
mod watch;
mod watch_verdict;
