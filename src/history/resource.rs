//! What a runtime holds, in numbers that the kernel of its node shows.

use std::fmt;

#[cfg(test)]
use arbitrary::Arbitrary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::protobuf::written_as;

/// What the resources are held by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a holder: `runtime`, `pods` or `log`"
)]
pub enum Holder {
    /// The process of the runtime.
    Runtime,
    /// The sandboxes and containers that the case has made, and what is left of those it has
    /// removed: what bears their ids.
    Pods,
    /// The runtime's log.
    Log,
}

macro_rules! resources {
    ($($(#[doc = $doc:literal])+ $number:literal $variant:ident $holder:ident $text:literal;)+) => {
        /// Something that a runtime holds, and of which it must not hold more and more.
        #[cfg_attr(test, derive(Arbitrary))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Resource {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Resource {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// What it is held by.
            pub fn holder(self) -> Holder {
                match self {
                    $(Self::$variant => Holder::$holder,)+
                }
            }

            /// Its number in a history.
            fn number(self) -> i32 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            /// The noun for several of it, in a sentence.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

resources! {
    /// Open file descriptors, without pidfds.
    1 Descriptors Runtime "file descriptors of the runtime";
    /// Threads.
    2 Threads Runtime "threads of the runtime";
    /// Resident memory, in KiB.
    3 MemoryKib Runtime "KiB of resident memory of the runtime";
    /// Mounted network namespaces, of any pod.
    4 NetworkNamespaces Runtime "mounted network namespaces";
    /// Shims and monitors.
    5 Monitors Pods "monitors of the pods";
    /// Cgroups, in each hierarchy.
    6 Cgroups Pods "cgroups of the pods";
    /// Mounts that the runtime sees.
    7 Mounts Pods "mounts of the pods";
    /// Lines that were logged while steps were taken.
    8 LogLines Log "lines in the log of the runtime";
}

impl Resource {
    /// Those of a holder.
    pub fn of(holder: Holder) -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(move |resource| resource.holder() == holder)
    }

    fn from_number(number: i32) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|resource| resource.number() == number)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

written_as! {
    Resource as i32 {
        |resource| resource.number(),
        |number| Resource::from_number(number).ok_or(Unreadable::Lacks("resource"))
    }
}
