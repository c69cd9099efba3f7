//! Identifiers as used by PLEGs, with fewer types than in the history.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! shared_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The identifier as text, exactly as the runtime wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

shared_id!(
    /// The UID of a pod.
    SharedUid
);
shared_id!(
    /// The id of a container or a sandbox: PLEGs do not distinguish them.
    SharedId
);
