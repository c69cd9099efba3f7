//! What the fuzz targets share: a history is judged and told in every way that there is.

pub mod conversation;
pub mod judging;
pub mod plegs;
pub mod script;
pub mod serving;
pub mod wire;
