//! `aside`: make a call that changes no state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};
use crate::history::{Aside, AsideOf};

/// A call that changes no state. Whatever it returns is right: a runtime may not have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a call such as `{call: ContainerStats, of: c}`"
)]
pub struct AsideStep {
    /// Which call.
    pub call: Aside,
    /// The sandbox or container that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

impl StepRules for AsideStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        let method = self.call.method();
        match (self.call.of(), &self.of) {
            (AsideOf::Container, Some(of)) => drop(walk.container("of", of)),
            (AsideOf::Sandbox, Some(of)) => walk.sandbox("of", of),
            (AsideOf::Container | AsideOf::Sandbox, None) => {
                let message = format!("{method} is about something");
                walk.object_to("call", message)
                    .advise("add `of:` with a name");
            }
            (AsideOf::Nothing, Some(_)) => {
                let message = format!("{method} is about the whole runtime");
                walk.object_to("of", message);
            }
            (AsideOf::Nothing, None) => {}
        }
    }
}
