//! INV-25: an event that one subscriber got is not replayed to a later one.

use crate::oracle::invariants::{Invariant, SHOULD_SHOULD};
use crate::outcome::Kind;

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-25",
    name: "invariant::no-replay",
    sentence: "An event that one subscriber has got is not sent to a later subscriber.",
    source: "KEP-3386 2026 (no replay, no resumption); R8 of the kubelet",
    requirements: &["R8", "R30"],
    kinds: &[Kind::ReplayedEvent],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: SHOULD_SHOULD,
    check: |_, _| Vec::new(),
};
