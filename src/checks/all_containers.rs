//! `all-containers`: an event's snapshot contains the containers that lists before and after it do.

use std::collections::BTreeSet;

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{CaseHistory, ContainerId, Reply, Request, SandboxId, Seq, SubjectKind};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    AllContainersCheck(NameRef)
}

impl Word for AllContainersCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Container);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::NothingObserved,
            Kind::ListedContainerMissing,
            Kind::UnlistedContainer,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let SubjectKind::Container(spec) = &events.subject.kind else {
            return Holds;
        };
        let lists: Vec<_> = lists(events.index.history, &spec.sandbox).collect();
        let mut compared = 0;
        for arrival in events.all() {
            let event = arrival.event();
            let Some(cause) = events.cause(event.kind) else {
                continue;
            };
            let before = lists.iter().rfind(|list| list.ended < cause.began().seq);
            let after = lists.iter().find(|list| list.began > arrival.seq());
            let (Some(before), Some(after)) = (before, after) else {
                continue;
            };
            compared += 1;
            let shown: BTreeSet<_> = event.containers.iter().map(|status| &status.id).collect();
            let mut in_both = before.ids.intersection(&after.ids);
            let known: BTreeSet<_> = before.ids.union(&after.ids).copied().collect();
            let missing = in_both.find(|id| !shown.contains(*id));
            let unlisted = shown.iter().find(|id| !known.contains(*id));
            let kind = event.kind;
            let (is, id) = match (missing, unlisted) {
                (Some(id), _) => (Kind::ListedContainerMissing, *id),
                (None, Some(id)) => (Kind::UnlistedContainer, *id),
                (None, None) => continue,
            };
            let actual = [Fact::Event(kind), Fact::Id(id.to_string())];
            return Broken {
                mismatch: Mismatch::new(is, [], actual),
                evidence: vec![before.ended, arrival.seq(), after.began],
            };
        }
        if compared > 0 {
            return Holds;
        }
        Pending {
            missing: Mismatch::unobserved("an event between two lists of its sandbox's containers"),
            evidence: Vec::new(),
        }
    }
}

/// One list of all containers of a sandbox.
struct List<'a> {
    began: Seq,
    ended: Seq,
    ids: BTreeSet<&'a ContainerId>,
}

fn lists<'a>(history: &'a CaseHistory, of: &SandboxId) -> impl Iterator<Item = List<'a>> {
    history.calls().filter_map(move |call| {
        let Request::ListContainers { sandbox, .. } = call.request() else {
            return None;
        };
        let Some(Ok(Reply::Containers(listed))) = call.result() else {
            return None;
        };
        (sandbox.as_ref() == Some(of)).then_some(List {
            began: call.began().seq,
            ended: call.ended()?.seq,
            ids: listed.iter().map(|listing| &listing.id).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const ALL: &str = "all-containers: {of: c}";

    #[test]
    fn a_snapshot_contains_what_both_lists_contain() {
        let script = "pod run; d create; d CREATED; e create; e CREATED; pod relist d=created e=created; \
                  c create; e remove; c CREATED without=e; pod relist d=created c=created; end";
        check(ALL, script, expect!["holds"]);
    }

    #[test]
    fn a_container_is_missing() {
        let script = "pod run; d create; d CREATED; pod relist d=created; c create; \
                  c CREATED without=d; pod relist d=created c=created; end";
        check(
            ALL,
            script,
            expect![[r#"
        ORD-01 at #7 #10 #11: c (c.0.beef): expected the containers that the lists before and after show: CREATED lacks d.0.beef, which both show
    "#]],
        );
    }

    #[test]
    fn a_container_is_of_another_sandbox() {
        let script = "pod run; d create; d CREATED; pod relist d=created; c create; \
                  c CREATED; pod relist c=created; pod relist c=created; end";
        check(
            ALL,
            &script.replace("pod relist d=created", "pod relist"),
            expect![[r#"
        ORD-01 at #7 #10 #11: c (c.0.beef): expected the containers that the lists before and after show: CREATED has d.0.beef, which neither shows
    "#]],
        );
    }

    #[test]
    fn a_list_after_the_cause_began_is_not_before_the_event() {
        let script = "pod run; d create; d CREATED; c create begins; pod relist d=created; \
                  c create returns; c CREATED; pod relist d=created c=created; end";
        check(
            ALL,
            script,
            expect![[r#"
        waits for an event between two lists of its sandbox's containers of c
        ORD-01 at: c (c.0.beef): expected an event between two lists of its sandbox's containers: it has not come
    "#]],
        );
    }
}
