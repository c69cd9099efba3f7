//! Identifiers and instants, each a type of its own so that none is taken for another, and shared
//! values. Identifiers are cheap to clone, since each occurs many times in a history.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::protobuf::{message, written_as};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        #[cfg(test)]
        impl<'a> arbitrary::Arbitrary<'a> for $name {
            fn arbitrary(from: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
                // An id that is empty is none.
                Ok(Self::from(format!("id{}", from.arbitrary::<&str>()?)))
            }
        }

        impl $name {
            /// The identifier as text, exactly as the runtime or the run wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl From<&$name> for Arc<str> {
            fn from(id: &$name) -> Self {
                id.0.clone()
            }
        }
    };
}

text_id!(
    /// The runtime's id of a sandbox.
    SandboxId
);
text_id!(
    /// The runtime's id of a container. A sandbox's own events carry its sandbox id here.
    ContainerId
);
text_id!(
    /// `metadata.uid` of a pod, chosen by this run.
    PodUid
);
text_id!(
    /// One run of the suite: a UUID, also the value of the label of all objects of the run.
    RunId
);

impl From<&SandboxId> for ContainerId {
    fn from(id: &SandboxId) -> Self {
        Self(id.0.clone())
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        written_as! {
            $name as $inner { |id| id.0, |number| Ok($name(number)) }
        }
    };
}

number_id!(
    /// Place of an entry in the history: 0, 1, 2 and so on without a hole.
    Seq(u64)
);
number_id!(
    /// One RPC, from its call to its return.
    CallId(u64)
);
number_id!(
    /// One execution of one case. A case that is repeated has several.
    CaseRun(u32)
);
number_id!(
    /// One `GetContainerEvents` stream, from its opening to its end.
    SubscriptionId(u32)
);
number_id!(
    /// A time that the runtime reports, in nanoseconds since 1970 by the runtime's clock. 0 means
    /// "not set".
    RuntimeNanos(i64)
);

message! {
    /// A moment on this host, by both clocks. Only the monotonic one orders; the other one is for
    /// comparison with timestamps of a runtime on the same host.
    #[derive(Copy, Default, Eq, PartialOrd, Ord)]
    pub part HostInstant {
        /// `CLOCK_MONOTONIC`, in nanoseconds.
        monotonic_ns: u64 = 2,
        /// `CLOCK_REALTIME`, in nanoseconds since 1970.
        realtime_ns: i64 = 3,
    }
}

impl HostInstant {
    /// How long after `earlier` this moment is, by the monotonic clock; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.monotonic_ns.saturating_sub(earlier.monotonic_ns))
    }
}

/// A text that is cheap to clone.
pub type Text = Arc<str>;

/// The maximum length of a text that outputs repeat, in bytes. Messages of runtimes have some
/// hundred.
const LONGEST: usize = 4 << 10;

/// Cuts a text that is too long to be repeated, and appends its length.
pub(crate) fn cut(text: &mut String) {
    let length = text.len();
    if length > LONGEST {
        let mut ends = (0..=LONGEST).rev();
        let end = ends.find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        let _ = write!(text, "… ({length} bytes)");
    }
}

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
