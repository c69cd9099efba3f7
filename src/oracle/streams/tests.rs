//! The awaited events that a runtime still owes after its streams ended.

use crate::checks::testing::case;
use crate::checks::{Undecided, judge};
use crate::oracle::Index;
use crate::oracle::script::history;
use crate::outcome::Level;

/// The result of a wait for an event that does not arrive.
#[track_caller]
fn awaited_in_vain(how: &str, after: &str) -> Result<(), String> {
    let case = case(Level::Must, "no-repeats: {of: pod}");
    let script = format!("pod run; {how}; wait in-vain STOPPED_of_c; end unmet; {after}");
    let judgement = judge(&case.claim(), &Index::new(&history(&script)));
    if let Some(Undecided::Error(reason)) = judgement.undecided {
        return Err(reason);
    }
    assert_eq!(judgement.violations.len(), 1, "{script}");
    Ok(())
}

#[test]
fn no_event_is_due_from_a_runtime_that_was_lost() {
    let lost = "pod stop fails";
    let ended = "stream ends UNAVAILABLE";
    let why = "the event stream ended, and so did the runtime: it ended with UNAVAILABLE";
    assert_eq!(awaited_in_vain(ended, lost), Err(why.to_owned()));
    assert_eq!(
        awaited_in_vain(ended, "pod remove begins"),
        Err(why.to_owned())
    );
    let why = "the event stream ended, and so did the runtime: the runtime ended it with OK";
    assert_eq!(awaited_in_vain("stream ends", lost), Err(why.to_owned()));
    let gone = awaited_in_vain("pod stop fails; stream ends UNAVAILABLE", "pod stop");
    assert!(gone.is_err(), "{gone:?}");
    // A runtime that keeps running owes it nevertheless.
    let still_there = "pod stop fails; pod stop; stream ends UNAVAILABLE";
    assert_eq!(awaited_in_vain(still_there, "pod stop"), Ok(()));
    assert_eq!(awaited_in_vain(ended, "pod stop"), Ok(()));
    assert_eq!(awaited_in_vain("resubscribe", lost), Ok(()));
    assert_eq!(awaited_in_vain("pass 1s", lost), Ok(()));
}
