//! The implementations of the defects, by name. `cases/defects.yaml` describes each defect, the bug
//! it imitates and what must detect it.
//!
//! Each is a row of one of the tables in this directory: `stream` loses, repeats, reorders and
//! delays events, and changes their fan-out and the life of streams; `statuses` changes their
//! fields and the snapshots that they carry, `replies` answers, optional features and failed calls,
//! and `behaviour` the model itself. Defects that only change events and answers can also be
//! applied to a real runtime, by a [`Relay`](super::Relay).

use super::behaviour::{Behaviour, EventHook, ReplyHook};

/// The table of this name, with a row for each defect: its name, what it does, and how. It `sets`
/// fields of the [`Behaviour`], or `behaves` in a way that takes statements. It `changes` each
/// event in place, `drops` or `delays` it where the body is true or longer than nothing, or
/// `delivers` other items: each by the event, and the [`HookContext`](super::HookContext) if that
/// is named. Such a hook depends only on the events of one pod, unless it is one `of_stream`. It
/// `answers` otherwise, by the answer to change, and the request if that is named.
macro_rules! defects {
    ($table:ident: $($name:literal $how:ident $(($($by:tt),+))? { $($what:tt)+ })+) => {
        pub(super) const $table: &[super::Row] = &[
            $(($name, fault!($how $(($($by),+))? { $($what)+ }))),+
        ];
    };
}

/// The [`Fault`] of a row.
macro_rules! fault {
    (sets { $($field:ident = $value:expr),+ $(,)? }) => {
        Fault::Behaviour(|it| { $(it.$field = $value;)+ })
    };
    (behaves($it:tt) { $($how:tt)+ }) => { Fault::Behaviour(|$it| { $($how)+ }) };
    ($hook:ident($it:tt) $how:tt) => { fault!($hook(_, $it) $how) };
    (answers($by:tt, $it:tt) $how:tt) => { Fault::Replies(|$by, $it| $how) };
    (changes($by:tt, $it:tt) $how:tt) => { Fault::Events(EventHook::Change(|$by, $it| $how)) };
    (drops($by:tt, $it:tt) $how:tt) => { Fault::Events(EventHook::Drop(|$by, $it| $how)) };
    (delays($by:tt, $it:tt) $how:tt) => { Fault::Events(EventHook::Delay(|$by, $it| $how)) };
    (delivers($by:tt, $it:tt) $how:tt) => { Fault::Events(EventHook::Deliver(|$by, $it| $how)) };
    (drops_of_stream($by:tt, $it:tt) $how:tt) => {
        Fault::Stream(EventHook::Drop(|$by, $it| $how))
    };
    (delivers_of_stream($by:tt, $it:tt) $how:tt) => {
        Fault::Stream(EventHook::Deliver(|$by, $it| $how))
    };
}

mod behaviour;
mod replies;
mod statuses;
mod stream;

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
