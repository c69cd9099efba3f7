//! `measure` reports the cost of a runtime's events, their latency, and a kubelet's savings by
//! them.
//!
//! It creates pods of its own, in a session like that of a run, and kills their containers: the
//! kernel reports the end of a process, and the measurement is the time until a consumer knows it.
//! `ramp`, `arrivals`, `traffic`, `table` and `page` are pure; the others drive the runtime.
//!
//! One invariant: a figure that was not measured is absent, never zero.

mod arrivals;
mod churn;
mod cpu_meter;
mod error;
mod events;
mod follower;
mod growth;
mod measurement;
mod options;
mod page;
mod pleg;
mod population;
mod ramp;
mod relisting;
mod sample;
mod session;
mod table;
mod traffic;

pub use error::MeasureError;
pub use growth::growth;
pub use options::MeasureOptions;
pub use session::measure;
