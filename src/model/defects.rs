//! The hooks of the defects, by name. What each defect is, which bug it imitates and what must
//! notice it is data: `cases/defects.yaml`.
//!
//! A hook is a row of one of the tables in this folder: `stream` and `order` for what happens to
//! events on their way, `statuses` for the pod that they show, `fields` for their own time, type
//! and id, `subscribers` for who gets them and how long, `replies` for what happens to answers,
//! `offers` for what only some lists and pods have, `behaviour` for what the model does otherwise,
//! and `failures` for what could not be created or was given up. All but `subscribers`,
//! `behaviour` and `failures` can be put between the suite and a real runtime as well, by a
//! [`Relay`](super::Relay).

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

/// The name of a defect, and its hook.
#[derive(Clone, Copy, Debug)]
pub struct NamedFault {
    /// What it is called in `cases/defects.yaml` and on the command line.
    pub name: &'static str,
    /// What it does.
    pub fault: Fault,
}

/// A row of a table: the name of a defect, and its hook.
type Row = (&'static str, Fault);

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

/// The hooks of all defects.
pub fn faults() -> impl Iterator<Item = NamedFault> {
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
    tables
        .into_iter()
        .flatten()
        .map(|&(name, fault)| NamedFault { name, fault })
}

/// The hook of the defect of this name, if there is one.
#[must_use]
pub fn fault_named(name: &str) -> Option<NamedFault> {
    faults().find(|fault| fault.name == name)
}

/// Something that a correct runtime may do otherwise: its name, and how the model comes to do it.
pub type Variation = (&'static str, fn(&mut Behaviour));

/// All that a correct runtime may do otherwise.
pub const VARIATIONS: &[Variation] = behaviour::VARIATIONS;
