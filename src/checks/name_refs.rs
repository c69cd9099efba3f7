//! Shapes that several checks share: a name, or an event of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind_words;
use crate::history::EventKind;

/// A sandbox or container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a sandbox or container such as `{of: c}`"
)]
pub struct NameRef {
    /// The sandbox or container.
    pub of: String,
}

/// An event of a sandbox or container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an event such as `{of: c, event: started}`"
)]
pub struct EventRef {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "kind_words::one")]
    #[schemars(with = "kind_words::Word")]
    pub event: EventKind,
}

/// Defines a check with the keys of one of these shapes.
macro_rules! check_on {
    ($(#[$doc:meta])* $name:ident($shape:ident)) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $shape);

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $shape::schema_name()
            }

            fn schema_id() -> std::borrow::Cow<'static, str> {
                $shape::schema_id()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $shape::json_schema(generator)
            }
        }
    };
}
pub(super) use check_on;
