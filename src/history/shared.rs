//! Values that are shared by many entries.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A text that is cheap to clone.
pub type Text = Arc<str>;

/// A value that is cheap to clone, and copied when a shared one is changed.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Shared<T>(Arc<T>);

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: Clone> Shared<T> {
    /// The value; a copy if it is shared.
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<K: Ord, V> Shared<BTreeMap<K, V>> {
    /// An empty map.
    pub fn new() -> Self {
        Self::from(BTreeMap::new())
    }
}

impl<K: Into<Text>, V: Into<Text>, const N: usize> From<[(K, V); N]>
    for Shared<BTreeMap<Text, Text>>
{
    fn from(pairs: [(K, V); N]) -> Self {
        Self::from_iter(pairs)
    }
}

impl<K: Into<Text>, V: Into<Text>> FromIterator<(K, V)> for Shared<BTreeMap<Text, Text>> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        let pairs = pairs.map(|(key, value)| (key.into(), value.into()));
        Self::from(pairs.collect::<BTreeMap<_, _>>())
    }
}

impl Shared<BTreeMap<Text, Text>> {
    /// Adds a label, or changes it.
    pub fn insert(&mut self, key: impl Into<Text>, value: impl Into<Text>) {
        BTreeMap::insert(self, key.into(), value.into());
    }

    /// Adds labels, or changes them.
    pub fn extend<K: Into<Text>, V: Into<Text>>(
        &mut self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) {
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }
}

impl<'a, K, V> IntoIterator for &'a Shared<BTreeMap<K, V>> {
    type Item = (&'a K, &'a V);
    type IntoIter = std::collections::btree_map::Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
