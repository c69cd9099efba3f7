//! Steps that read the state that the runtime reports or holds, and calls of any name.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::{Step, keys};
use crate::case::diagnose::did_you_mean;
use crate::case::validate::Walk;
use crate::case::{Need, Span, kind_words};
use crate::history::{EventKind, Holder, NoEventCall, NoEventCallTarget};

keys! {
    /// List a sandbox's containers and read the status of each.
    RelistStep: "a sandbox such as `{sandbox: pod}`" {
        /// The sandbox.
        sandbox: String,
    }

    /// List a pod's sandboxes and containers by each filter that the CRI has: by id, state, sandbox
    /// and labels, one at a time and some together.
    ListWithFiltersStep: "a sandbox such as `{sandbox: pod}`" {
        /// The sandbox.
        sandbox: String,
        /// Use the calls that stream lists (KEP-5825).
        streamed: bool,
    }

    /// Take steps, and ask the runtime the moment an event arrives. The step ends when both are
    /// done. If the event does not arrive within the event timeout after the steps, the case fails.
    OnEventStep:
        "an event and what to read then, such as `{of: c, event: stopped, read: [containers]}`" {
        /// The sandbox or container that the event is about. It must exist already.
        of: String,
        /// The event.
        event: EventKind,
        /// The calls to make then, one after the other.
        read: Vec<Query>,
        /// How much later to make the same calls once more.
        read_again_after: Option<Duration>,
        /// The steps.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<Step>,
    }

    /// Take steps, and make calls repeatedly until the steps are over, and once more then.
    PollDuringStep:
        "what to read during which steps, such as `{of: pod, read: [sandbox-status], steps: […]}`" {
        /// The sandbox or container that the calls are about. It must exist already.
        of: String,
        /// The calls to make, one after the other.
        read: Vec<Query>,
        /// The steps.
        steps: Vec<Step>,
    }

    /// Count resources of the runtime's process or of the case's pods, for a `no-growth` check.
    /// Where foreign pods run, the numbers of the runtime prove nothing: the case is inconclusive.
    MeasureStep: "a holder such as `{of: runtime}`" {
        /// The holder of the resources. The case is inconclusive if a resource that its pods use
        /// now is not seen: of `pods` if it has containers, and network namespaces if a sandbox has
        /// its own network.
        of: Holder,
        /// How long the runtime may take to release more resources than at the first such step;
        /// memory is not waited for. At once if absent.
        within: Option<Duration>,
        /// Of the `log`: the steps during which lines are counted. Nothing else is counted over
        /// steps.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<Step>,
    }

    /// Make a call that no other step makes. Calls on an unknown id, `PullImage` and optional calls
    /// may fail; the others must succeed.
    CallStep: "a call such as `{method: ContainerStats, of: c}`" {
        /// The method.
        method: Method,
        /// The sandbox or container that it is about, if it is about one.
        of: Option<String>,
        /// The call is made on an id, or an image, that does not exist.
        unknown_id: bool,
    }
}

impl RelistStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox("sandbox", &self.sandbox);
        walk.names.relisted(&self.sandbox);
    }
}

impl ListWithFiltersStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs(self.streamed.then_some(Need::StreamedLists));
        walk.sandbox("sandbox", &self.sandbox);
    }
}

/// A call about a sandbox or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "what to ask: `containers`, `container-status`, `sandboxes` or `sandbox-status`"
)]
pub enum Query {
    /// `ListContainers` of its sandbox.
    Containers,
    /// `ContainerStatus` of the container.
    ContainerStatus,
    /// `ListPodSandbox` of its pod.
    Sandboxes,
    /// `PodSandboxStatus` of its sandbox.
    SandboxStatus,
}

impl OnEventStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.span("read-again-after", self.read_again_after);
        walk.queries(&self.of, &self.read);
        walk.optional("steps", &self.steps);
    }
}

impl PollDuringStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.queries(&self.of, &self.read);
        walk.steps(&self.steps);
    }
}

impl MeasureStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([match self.of {
            Holder::Log => Need::RuntimeLog,
            Holder::Runtime | Holder::Pods => Need::RuntimeProcess,
        }]);
        walk.span("within", self.within);
        if self.of != Holder::Pods {
            walk.forbid_other_cases("other cases would use the runtime, too");
        }
        match (self.of, self.steps.is_empty()) {
            (Holder::Log, true) => walk
                .error("lines are counted that are logged during steps, and there are none")
                .help("add `steps`"),
            (Holder::Runtime | Holder::Pods, false) => walk
                .error_at("steps", "resources are counted at a moment")
                .help("take the steps before or after"),
            _ => {}
        }
        if self.of == Holder::Log && self.within.is_some() {
            walk.error_at("within", "no line of a log is released");
        }
        if walk.around.parallel {
            walk.error("other steps would change the numbers meanwhile")
                .help("let it stand between the others");
        }
        walk.names.measured(self.of, walk.around.times);
        walk.optional("steps", &self.steps);
    }
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

impl CallStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        let method = self.method.name();
        let subject = self.method.subject();
        if matches!(subject, Subject::Missing) != self.unknown_id {
            if self.unknown_id {
                let message = format!("{method} is called on what exists");
                walk.error_at("unknown-id", message)
                    .help("leave the key out");
            } else {
                let message = format!("{method} is called on what does not exist");
                walk.error_at("method", message)
                    .help("add `unknown-id: true`, or let another step make the call");
            }
        }
        match (subject, &self.of) {
            (Subject::Container, Some(of)) => drop(walk.container("of", of)),
            (Subject::Sandbox, Some(of)) => walk.sandbox("of", of),
            (Subject::Container | Subject::Sandbox, None) => {
                walk.error_at("method", format!("{method} is about something"))
                    .help("add `of:` with a name");
            }
            (Subject::Nothing | Subject::Missing, Some(_)) => {
                let message = format!("{method} is about nothing that the case has made");
                walk.error_at("of", message);
            }
            (Subject::Nothing | Subject::Missing, None) => {}
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

/// Rejects a name while it is visited, so that the error has the name's position.
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
