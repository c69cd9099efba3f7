//! INV-03: an event's type and container id.

use crate::history::{ContainerId, EventKind, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-03",
    name: "invariant::known-type-and-full-id",
    sentence: "An event has a type that the CRI defines and the full id of its container.",
    source: "CRI api.proto, ContainerEventResponse",
    requirements: &["R11", "R7"],
    kinds: &[Kind::UnknownEventType, Kind::EmptyId, Kind::ShortenedId],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MUST,
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let known: Vec<&ContainerId> = history
        .subjects()
        .iter()
        .filter(|subject| !matches!(subject.kind, SubjectKind::Stray))
        .map(|subject| &subject.id)
        .collect();
    rule.on_each_event(history, |subject, arrival| {
        let event = arrival.event();
        let id = event.container.as_str();
        if let EventKind::Unknown(number) = event.kind {
            let number = Fact::Number(number.into());
            return Some(Mismatch::new(Kind::UnknownEventType, [], [number]));
        }
        if id.is_empty() {
            return Some(Mismatch::new(Kind::EmptyId, [], []));
        }
        if !matches!(subject.kind, SubjectKind::Stray) {
            return None;
        }
        let whole = known.iter().find(|whole| whole.as_str().starts_with(id))?;
        Some(Mismatch::new(
            Kind::ShortenedId,
            [Fact::Id(whole.to_string())],
            [Fact::Id(id.to_owned())],
        ))
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::oracle::rules::testing::after_create;

    #[test]
    fn a_type_that_the_cri_does_not_define_is_reported() {
        after_create(
            "c TYPE=9",
            expect![[r#"
                INV-03 at #6: c (c.0.beef): expected a type from 0 to 3: type 9
                INV-19 at #6: c (c.0.beef): expected a state from before a call that causes it in UNKNOWN(9): EXITED
            "#]],
        );
    }

    #[test]
    fn an_empty_id_is_reported() {
        after_create(
            "c STARTED id=",
            expect![[r#"
        INV-03 at #6: : expected a container id: an empty one
    "#]],
        );
    }

    #[test]
    fn a_shortened_id_is_reported() {
        after_create(
            "c STARTED id=c.0",
            expect![[r#"
        INV-03 at #6: c.0: expected the whole id c.0.beef: the shortened id c.0
    "#]],
        );
    }

    #[test]
    fn an_id_that_is_no_prefix_of_a_known_one_may_be_anothers() {
        after_create(
            "c STARTED id=d.0",
            expect![[r#"
                INV-10 at #6: d.0: expected the id of something that a call has made or a list has shown: STARTED of an id that no call has returned and no list shows
            "#]],
        );
    }
}
