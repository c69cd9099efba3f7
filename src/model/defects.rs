//! The implementations of the defects, by name. `cases/defects.yaml` describes each defect, the bug
//! it imitates and what must detect it.
//!
//! Each is a row of one of the tables in this directory: `stream` loses, repeats, reorders and
//! delays events, and changes their fan-out and the life of streams; `statuses` changes their
//! fields and the snapshots that they carry, `replies` answers, optional features and failed calls,
//! and `behaviour` the model itself. Defects that only change events and answers can also be
//! applied to a real runtime, by a [`Relay`](super::Relay).

mod behaviour;
mod replies;
mod statuses;
mod stream;

use super::behaviour::{Behaviour, EventHook, ReplyHook};

/// A defect's name and implementation.
#[derive(Clone, Copy, Debug)]
pub struct NamedFault {
    /// The name in `cases/defects.yaml` and on the command line.
    pub name: &'static str,
    pub fault: Fault,
}

/// A row of a table: a defect's name and implementation.
type Row = (&'static str, Fault);

/// The implementation of a defect.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Transforms each event for each subscriber; depends only on the events of one pod.
    Events(EventHook),
    /// Transforms a whole stream: depends on events of concurrent cases, too.
    Stream(EventHook),
    /// Transforms each answer.
    Replies(ReplyHook),
    /// Changes the behaviour of the model.
    Behaviour(fn(&mut Behaviour)),
}

impl Fault {
    pub fn apply(&self, behaviour: &mut Behaviour) {
        match self {
            Self::Events(hook) | Self::Stream(hook) => behaviour.events.push(*hook),
            Self::Replies(hook) => behaviour.replies.push(*hook),
            Self::Behaviour(change) => change(behaviour),
        }
    }

    /// Whether it changes only events and answers, so that a [`Relay`](super::Relay) can apply it.
    pub fn is_relayable(&self) -> bool {
        matches!(self, Self::Events(_) | Self::Stream(_) | Self::Replies(_))
    }
}

pub fn faults() -> impl Iterator<Item = NamedFault> {
    let tables = [
        stream::STREAM,
        statuses::STATUSES,
        statuses::FIELDS,
        stream::ORDER,
        stream::SUBSCRIBERS,
        replies::REPLIES,
        replies::CAPABILITIES,
        behaviour::BEHAVIOUR,
        replies::FAILURES,
    ];
    tables
        .into_iter()
        .flatten()
        .map(|&(name, fault)| NamedFault { name, fault })
}

pub fn fault_named(name: &str) -> Option<NamedFault> {
    faults().find(|fault| fault.name == name)
}

/// A permitted deviation from the default behaviour: its name, and how it is configured.
pub type Variation = (&'static str, fn(&mut Behaviour));

/// All deviations that a conformant runtime is permitted.
pub const VARIATIONS: &[Variation] = behaviour::VARIATIONS;
