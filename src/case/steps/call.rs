//! `call`: make a call that no other step makes, by the name of its method in the CRI.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::diagnose::did_you_mean;
use crate::case::validate::{Surroundings, Walk};
use crate::history::{NoEventCall, NoEventCallTarget};

/// Make a call that no other step makes. Calls on what does not exist, `PullImage` and those that a
/// runtime need not have may fail; the others must succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a call such as `{method: ContainerStats, of: c}`"
)]
pub struct CallStep {
    /// The method.
    pub method: Method,
    /// The sandbox or container that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The call is made on an id, or an image, that does not exist.
    #[serde(default)]
    pub unknown_id: bool,
}

/// A method of the CRI that the step `call` can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Version,
    ListImages,
    /// `ImageStatus` of the image that containers run.
    ImageStatus,
    /// `PullImage` of the image that containers run, which may have been imported.
    PullImage,
    /// `RemoveImage` of an image that does not exist.
    RemoveImage,
    /// `StopContainer` of an id that does not exist.
    StopContainer,
    /// `RemoveContainer` of an id that does not exist.
    RemoveContainer,
    /// `StopPodSandbox` of an id that does not exist.
    StopPodSandbox,
    /// `RemovePodSandbox` of an id that does not exist.
    RemovePodSandbox,
    /// A call that changes no state and that a runtime need not have.
    NoEvent(NoEventCall),
}

enum Subject {
    Nothing,
    Container,
    Sandbox,
    Missing,
}

impl Method {
    const OWN: [(Self, &str); 9] = [
        (Self::Version, "Version"),
        (Self::ListImages, "ListImages"),
        (Self::ImageStatus, "ImageStatus"),
        (Self::PullImage, "PullImage"),
        (Self::RemoveImage, "RemoveImage"),
        (Self::StopContainer, "StopContainer"),
        (Self::RemoveContainer, "RemoveContainer"),
        (Self::StopPodSandbox, "StopPodSandbox"),
        (Self::RemovePodSandbox, "RemovePodSandbox"),
    ];

    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        let no_event = NoEventCall::ALL.iter();
        let no_event = no_event.map(|call| (Self::NoEvent(*call), call.method()));
        Self::OWN.into_iter().chain(no_event)
    }

    /// The method's name in the CRI.
    pub fn name(self) -> &'static str {
        let mut all = Self::all();
        let found = all.find(|(method, _)| *method == self);
        found.map_or("", |(_, name)| name)
    }

    fn subject(self) -> Subject {
        match self {
            Self::Version | Self::ListImages | Self::ImageStatus | Self::PullImage => {
                Subject::Nothing
            }
            Self::RemoveImage
            | Self::StopContainer
            | Self::RemoveContainer
            | Self::StopPodSandbox
            | Self::RemovePodSandbox => Subject::Missing,
            Self::NoEvent(call) => match call.target() {
                NoEventCallTarget::Container => Subject::Container,
                NoEventCallTarget::Sandbox => Subject::Sandbox,
                NoEventCallTarget::Nothing => Subject::Nothing,
            },
        }
    }
}

impl StepRules for CallStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        let method = self.method.name();
        let subject = self.method.subject();
        if matches!(subject, Subject::Missing) != self.unknown_id {
            if self.unknown_id {
                let message = format!("{method} is called on what exists");
                walk.object_to("unknown-id", message)
                    .advise("leave the key out");
            } else {
                let message = format!("{method} is called on what does not exist");
                walk.object_to("method", message)
                    .advise("add `unknown-id: true`, or let another step make the call");
            }
        }
        match (subject, &self.of) {
            (Subject::Container, Some(of)) => drop(walk.container("of", of)),
            (Subject::Sandbox, Some(of)) => walk.sandbox("of", of),
            (Subject::Container | Subject::Sandbox, None) => {
                walk.object_to("method", format!("{method} is about something"))
                    .advise("add `of:` with a name");
            }
            (Subject::Nothing | Subject::Missing, Some(_)) => {
                let message = format!("{method} is about nothing that the case has made");
                walk.object_to("of", message);
            }
            (Subject::Nothing | Subject::Missing, None) => {}
        }
    }

    fn check_without_events(&self, walk: &mut Walk<'_, '_>) {
        if self.method != Method::Version {
            walk.object("where there are no events, a case can only subscribe")
                .advise("take `no-events` from `needs`, or this step away");
        }
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(MethodName)
    }
}

/// Objects to a name while it is visited, so that the error has the name's position.
struct MethodName;

impl Visitor<'_> for MethodName {
    type Value = Method;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a method of the CRI such as `ContainerStats`")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Method, E> {
        if let Some((method, _)) = Method::all().find(|(_, known)| *known == name) {
            return Ok(method);
        }
        let help = did_you_mean(name, Method::all().map(|(_, known)| known));
        let help = help.map(|help| format!(": {help}")).unwrap_or_default();
        Err(E::custom(format_args!(
            "`{name}` is no method that a case can call{help}"
        )))
    }
}

impl JsonSchema for Method {
    fn schema_name() -> Cow<'static, str> {
        "Method".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = Self::all().map(|(_, name)| name).collect();
        json_schema!({
            "type": "string",
            "description": "A method of the CRI.",
            "enum": names,
        })
    }
}
