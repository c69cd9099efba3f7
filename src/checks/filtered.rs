//! `filtered`: a list with a filter contains what the filter matches, and nothing else.

use super::labels::carries;
use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{
    Call, ContainerFilter, ContainerId, ContainerState, EventArrival, EventKind, Reply, Request,
    SandboxFilter, SandboxState, Seq, SubjectKind,
};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    /// The check `filtered`.
    FilteredCheck(NameRef)
}

impl Word for FilteredCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::NothingObserved, Kind::WrongList]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let mut compared = 0;
        for call in events.index.history.calls() {
            let (Some(ended), Some(Ok(reply))) = (call.ended(), call.result()) else {
                continue;
            };
            let (began, ended) = (call.began().seq, ended.seq);
            let (Some(passes), Some(state)) = (events.passes(call), events.state_at(began, ended))
            else {
                continue;
            };
            compared += 1;
            let shown = events.shown_in(reply);
            let wanted: Vec<State> = state.filter(|state| passes(*state)).into_iter().collect();
            if shown == wanted {
                continue;
            }
            let evidence = events.all().map(EventArrival::seq);
            return Broken {
                mismatch: Mismatch::new(
                    Kind::WrongList,
                    [Fact::State(words(&wanted))],
                    [
                        Fact::State(words(&shown)),
                        Fact::Method(call.request().method().to_owned()),
                    ],
                ),
                evidence: evidence.chain([began, ended]).collect(),
            };
        }
        if compared > 0 {
            return Holds;
        }
        Pending {
            missing: Mismatch::unobserved("a list by a filter"),
            evidence: Vec::new(),
        }
    }
}

impl SubjectEvents<'_, '_> {
    /// Whether the filter of a list matches the subject, by its state; none if the list is not of
    /// its kind.
    fn passes(&self, call: &Call) -> Option<impl Fn(State) -> bool> {
        let id = &self.subject.id;
        let (admitted, wanted) = match (call.request(), &self.subject.kind) {
            (Request::FindSandboxes(filter), SubjectKind::Sandbox(spec)) => {
                let SandboxFilter {
                    id: wanted,
                    state,
                    labels,
                    streamed: _,
                } = filter;
                let own = wanted
                    .as_ref()
                    .is_none_or(|of| ContainerId::from(of) == *id);
                let admitted = own && carries(&spec.labels, labels);
                (admitted, state.map(State::Sandbox))
            }
            (Request::FindContainers(filter), SubjectKind::Container(spec)) => {
                let ContainerFilter {
                    id: wanted,
                    state,
                    sandbox,
                    labels,
                    streamed: _,
                } = filter;
                let own = wanted.as_ref().is_none_or(|of| of == id);
                let inside = sandbox.as_ref().is_none_or(|of| *of == spec.sandbox);
                let admitted = own && inside && carries(&spec.labels, labels);
                (admitted, state.map(State::Container))
            }
            _ => return None,
        };
        Some(move |state: State| admitted && wanted.is_none_or(|wanted| wanted == state))
    }

    /// The state that events have reported before a call; none if an event arrived during it, or
    /// if one may be on its way. The inner option is none if the subject is deleted.
    #[expect(clippy::option_option, reason = "absence is a known state")]
    fn state_at(&self, began: Seq, ended: Seq) -> Option<Option<State>> {
        let is_sandbox = matches!(self.subject.kind, SubjectKind::Sandbox(_));
        if self
            .all()
            .any(|seen| seen.seq() > began && seen.seq() < ended)
        {
            return None;
        }
        let last = self.all().filter(|seen| seen.seq() < began).last()?;
        if self.is_changed_between(last.seq(), ended) {
            return None;
        }
        Some(match (last.event().kind, is_sandbox) {
            (EventKind::Deleted, _) => None,
            (EventKind::Created | EventKind::Started, true) => {
                Some(State::Sandbox(SandboxState::Ready))
            }
            (EventKind::Stopped, true) => Some(State::Sandbox(SandboxState::NotReady)),
            (EventKind::Created, false) => Some(State::Container(ContainerState::Created)),
            (EventKind::Started, false) => Some(State::Container(ContainerState::Running)),
            (EventKind::Stopped, false) => Some(State::Container(ContainerState::Exited)),
            (EventKind::Unknown(_), _) => return None,
        })
    }

    /// Whether a call may change the subject's state.
    fn is_changed_between(&self, from: Seq, until: Seq) -> bool {
        let id = &self.subject.id;
        let changes = |request: &Request| match request {
            Request::StartContainer(on)
            | Request::StopContainer { container: on, .. }
            | Request::RemoveContainer(on) => on == id,
            Request::StopSandbox(on) | Request::RemoveSandbox(on) => match &self.subject.kind {
                SubjectKind::Container(spec) => spec.sandbox == *on,
                _ => ContainerId::from(on) == *id,
            },
            _ => false,
        };
        self.index.history.calls().any(|call| {
            let began = call.began().seq;
            from < began && began < until && changes(call.request())
        })
    }

    /// The subject's items in a list.
    fn shown_in(&self, reply: &Reply) -> Vec<State> {
        let id = &self.subject.id;
        match reply {
            Reply::Sandboxes(listed) => {
                let own = listed
                    .iter()
                    .filter(|one| ContainerId::from(&one.id) == *id);
                own.map(|one| State::Sandbox(one.state)).collect()
            }
            Reply::Containers(listed) => {
                let own = listed.iter().filter(|one| one.id == *id);
                own.map(|one| State::Container(one.state)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The state in which a list shows, or has to show, a sandbox or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sandbox(SandboxState),
    Container(ContainerState),
}

fn words(shown: &[State]) -> String {
    let word = |state: &State| match state {
        State::Sandbox(state) => state.to_string(),
        State::Container(state) => state.to_string(),
    };
    match shown {
        [] => "nothing of it".to_owned(),
        [state] => word(state),
        several => several.iter().map(word).collect::<Vec<_>>().join(" and "),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const FILTERED: &str = "filtered: {of: c}";

    const RUNS: &str = "pod run; pod STARTED; c create; c CREATED; c start; c STARTED";

    #[test]
    fn a_list_contains_what_the_filter_matches() {
        for found in [
            "c find c=running",
            "c find state=running c=running",
            "pod find c=running",
            "pod find state=running c=running d=running",
        ] {
            check(FILTERED, &format!("{RUNS}; {found}; end"), expect!["holds"]);
        }
    }

    #[test]
    fn a_list_lacks_what_the_filter_matches() {
        check(
            FILTERED,
            &format!("{RUNS}; c find; end"),
            expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in ListContainers: nothing of it
        "#]],
        );
        check(
            FILTERED,
            &format!("{RUNS}; pod find state=running d=running; end"),
            expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in ListContainers: nothing of it
        "#]],
        );
    }

    #[test]
    fn a_list_contains_nothing_else() {
        check(
            FILTERED,
            &format!("{RUNS}; pod find state=exited; end"),
            expect!["holds"],
        );
        check(
            FILTERED,
            &format!("{RUNS}; pod find state=exited c=running; end"),
            expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected nothing of it in ListContainers: RUNNING
        "#]],
        );
        check(
            FILTERED,
            &format!("{RUNS}; d create; d find d=created c=running; end"),
            expect![[r#"
            ORD-01 at #6 #9 #12 #13: c (c.0.beef): expected nothing of it in ListContainers: RUNNING
        "#]],
        );
    }

    #[test]
    fn a_deleted_container_is_not_listed() {
        let gone = format!("{RUNS}; c STOPPED; c DELETED");
        check(FILTERED, &format!("{gone}; c find; end"), expect!["holds"]);
        check(
            FILTERED,
            &format!("{gone}; pod find c=exited; end"),
            expect![[r#"
            ORD-01 at #6 #9 #10 #11 #12 #13: c (c.0.beef): expected nothing of it in ListContainers: EXITED
        "#]],
        );
    }

    #[test]
    fn an_item_is_listed_once_and_in_the_state_that_events_reported() {
        check(
            FILTERED,
            &format!("{RUNS}; pod find streamed c=running c=running; end"),
            expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in StreamContainers: RUNNING and RUNNING
        "#]],
        );
        check(
            FILTERED,
            &format!("{RUNS}; c find c=created; end"),
            expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in ListContainers: CREATED
        "#]],
        );
    }

    #[test]
    fn a_state_that_changes_during_the_list_is_not_judged() {
        check(
            FILTERED,
            &format!("{RUNS}; pod find c=running; c find begins; c STOPPED; c find returns; end"),
            expect!["holds"],
        );
    }

    #[test]
    fn a_state_whose_change_has_been_called_for_is_not_judged_until_the_event_is_there() {
        for change in ["c stop", "pod stop"] {
            check(
                FILTERED,
                &format!("{RUNS}; pod find c=running; {change}; c find c=exited; c STOPPED; end"),
                expect!["holds"],
            );
        }
        check(
            FILTERED,
            &format!(
                "{RUNS}; pod find c=running; d create; d stop; c find c=exited; c STOPPED; end"
            ),
            expect![[r#"
                ORD-01 at #6 #9 #18 #16 #17: c (c.0.beef): expected RUNNING in ListContainers: EXITED
            "#]],
        );
        check(
            FILTERED,
            &format!("{RUNS}; pod find c=running; c stop; c STOPPED; c find c=running; end"),
            expect![[r#"
                ORD-01 at #6 #9 #14 #15 #16: c (c.0.beef): expected EXITED in ListContainers: RUNNING
            "#]],
        );
    }

    #[test]
    fn there_must_be_such_a_list() {
        check(
            FILTERED,
            &format!("{RUNS}; pod relist c=running; end"),
            expect![[r#"
            waits for a list by a filter of c
            ORD-01 at: c (c.0.beef): expected a list by a filter: it has not come
        "#]],
        );
    }

    #[test]
    fn sandboxes_are_filtered_too() {
        let filtered = "filtered: {of: pod}";
        let runs = "pod run; pod STARTED";
        check(
            filtered,
            &format!("{runs}; pod find-sandbox state=ready pod=ready; end"),
            expect!["holds"],
        );
        check(
            filtered,
            &format!("{runs}; pod2 run; pod2 find-sandbox pod2=ready; end"),
            expect!["holds"],
        );
        check(
            filtered,
            &format!("{runs}; pod find-sandbox state=notready pod=ready; end"),
            expect![[r#"
            ORD-01 at #3 #4 #5: pod (pod.0.beef): expected nothing of it in ListPodSandbox: READY
        "#]],
        );
        check(
            filtered,
            &format!("{runs}; pod STOPPED; pod find-sandbox pod=ready; end"),
            expect![[r#"
            ORD-01 at #3 #4 #5 #6: pod (pod.0.beef): expected NOTREADY in ListPodSandbox: READY
        "#]],
        );
    }
}
