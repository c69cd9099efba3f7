//! Steps that go on beside a container's own life: commands in it, calls that change nothing, what
//! another client does, and what nobody does by the CRI.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, WorkloadSpec, duration};
use crate::history::Aside;

/// Run a command in a container, and wait for its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a command such as `{container: c, runs: {exit: {code: 1}}, timeout: 5s}`"
)]
pub struct ExecStep {
    /// In which container.
    pub container: String,
    /// What the command does. If it declares an exit code and the call tells another, the case is
    /// inconclusive.
    pub runs: WorkloadSpec,
    /// How long it may run; whole seconds.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub timeout: Duration,
    /// The call must fail, as it does when the time is over.
    #[serde(default)]
    pub fails: bool,
    /// Something else may end the command: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
}

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

/// A call to the image service that changes nothing of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "what to do to an image: `pull`, `look-up`, `list` or `remove-missing`"
)]
pub enum ImageStep {
    /// Pull the image that is there. Whatever this returns is right: it may have been imported.
    Pull,
    /// Ask for its status.
    LookUp,
    /// List all images.
    List,
    /// Remove one that is not there.
    RemoveMissing,
}

/// A call on something that has never been, by an id of its own. Whatever it returns is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a call: `stop`, `remove`, `stop-sandbox` or `remove-sandbox`"
)]
pub enum UnknownStep {
    /// Stop a container.
    Stop,
    /// Remove a container.
    Remove,
    /// Stop a sandbox.
    StopSandbox,
    /// Remove a sandbox.
    RemoveSandbox,
}

/// Run the user's command that makes a container outside the CRI, to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "nothing, as in `outside-cri: {}`")]
pub struct OutsideCriStep {}

/// A container by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct ContainerRef {
    /// Which container.
    pub container: String,
}

/// Stop the runtime and start it again, by the user's commands. The event stream is given up
/// before, and a new one is proven live after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "nothing, as in `restart-runtime: {}`"
)]
pub struct RestartRuntimeStep {}

/// Take steps as another client would, whose calls have a connection of their own. Lists and
/// statuses are asked for as ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "steps such as `{steps: […]}`")]
pub struct AnotherClientStep {
    /// What it does.
    pub steps: Vec<Step>,
}

/// Take steps while the host's wall clock is wrong. It is put right when they are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a step of the clock such as `{back: 10s, steps: […]}`"
)]
pub struct StepClockStep {
    /// How far it is set back.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub back: Option<Duration>,
    /// How far it is set forward.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub forward: Option<Duration>,
    /// What is done meanwhile.
    pub steps: Vec<Step>,
}

impl StepClockStep {
    /// By how many nanoseconds the clock is set: less than 0 for back.
    #[must_use]
    pub fn by_ns(&self) -> i64 {
        let ns = |span: Option<Duration>| {
            let ns = span.unwrap_or_default().as_nanos();
            i64::try_from(ns).unwrap_or(i64::MAX)
        };
        ns(self.forward).saturating_sub(ns(self.back))
    }
}
