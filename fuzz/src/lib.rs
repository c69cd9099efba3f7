//! What the fuzz targets share: a history is judged and told in every way that there is.

pub mod judging;
pub mod plegs;
pub mod script;
