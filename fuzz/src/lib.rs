//! What the fuzz targets do, and what they share for it. A target may not panic, whatever it gets.
//!
//! The package above takes all this as modules of a test, which gives each target its seeds.

pub mod conversation;
pub mod judging;
pub mod plegs;
pub mod script;
pub mod serving;
pub mod targets;
pub mod wire;
