//! The model runtime: an in-process implementation of a conformant CRI runtime, which needs no root
//! and starts no processes.
//!
//! [`machine::Machine`] is the pure state machine: its inputs are calls, subscriptions and the
//! time, its outputs answers and events. [`Behaviour`] describes all differences between runtimes:
//! those that the CRI permits, and every defect that the suite must notice, each a value that the
//! machine consults or a hook on every event and every answer. [`Model`] runs a machine with a
//! lock, a clock and timers; a gRPC server can serve it.

mod announce;
mod behaviour;
mod containers;
mod daemon;
mod defects;
mod event_bus;
mod execution;
mod live;
mod machine;
mod process;
mod relay;
mod sandboxes;
#[cfg(test)]
mod tests;
mod timer_queue;

pub use announce::{Leftover, NonTransition, Transition};
pub use behaviour::{
    Answer, Behaviour, ChildKill, Delivery, EarlyStreams, ExitDetection, FanOutPolicy, FullQueue,
    MonitorDeath, MonitorFreeze, Order, PodKill, Replay, Restart, StopSignals, StreamSupport, Twin,
};
pub use defects::{Fault, NamedFault, VARIATIONS, Variation, fault_named, faults};
pub use event_bus::HookContext;
pub use live::{Model, ServeError, serve};
pub use relay::{Effect, FaultyCalls, Relay};
pub use sandboxes::FAULTY;
pub use timer_queue::Random;
