//! Differences between subscribers and the stream of all cases.

use super::{is_on_other_stream, is_split};
use crate::history::EventKind;
use crate::oracle::script::history;

/// A history with an observer from the beginning, up to the call that creates `c`.
fn observed(script: &str) -> crate::history::CaseHistory {
    history(&format!(
        "pod run; observe 7 as=b proven; c create begins; {script}"
    ))
}

#[test]
fn events_are_split_if_a_subscriber_has_one_that_the_stream_of_all_cases_lacks() {
    let made = "c CREATED at=last; c CREATED on=7 at=last; c create returns";
    assert!(!is_split(&observed(&format!("{made}; end"))));
    assert!(is_split(&observed(&format!("{made}; c STARTED on=7; end"))));
    // An event on the stream of all cases alone is a loss of the subscriber.
    assert!(!is_split(&observed(&format!("{made}; c STARTED; end"))));
    // After the steps, the case's subscriptions are given up.
    assert!(!is_split(&observed(&format!(
        "{made}; end; c STARTED on=7"
    ))));
}

#[test]
fn an_event_is_on_another_stream_if_it_is_of_that_kind_and_container() {
    let history = observed(
        "c CREATED; c create returns; d create; d CREATED; c CREATED on=7; d STARTED on=7; end",
    );
    let subjects = history.subjects().iter();
    let of = |name: &str| {
        let mut subjects = subjects.clone();
        subjects.find(|subject| subject.id.as_str().starts_with(name))
    };
    let (c, d) = (of("c.").unwrap(), of("d.").unwrap());
    assert!(is_on_other_stream(&history, c, EventKind::Created));
    assert!(!is_on_other_stream(&history, c, EventKind::Started));
    assert!(is_on_other_stream(&history, d, EventKind::Started));
    assert!(!is_on_other_stream(&history, d, EventKind::Created));
}
