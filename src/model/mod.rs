//! The model runtime: what a correct CRI runtime does, as a program that needs no root and makes no
//! process.
//!
//! [`Machine`] is the statement itself, pure: calls, subscriptions and moments go in, answers and
//! events come out, and time is data. [`Behaviour`] is all that may differ from one runtime to
//! another: what the CRI permits, and every way of being wrong that the suite must notice, each a
//! value that the machine consults or a hook that every event and every answer passes. [`Model`]
//! is a machine that lives: it has a lock, a clock and timers, and is what a server serves.

mod agenda;
mod answers;
mod behaviour;
mod containers;
mod defects;
mod exec;
mod images;
mod live;
mod machine;
mod prefixes;
mod process;
mod random;
mod relay;
mod sandboxes;
mod serve;
mod stage;
mod starts;
#[cfg(test)]
mod tests;

pub use behaviour::{
    Answer, Audience, Behaviour, ChildKill, Delivery, EventHook, ExitNotice, FullQueue, Leftover,
    NonTransition, Offer, Order, PodKill, Replay, ReplyHook, Restart, StopSignals, Transition,
};
pub use defects::{Fault, NamedFault, VARIATIONS, Variation, fault_named, faults};
pub use live::Model;
pub use machine::{Machine, Ticket};
pub use process::End;
pub use relay::Relay;
pub use sandboxes::FAULTY;
pub use serve::{ServeError, serve};
pub use stage::{Passage, Subscriber, Taken};
