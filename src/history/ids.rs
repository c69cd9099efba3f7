//! Identifiers and instants, each a type of its own so that none is taken for another. Identifiers
//! are cheap to clone, since each occurs many times in a history.

use std::borrow::Borrow;
use std::fmt;
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
    /// What the runtime calls a sandbox.
    SandboxId
);
text_id!(
    /// What the runtime calls a container. A sandbox's own events carry its sandbox id here.
    ContainerId
);
text_id!(
    /// `metadata.uid` of a pod, chosen by this run.
    PodUid
);
text_id!(
    /// One run of the suite: a UUID, also the value of the label that marks what the run made.
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
    /// A moment on this host, by both clocks. Only the monotonic one orders; the other one compares
    /// with what a runtime on the same host reports.
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
