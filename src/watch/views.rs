//! Makes the pods of two caches comparable.
//!
//! Some differences are by design of the Evented PLEG and not the runtime's fault: its pod status
//! contains only the newest sandbox, and it keeps containers whose deletion an event reported.

use std::collections::{BTreeMap, BTreeSet};

use super::notice::{View, Viewed};
use crate::history::SandboxState;
use crate::pleg::{Moment, PodStatus, State};

/// The views of a pod in both caches, reduced to what must agree.
pub(super) fn views(
    generic: Option<&PodStatus>,
    evented: Option<&PodStatus>,
    deleted: &BTreeSet<String>,
) -> (View, View) {
    let newest = evented.into_iter().flat_map(|status| &status.sandboxes);
    let since = newest.map(|sandbox| sandbox.created_at).max();
    let view = |status: &PodStatus| view(status, since.unwrap_or(Moment::NEVER));
    let generic = generic.map(view);
    let mut evented = evented.map(view);
    if let Some(evented) = &mut evented {
        let listed = |id: &String| generic.as_ref().is_some_and(|view| view.contains_key(id));
        evented.retain(|id, _| listed(id) || !deleted.contains(id));
    }
    (generic, evented)
}

fn view(status: &PodStatus, since: Moment) -> BTreeMap<String, Viewed> {
    let sandboxes = status
        .sandboxes
        .iter()
        .filter(|sandbox| sandbox.created_at >= since);
    let sandboxes = sandboxes.map(|sandbox| {
        let viewed = Viewed {
            container: None,
            state: SandboxState::to_string(&sandbox.state),
            exit_code: None,
        };
        (sandbox.id.to_string(), viewed)
    });
    let containers = status
        .containers
        .iter()
        .filter(|container| container.created_at >= since);
    let containers = containers.map(|container| {
        let exited = container.state == State::Exited;
        let viewed = Viewed {
            container: Some(container.name.to_string()),
            state: container.state.label().to_uppercase(),
            exit_code: exited.then_some(container.exit_code),
        };
        (container.id.to_string(), viewed)
    });
    sandboxes.chain(containers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Text;
    use crate::pleg::{PodContainer, PodSandbox, SharedId, SharedUid};

    fn sandbox(id: &str, created_at: i64) -> PodSandbox {
        PodSandbox {
            id: SharedId::from(id),
            state: SandboxState::Ready,
            created_at: Moment::from_ns(created_at),
            attempt: 0,
        }
    }

    fn container(id: &str, created_at: i64, state: State) -> PodContainer {
        PodContainer {
            id: SharedId::from(id),
            name: id.into(),
            state,
            created_at: Moment::from_ns(created_at),
            started_at: Moment::NEVER,
            finished_at: Moment::NEVER,
            exit_code: 0,
            image: Text::default(),
            image_id: Text::default(),
            restart_count: 0,
            hash: 0,
            reason: Text::default(),
            message: String::new(),
        }
    }

    fn status(sandboxes: Vec<PodSandbox>, containers: Vec<PodContainer>) -> PodStatus {
        PodStatus {
            uid: SharedUid::from("u"),
            name: Text::default(),
            namespace: Text::default(),
            ips: Vec::new(),
            sandboxes,
            containers,
            active_containers: Vec::new(),
            read_at: Moment::NEVER,
        }
    }

    #[track_caller]
    fn check(generic: &PodStatus, evented: &PodStatus, deleted: &[&str], agree: bool) {
        let deleted = deleted.iter().map(|&id| id.to_owned()).collect();
        let (generic, evented) = views(Some(generic), Some(evented), &deleted);
        assert_eq!(generic == evented, agree, "{generic:?} {evented:?}");
    }

    #[test]
    fn states_are_compared() {
        let with = |state| status(vec![sandbox("s", 1)], vec![container("c", 2, state)]);
        check(&with(State::Running), &with(State::Running), &[], true);
        check(&with(State::Exited), &with(State::Running), &[], false);
    }

    #[test]
    fn sandboxes_before_the_newest_do_not_count() {
        let old = container("o", 2, State::Exited);
        let all = status(vec![sandbox("t", 3), sandbox("s", 1)], vec![old]);
        check(&all, &status(vec![sandbox("t", 3)], vec![]), &[], true);
    }

    #[test]
    fn a_deleted_container_may_stay_in_the_cache_but_no_other() {
        let bare = status(vec![sandbox("s", 1)], vec![]);
        let kept = status(
            vec![sandbox("s", 1)],
            vec![container("c", 2, State::Exited)],
        );
        check(&bare, &kept, &["c"], true);
        check(&bare, &kept, &[], false);
        check(&kept, &bare, &["c"], false);
    }
}
