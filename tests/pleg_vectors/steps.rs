//! The inputs of an engine in the vectors.

use cri_event_conformance::testing::history::SandboxState;
use cri_event_conformance::testing::pleg::State;
use serde::Deserialize;

use crate::cri::{CriEvent, Snapshot};

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Step {
    Relist(Relist),
    RelistPod(Relist),
    Reinspect { uid: String },
    UpdateTime { now: i64 },
    Event { event: Box<CriEvent> },
    Drain,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Relist {
    pub(crate) now: i64,
    pub(crate) list_ts: i64,
    #[serde(default)]
    pub(crate) uid: String,
    #[serde(default)]
    pub(crate) list_error: bool,
    #[serde(default)]
    pub(crate) inspect_errors: Vec<String>,
    #[serde(default)]
    pub(crate) pods: Vec<Pod>,
    pub(crate) snapshot: Option<Snapshot>,
}

/// A pod of the generic family, with the result of its status call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) sandboxes: Option<Vec<Item>>,
    pub(crate) containers: Option<Vec<Item>>,
    pub(crate) status_rev: i32,
    pub(crate) status_ts: i64,
    pub(crate) status_ips: Vec<String>,
    pub(crate) status_sandbox_ready: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    pub(crate) id: String,
    state: String,
}

impl Item {
    pub(crate) fn state(&self) -> State {
        State::ALL
            .into_iter()
            .find(|state| state.label() == self.state)
            .unwrap_or_else(|| panic!("no state {}", self.state))
    }
}

impl Pod {
    pub(crate) fn sandbox_state(&self) -> SandboxState {
        if self.status_sandbox_ready {
            SandboxState::Ready
        } else {
            SandboxState::NotReady
        }
    }
}
