//! stub
use super::Entry;
/// stub
pub fn encode(_entry: &Entry, _out: &mut Vec<u8>) {}
