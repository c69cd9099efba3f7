//! The command line of cri-event-conformance.

use std::process::ExitCode;

fn main() -> ExitCode {
    cri_event_conformance::main()
}
