//! `filtered`: a list with a filter contains exactly the matching sandboxes or containers.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{
    Call, ContainerFilter, ContainerId, ContainerState, Entry, EventArrival, EventKind, Reply,
    Request, SandboxFilter, SandboxState, Seq, SubjectKind,
};
use crate::limits::EVENT_WAIT;
use crate::oracle::carries;
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
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
        let mut pending = None;
        for call in events.index.history.calls() {
            let (Some(ended), Some(Ok(reply))) = (call.ended(), call.result()) else {
                continue;
            };
            let began = call.began().seq;
            let (Some(passes), Some(state)) =
                (events.passes(call), events.state_at(began, ended.seq))
            else {
                continue;
            };
            compared += 1;
            let shown = events.shown_in(reply);
            let listed = |state: Option<State>| state.filter(|state| passes(*state));
            let wanted = Vec::from_iter(listed(state));
            if shown == wanted {
                continue;
            }
            // A list may be ahead of an event that no call has caused.
            let next = events.all().find(|seen| seen.seq() > ended.seq);
            if next.is_some_and(|next| {
                events.is_in_time(ended, next)
                    && events
                        .state_after(next)
                        .is_some_and(|state| shown == Vec::from_iter(listed(state)))
            }) {
                continue;
            }
            let mismatch = Mismatch::new(
                Kind::WrongList,
                [Fact::State(words(&wanted))],
                [
                    Fact::State(words(&shown)),
                    Fact::Method(call.request().method().to_owned()),
                ],
            );
            let evidence = events.all().map(EventArrival::seq);
            let evidence = evidence.chain([began, ended.seq]).collect();
            if next.is_some() {
                return Broken { mismatch, evidence };
            }
            pending.get_or_insert((mismatch, evidence));
        }
        if let Some((missing, evidence)) = pending {
            return Pending { missing, evidence };
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
    /// Whether the filter of a list matches the subject, by its state; `None` if the list is of
    /// another kind.
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

    /// The state that events have reported before a call; `None` if an event arrived during it, or
    /// if one may be in transit. The inner option is `None` if the subject is deleted.
    #[expect(clippy::option_option, reason = "absence is a known state")]
    fn state_at(&self, began: Seq, ended: Seq) -> Option<Option<State>> {
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
        self.state_after(last)
    }

    /// The state that an event reports; `None` if its kind is unknown. The inner option is `None`
    /// if the subject is deleted.
    #[expect(clippy::option_option, reason = "absence is a known state")]
    fn state_after(&self, arrival: &EventArrival) -> Option<Option<State>> {
        let is_sandbox = matches!(self.subject.kind, SubjectKind::Sandbox(_));
        Some(match (arrival.event().kind, is_sandbox) {
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

    /// Whether an event arrives within its maximum latency after the end of a list.
    fn is_in_time(&self, listed: &Entry, arrival: &EventArrival) -> bool {
        let history = self.index.history;
        history.not_held_up(listed.at, arrival.at()) <= history.scaled(EVENT_WAIT)
    }

    /// Whether a call may change the subject's state. A container ends with the one whose PID
    /// namespace it has joined.
    fn is_changed_between(&self, from: Seq, until: Seq) -> bool {
        let id = &self.subject.id;
        let target = match &self.subject.kind {
            SubjectKind::Container(spec) => spec.pid_target.as_ref(),
            SubjectKind::Sandbox(_) | SubjectKind::Stray => None,
        };
        let changes = |request: &Request| match request {
            Request::StartContainer(on) => on == id,
            Request::StopContainer { container: on, .. } | Request::RemoveContainer(on) => {
                on == id || Some(on) == target
            }
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
                waits for RUNNING in ListContainers of c
                ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in ListContainers: nothing of it
            "#]],
        );
        check(
            FILTERED,
            &format!("{RUNS}; pod find state=running d=running; end"),
            expect![[r#"
                waits for RUNNING in ListContainers of c
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
                waits for nothing of it in ListContainers of c
                ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected nothing of it in ListContainers: RUNNING
            "#]],
        );
        check(
            FILTERED,
            &format!("{RUNS}; d create; d find d=created c=running; end"),
            expect![[r#"
                waits for nothing of it in ListContainers of c
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
                waits for nothing of it in ListContainers of c
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
                waits for RUNNING in StreamContainers of c
                ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in StreamContainers: RUNNING and RUNNING
            "#]],
        );
        check(
            FILTERED,
            &format!("{RUNS}; c find c=created; end"),
            expect![[r#"
                waits for RUNNING in ListContainers of c
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
                "{RUNS}; pod find c=running; d create; d stop; c find c=exited; pass 11s; \
                 c STOPPED; end"
            ),
            expect![[r#"
                ORD-01 at #6 #9 #18 #16 #17: c (c.0.beef): expected RUNNING in ListContainers: EXITED
            "#]],
        );
        check(
            FILTERED,
            &format!("{RUNS}; pod find c=running; c stop; c STOPPED; c find c=running; end"),
            expect![[r#"
                waits for EXITED in ListContainers of c
                ORD-01 at #6 #9 #14 #15 #16: c (c.0.beef): expected EXITED in ListContainers: RUNNING
            "#]],
        );
    }

    #[test]
    fn a_list_may_be_ahead_of_an_event_that_no_call_caused() {
        let exits = format!("{RUNS}; pod find c=running; c find c=exited");
        check(
            FILTERED,
            &format!("{exits}; c STOPPED; end"),
            expect!["holds"],
        );
        check(
            FILTERED,
            &format!("{exits}; pass 9s; c STOPPED; end"),
            expect!["holds"],
        );
        check(
            FILTERED,
            &format!("{exits}; pass 11s; c STOPPED; end"),
            expect![[r#"
                ORD-01 at #6 #9 #14 #12 #13: c (c.0.beef): expected RUNNING in ListContainers: EXITED
            "#]],
        );
        check(
            FILTERED,
            &format!("{exits}; c DELETED; end"),
            expect![[r#"
            ORD-01 at #6 #9 #14 #12 #13: c (c.0.beef): expected RUNNING in ListContainers: EXITED
        "#]],
        );
        check(
            FILTERED,
            &format!("{exits}; end; c STOPPED"),
            expect![[r#"
            waits for RUNNING in ListContainers of c
            ORD-01 at #6 #9 #12 #13: c (c.0.beef): expected RUNNING in ListContainers: EXITED
        "#]],
        );
        // Not ahead, but behind.
        check(
            FILTERED,
            &format!("{RUNS}; pod find c=created; c STOPPED; end"),
            expect![[r#"
                ORD-01 at #6 #9 #12 #10 #11: c (c.0.beef): expected RUNNING in ListContainers: CREATED
            "#]],
        );
    }

    #[test]
    fn a_container_ends_with_the_one_whose_pid_namespace_it_has_joined() {
        let listed = |joins: &str, ended: &str| {
            format!(
                "pod run; t create; t start; c create{joins}; c CREATED; c start; c STARTED; \
                 pod find c=running t=running; {ended}; c find c=exited; end"
            )
        };
        check(FILTERED, &listed(" joins=t", "t stop"), expect!["holds"]);
        check(FILTERED, &listed(" joins=t", "t remove"), expect!["holds"]);
        check(
            FILTERED,
            &listed("", "t stop"),
            expect![[r#"
            waits for RUNNING in ListContainers of c
            ORD-01 at #9 #12 #17 #18: c (c.0.beef): expected RUNNING in ListContainers: EXITED
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
                waits for nothing of it in ListPodSandbox of pod
                ORD-01 at #3 #4 #5: pod (pod.0.beef): expected nothing of it in ListPodSandbox: READY
            "#]],
        );
        check(
            filtered,
            &format!("{runs}; pod STOPPED; pod find-sandbox pod=ready; end"),
            expect![[r#"
                waits for NOTREADY in ListPodSandbox of pod
                ORD-01 at #3 #4 #5 #6: pod (pod.0.beef): expected NOTREADY in ListPodSandbox: READY
            "#]],
        );
    }
}
