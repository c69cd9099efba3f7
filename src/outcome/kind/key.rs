//! The key of a kind, read and written.

use std::fmt;

use super::Kind;

impl Kind {
    pub fn from_key(key: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied();
        known.clone().find(|kind| kind.key() == key).ok_or_else(|| {
            let likeness = |kind: &Self| strsim::jaro_winkler(kind.key(), key);
            let near = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            let hint = near.filter(|near| likeness(near) > 0.8);
            let hint = hint.map(|near| format!("; do you mean `{near}`?"));
            format!(
                "there is no kind of findings `{key}`{}",
                hint.unwrap_or_default()
            )
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}
