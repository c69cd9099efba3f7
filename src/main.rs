//! The command line of cri-event-conformance.
fn main() {}
