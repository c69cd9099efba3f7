//! The enum of all checks, made from the list in the root of this module.

use serde::Serialize;

use super::Check;
use super::scope::Scope;
use crate::outcome::{Kind, Level};

/// A check that must hold after the steps, and its requirement levels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    pub level: Level,
    pub check: Check,
}

/// Defines the enum of all checks, and the word of each.
macro_rules! checks {
    ($($(#[doc = $doc:literal])+ $word:literal $variant:ident($shape:ty);)+) => {
        /// A condition after the steps. If a name is bound to several containers, each of
        /// them is checked; an unbound name breaks the expectation.
        #[derive(
            Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(
            rename_all = "kebab-case",
            expecting = "a check such as `never: {of: c, event: deleted}`"
        )]
        pub enum Check {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant($shape),)+
        }

        impl Check {
            /// Its word in a case.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $word,)+
                }
            }

            fn as_word(&self) -> &dyn word::Word {
                match self {
                    $(Self::$variant(check) => check,)+
                }
            }
        }
    };
}
pub(super) use checks;

impl Check {
    pub fn kinds(&self) -> Vec<Kind> {
        self.as_word().kinds()
    }

    /// Reports contradictions with the steps of the case, and checks that can never fail.
    pub fn validate(&self, scope: &mut dyn Scope<'_>) {
        self.as_word().validate(scope);
    }
}
