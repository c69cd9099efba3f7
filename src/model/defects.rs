//! Ways of being wrong, each with its name, the real fault that it imitates, and who must notice.
//!
//! A defect is an element of one of the tables in this folder, and nothing else: `stream` and
//! `order` for what happens to events on their way, `statuses` for what they show of a pod,
//! `fields` for what they tell of themselves, `subscribers` for who gets them and how long,
//! `replies` for what happens to answers, `offers` for what only some lists and pods have,
//! `behaviour` for what the model does otherwise, and `failures` for what it does with what could
//! not be made or was given up. All but `subscribers`, `behaviour` and `failures` can be put
//! between the suite and a real runtime as well, by a [`Relay`](super::Relay).

mod behaviour;
mod failures;
mod fields;
mod offers;
mod order;
mod replies;
mod statuses;
mod stream;
mod subscribers;

use super::behaviour::{Behaviour, EventHook, ReplyHook};

/// One way of being wrong.
#[derive(Clone, Copy, Debug)]
pub struct Defect {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What a runtime does that has it, as a sentence.
    pub what: &'static str,
    /// The real fault that it imitates.
    pub imitates: &'static str,
    /// The requirements that it breaks, as the catalogue numbers them.
    pub requirements: &'static [&'static str],
    /// The cases that provoke it.
    pub shown_in: &'static [&'static str],
    /// The cases and invariants that must fail for it, the one that explains it first.
    pub noticed_by: &'static [&'static str],
    /// What it does.
    pub fault: Fault,
}

/// What a defect does.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Something to each event on its way to each subscriber.
    Events(EventHook),
    /// The same to the whole stream: what others do meanwhile counts, too.
    Stream(EventHook),
    /// Something to each answer on its way to its caller.
    Replies(ReplyHook),
    /// The model behaves otherwise.
    Behaviour(fn(&mut Behaviour)),
}

impl Fault {
    /// Makes the model behave so.
    pub fn apply(&self, behaviour: &mut Behaviour) {
        match self {
            Self::Events(hook) | Self::Stream(hook) => behaviour.events.push(*hook),
            Self::Replies(hook) => behaviour.replies.push(*hook),
            Self::Behaviour(change) => change(behaviour),
        }
    }

    /// Whether it concerns nothing but what passes between a runtime and its client.
    #[must_use]
    pub fn is_on_the_way(&self) -> bool {
        matches!(self, Self::Events(_) | Self::Stream(_) | Self::Replies(_))
    }
}

/// All of them.
pub fn defects() -> impl Iterator<Item = &'static Defect> {
    let tables = [
        stream::STREAM,
        statuses::STATUSES,
        fields::FIELDS,
        order::ORDER,
        subscribers::SUBSCRIBERS,
        replies::REPLIES,
        offers::OFFERS,
        behaviour::BEHAVIOUR,
        failures::FAILURES,
    ];
    tables.into_iter().flatten()
}

/// Something that a correct runtime may do otherwise: its name, and how the model comes to do it.
pub type Variation = (&'static str, fn(&mut Behaviour));

/// All that a correct runtime may do otherwise.
pub const VARIATIONS: &[Variation] = behaviour::VARIATIONS;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_can_be_typed() {
        let mut names = BTreeSet::new();
        for defect in defects() {
            assert!(names.insert(defect.name), "{} twice", defect.name);
            let typed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(defect.name.chars().all(typed), "{}", defect.name);
        }
    }

    #[test]
    fn each_says_what_it_is() {
        for defect in defects() {
            let name = defect.name;
            assert!(defect.what.ends_with('.'), "{name}: {}", defect.what);
            for list in [defect.requirements, defect.shown_in, defect.noticed_by] {
                assert!(!list.is_empty(), "{name}");
            }
            assert!(!defect.imitates.is_empty(), "{name}");
        }
    }
}
