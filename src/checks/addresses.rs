//! `addresses`: events carry the sandbox's addresses.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{EventKind, Reply, Request, SandboxId, SubjectKind};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    AddressesCheck(NameRef)
}

impl Word for AddressesCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::NothingObserved, Kind::NoAddress, Kind::WrongAddress]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let sandbox = match &events.subject.kind {
            SubjectKind::Container(spec) => spec.sandbox.clone(),
            SubjectKind::Sandbox(_) | SubjectKind::Stray => {
                SandboxId::from(events.subject.id.as_str())
            }
        };
        let calls = || events.index.history.calls();
        let ending = calls().find(|call| match call.request() {
            Request::StopSandbox(id) | Request::RemoveSandbox(id) => *id == sandbox,
            _ => false,
        });
        let ending = ending.map(|call| call.began().seq);
        let status = calls().find_map(|call| match (call.request(), call.result()?) {
            (Request::SandboxStatus(id), Ok(Reply::SandboxStatus(report))) if *id == sandbox => {
                let ended = call.ended()?.seq;
                let in_life = ending.is_none_or(|ending| ended < ending);
                in_life.then_some((ended, &report.status.ips))
            }
            _ => None,
        });
        let Some((answered, ips)) = status else {
            return Pending {
                missing: Mismatch::unobserved("a PodSandboxStatus of the running sandbox"),
                evidence: Vec::new(),
            };
        };
        if ips.is_empty() {
            return Broken {
                mismatch: Mismatch::new(Kind::NoAddress, [], []),
                evidence: vec![answered],
            };
        }
        let wrong = events.all().find(|seen| {
            let of_sandbox = events.subject.id.as_str() == sandbox.as_str();
            let too_early = of_sandbox && seen.event().kind == EventKind::Created;
            let in_life = ending.is_none_or(|ending| seen.seq() < ending);
            let shown = seen.event().sandbox.as_ref().map(|status| &status.ips);
            in_life && !too_early && shown != Some(ips)
        });
        let Some(wrong) = wrong else {
            return Holds;
        };
        let event = wrong.event();
        let shown = event.sandbox.as_ref().map(|status| status.ips.join(" "));
        let shown = shown.filter(|shown| !shown.is_empty());
        let shown = shown.unwrap_or_else(|| "none".to_owned());
        Broken {
            mismatch: Mismatch::new(
                Kind::WrongAddress,
                [Fact::Address(ips.join(" "))],
                [Fact::Address(shown), Fact::Event(event.kind)],
            ),
            evidence: vec![answered, wrong.seq()],
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const ADDRESSES: &str = "addresses: {of: c}";

    #[test]
    fn addresses_are_those_of_the_sandbox_until_it_stops() {
        let script = "pod run; pod CREATED; pod STARTED ip=x; pod inspect sandbox ip=x; c create; \
                  c CREATED ip=x; pod stop; c STOPPED; pod STOPPED; end";
        check(ADDRESSES, script, expect!["holds"]);
        check("addresses: {of: pod}", script, expect!["holds"]);
    }

    #[test]
    fn another_sandbox_has_addresses_of_its_own() {
        check(
            ADDRESSES,
            "pod run; pod2 run; pod2 inspect sandbox ip=y; pod inspect sandbox ip=x; \
         c create in=pod; c CREATED ip=x; end",
            expect!["holds"],
        );
    }

    #[test]
    fn an_event_before_the_stop_lacks_the_address() {
        check(
            ADDRESSES,
            "pod run; pod inspect sandbox ip=x; c create; c CREATED; pod stop; end",
            expect![[r#"
            ORD-01 at #6 #9: c (c.0.beef): expected the address x in CREATED: none
        "#]],
        );
    }

    #[test]
    fn an_event_lacks_the_address() {
        check(
            ADDRESSES,
            "pod run; pod inspect sandbox ip=x; c create; c CREATED; end",
            expect![[r#"
            ORD-01 at #6 #9: c (c.0.beef): expected the address x in CREATED: none
        "#]],
        );
        check(
            "addresses: {of: pod}",
            "pod run; pod STARTED ip=y; pod inspect sandbox ip=x; end",
            expect![[r#"
            ORD-01 at #7 #3: pod (pod.0.beef): expected the address x in STARTED: y
        "#]],
        );
    }

    #[test]
    fn there_must_be_an_address() {
        check(
            ADDRESSES,
            "pod run; pod inspect sandbox; c create; c CREATED; end",
            expect![[r#"
            ORD-01 at #6: c (c.0.beef): expected an address in PodSandboxStatus: none
        "#]],
        );
        check(
            ADDRESSES,
            "pod run; c create; c CREATED; end",
            expect![[r#"
            waits for a PodSandboxStatus of the running sandbox of c
            ORD-01 at: c (c.0.beef): expected a PodSandboxStatus of the running sandbox: it has not come
        "#]],
        );
    }
}
