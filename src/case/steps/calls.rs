//! Steps that make a call on what the case has made, or a call of any name.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::diagnose::did_you_mean;
use crate::case::validate::Walk;
use crate::case::{CallEdge, Need, Span, WorkloadSpec, limits};
use crate::history::{NoEventCall, NoEventCallTarget};

/// How a call ends that the client waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "how a call ends: `success`, `failure` or `either`"
)]
pub enum CallOutcome {
    /// It must succeed.
    #[default]
    Success,
    /// It must fail: where it succeeds, the case is skipped.
    Failure,
    /// It may succeed or fail: what it has made is judged.
    Either,
}

/// Start a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct StartStep {
    /// The container.
    pub container: String,
    /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
    /// inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

impl StepRules for StartStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.container("container", &self.container);
        walk.names
            .called(&self.container, &[CallEdge::StartReturned]);
        walk.expectation(self.expect, self.abandon_after);
    }
}

/// Stop a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container and a grace period such as `{container: c, grace: 2s}`"
)]
pub struct StopStep {
    /// The container.
    pub container: String,
    /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
    /// inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// Time between the stop signal and the kill; whole seconds.
    #[serde(with = "Span")]
    pub grace: Duration,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

impl StepRules for StopStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.container("container", &self.container);
        let edges = [CallEdge::StopCalled, CallEdge::StopReturned];
        walk.names.called(&self.container, &edges);
        if self.grace.subsec_nanos() != 0 || self.grace > limits::GRACE {
            let most = limits::GRACE.as_secs();
            let message = format!("a grace period is from 0 to {most} whole seconds");
            walk.object_to("grace", message)
                .advise("the CRI counts it in seconds");
        }
        walk.expectation(self.expect, self.abandon_after);
    }
}

/// Remove a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct RemoveStep {
    /// The container.
    pub container: String,
    /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
    /// inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
    /// The longest time until the container is removed. A runtime may refuse until then: the call
    /// is repeated. If it still refuses after that time, the case fails.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
}

impl StepRules for RemoveStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.container("container", &self.container);
        walk.expectation(self.expect, None);
        if self.within.is_some() && (self.expect != CallOutcome::Success || self.by_prefix) {
            walk.object_to("within", "whatever this call returns is right")
                .advise("leave out either `within` or the rest");
        }
        walk.span("within", self.within);
    }
}

/// Stop a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct StopSandboxStep {
    /// The sandbox.
    pub sandbox: String,
}

impl StepRules for StopSandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox("sandbox", &self.sandbox);
        walk.names
            .called(&self.sandbox, &[CallEdge::StopSandboxCalled]);
    }
}

/// Remove a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct RemoveSandboxStep {
    /// The sandbox.
    pub sandbox: String,
}

impl StepRules for RemoveSandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox("sandbox", &self.sandbox);
    }
}

/// Run a command in a container, and wait for its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a command such as `{container: c, runs: {exit: {code: 1}}, timeout: 5s}`"
)]
pub struct ExecStep {
    /// The container.
    pub container: String,
    /// The command, as a workload. If it ends with another exit code than it declares, the case is
    /// inconclusive.
    pub runs: WorkloadSpec,
    /// The timeout of the call, in whole seconds.
    #[serde(with = "Span")]
    pub timeout: Duration,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
}

impl StepRules for ExecStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs(self.runs.needs());
        let limit = walk.container("container", &self.container);
        walk.command("runs", &self.runs, limit);
        if self.timeout.subsec_nanos() != 0 || self.timeout.is_zero() {
            let message = "a command's time is in whole seconds, one or more";
            walk.object_to("timeout", message)
                .advise("the CRI counts it in seconds");
        }
        walk.span("timeout", Some(self.timeout));
        walk.expectation(self.expect, None);
    }
}

/// Make a checkpoint of a container, which runs on: `CheckpointContainer`. The runtime writes it
/// into the run's folder of logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct CheckpointStep {
    /// The container.
    pub container: String,
}

impl StepRules for CheckpointStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::Checkpoint]);
        walk.container("container", &self.container);
        walk.checkpoints.insert(&self.container);
    }
}

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
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
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

    fn works_without_events(&self) -> bool {
        self.method == Method::Version
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
