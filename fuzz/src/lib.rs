//! The actions of the fuzz targets, and their common parts. A target must not panic on any input.
//!
//! The package above includes all this as modules of a test, which passes each target its seeds.

pub mod conversation;
pub mod judging;
pub mod plegs;
pub mod script;
pub mod serving;
pub mod targets;
pub mod wire;
