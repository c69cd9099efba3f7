//! `measure` says what events of a runtime cost, how late they are, and what a kubelet saves by
//! them.
//!
//! It makes pods of its own, in a session as a run has, and kills their containers: the kernel says
//! when a process has ended, and what is measured is when a consumer knows. `ramp`, `arrivals`,
//! `traffic`, `table` and `page` are pure; the others drive the runtime.
//!
//! One invariant: a figure that was not measured is absent, never zero.

mod announce;
mod arrivals;
mod change;
mod churn;
mod cpu_meter;
mod error;
mod events;
mod follower;
mod measurement;
mod options;
mod page;
mod pleg;
mod population;
mod ramp;
mod relisting;
mod results;
mod sample;
mod session;
mod table;
mod traffic;

pub use error::MeasureError;
pub use options::MeasureOptions;
pub use session::measure;
