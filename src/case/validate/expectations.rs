//! Whether the expectations of a case are about something, and can fail.

use super::findings::Findings;
use super::names::{Kind, Names, Wanted};
use crate::case::file::CaseFile;
use crate::case::{
    CallEdge, Check, ExitCode, KeepsCheck, LatencyCheck, OrderCheck, ReplayCheck, StatusCheck,
    TimingCheck, limits,
};
use crate::history::EventKind;

pub(super) fn check(file: &CaseFile, names: &Names<'_>, found: &mut Findings) {
    if file.expect.is_empty() && file.expect_should.is_empty() {
        found
            .object("a case that expects nothing cannot fail")
            .advise("add `expect:` with what must be seen once the steps are over");
    }
    let mut expectations = Expectations { names, found };
    expectations.list("expect", &file.expect);
    expectations.list("expect-should", &file.expect_should);
}

struct Expectations<'a, 'f> {
    names: &'a Names<'a>,
    found: &'f mut Findings,
}

impl<'a> Expectations<'a, '_> {
    fn list(&mut self, key: &'static str, checks: &[Check]) {
        self.found.enter(key);
        for (index, check) in checks.iter().enumerate() {
            self.found.enter_element(index);
            self.found.enter(keyword(check));
            self.check(check);
            self.found.leave();
            self.found.leave();
        }
        self.found.leave();
    }

    fn check(&mut self, check: &Check) {
        match check {
            Check::Events(check) => {
                self.resolve(&check.of, Wanted::Either);
            }
            Check::Includes(check) => {
                self.resolve(&check.of, Wanted::Either);
                if check.in_order.is_empty() {
                    self.found
                        .object_to("in-order", "without an event this cannot fail");
                }
            }
            Check::Never(check) => {
                self.resolve(&check.of, Wanted::Either);
            }
            Check::Status(check) => self.status(check),
            Check::Timing(check) => self.timing(check),
            Check::Order(check) => self.order(check),
            Check::Announced(check) => self.announced(&check.of),
            Check::SameEvents(check)
            | Check::SameReplay(check)
            | Check::StaysOpen(check)
            | Check::NothingOlder(check) => {
                self.resolve(&check.of, Wanted::Subscription);
            }
            Check::Headers(check) => {
                self.resolve(&check.of, Wanted::Subscription);
            }
            Check::Ended(check) => {
                self.resolve(&check.of, Wanted::Subscription);
                if check.with.is_empty() {
                    self.found.object_to("with", "no end is one of none");
                }
            }
            Check::Learnt(check) => self.announced(&check.of),
            Check::Replay(check) => self.replay(check),
            Check::Unchanged(check) => self.unchanged(&check.of),
            Check::OwnStatus(name)
            | Check::Final(name)
            | Check::Explained(name)
            | Check::SameStatus(name)
            | Check::AllContainers(name)
            | Check::Times(name) => {
                self.resolve(&name.of, Wanted::Container);
            }
            Check::NoRepeats(name)
            | Check::SandboxStatus(name)
            | Check::Answered(name)
            | Check::AsAskedFor(name)
            | Check::Stamped(name)
            | Check::Filtered(name)
            | Check::Addresses(name) => {
                self.resolve(&name.of, Wanted::Either);
            }
            Check::Shown(check) => self.either(&check.of),
            Check::SandboxState(check) => self.either(&check.of),
            Check::Latency(check) => self.latency(check),
            Check::MessageSize(check) => self.either(&check.of),
            Check::Keeps(check) => self.keeps(check),
            Check::Aftermath(check) => {
                self.names
                    .in_expectation(("of", &check.of), Wanted::Either, self.found);
            }
        }
    }

    fn either(&mut self, of: &str) {
        self.resolve(of, Wanted::Either);
    }

    fn replay(&mut self, check: &ReplayCheck) {
        self.resolve(&check.of, Wanted::Container);
        if check.all.is_empty() {
            self.found
                .object_to("all", "without an event this cannot fail");
        }
    }

    fn unchanged(&mut self, sandbox: &str) {
        self.resolve(sandbox, Wanted::Sandbox);
        if !self.names.is_relisted(sandbox) {
            self.found
                .object("there is no relist to compare")
                .advise(format!("add a step `- relist: {{sandbox: {sandbox}}}`"));
        }
    }

    fn resolve(&mut self, of: &str, wanted: Wanted) -> Option<Kind<'a>> {
        if self.names.is_unsure(of) {
            self.found
                .object_to("of", format!("`{of}` may not have been made"))
                .advise("use `aftermath` for it");
        }
        self.names.in_expectation(("of", of), wanted, self.found)
    }

    fn status(&mut self, check: &StatusCheck) {
        let kind = self.resolve(&check.of, Wanted::Container);
        if check.exit_code.is_none() && check.reason.is_empty() && check.not_reason.is_empty() {
            self.found
                .object("this asks nothing of the status")
                .advise("add `exit-code`, `reason` or `not-reason`");
        }
        if check.event == EventKind::Deleted {
            self.found.object_to(
                "event",
                "a container has no status any more when it is deleted",
            );
        } else if check.event != EventKind::Stopped && check.exit_code.is_some() {
            self.found.object_to(
                "exit-code",
                "a container has no exit code before it has stopped",
            );
        }
        let declares_exit = |kind| {
            matches!(
                kind,
                Kind::Container {
                    declares_exit: true,
                    ..
                }
            )
        };
        if check.exit_code == Some(ExitCode::Declared)
            && kind.is_some_and(|kind| !declares_exit(kind))
        {
            self.found
                .object_to(
                    "exit-code",
                    "the container's workload declares no exit code",
                )
                .advise("expect a number: `exit-code: {is: 137}`");
        }
    }

    fn timing(&mut self, check: &TimingCheck) {
        let known = self.resolve(&check.of, Wanted::Either).is_some();
        match (check.at_least, check.at_most) {
            (None, None) => self
                .found
                .object("this bounds no time")
                .advise("add `at-least` or `at-most`"),
            (Some(least), Some(most)) if least > most => {
                self.found
                    .object_to("at-least", "this is longer than `at-most`");
            }
            _ => {}
        }
        for (key, span) in [("at-least", check.at_least), ("at-most", check.at_most)] {
            if span.is_some_and(|span| span > limits::SPAN) {
                let most = humantime::format_duration(limits::SPAN);
                self.found
                    .object_to(key, format!("nothing may take longer than {most}"));
            }
        }
        if known && !self.names.is_called(&check.of, check.after) {
            let (of, call) = (&check.of, call_of(check.after));
            self.found
                .object_to("after", format!("no step calls {call} on `{of}`"));
        }
    }

    fn order(&mut self, check: &OrderCheck) {
        for (key, event) in [("first", &check.first), ("then", &check.then)] {
            self.found.enter(key);
            self.resolve(&event.of, Wanted::Either);
            self.found.leave();
        }
        if check.first == check.then {
            self.found
                .object_to("then", "an event does not come after itself");
        }
    }

    fn announced(&mut self, of: &str) {
        let Some(Kind::Container { sandbox, .. }) = self.resolve(of, Wanted::Container) else {
            return;
        };
        if !self.names.is_relisted(sandbox) {
            self.found
                .object("there is no relist to compare the events with")
                .advise(format!("add a step `- relist: {{sandbox: {sandbox}}}`"));
        }
    }

    fn latency(&mut self, check: &LatencyCheck) {
        self.resolve(&check.of, Wanted::Any);
        if check.median > check.p99 {
            self.found.object_to("median", "this is longer than `p99`");
        }
    }

    fn keeps(&mut self, check: &KeepsCheck) {
        self.resolve(&check.of, Wanted::Either);
        let number = check.rule.strip_prefix("INV-");
        if !number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            let message = format!("`{}` is no id of a rule", check.rule);
            self.found.object_to("rule", message).advise(
                "the invariants, which judge every case, have ids of `INV-` and two digits",
            );
        }
    }
}

fn call_of(edge: CallEdge) -> &'static str {
    match edge {
        CallEdge::SandboxReturned => "RunPodSandbox",
        CallEdge::StartReturned => "StartContainer",
        CallEdge::StopCalled | CallEdge::StopReturned => "StopContainer",
        CallEdge::StopSandboxCalled => "StopPodSandbox",
    }
}

fn keyword(check: &Check) -> &'static str {
    match check {
        Check::Events(_) => "events",
        Check::Includes(_) => "includes",
        Check::Never(_) => "never",
        Check::NoRepeats(_) => "no-repeats",
        Check::Status(_) => "status",
        Check::SandboxStatus(_) => "sandbox-status",
        Check::OwnStatus(_) => "own-status",
        Check::Timing(_) => "timing",
        Check::Order(_) => "order",
        Check::Announced(_) => "announced",
        Check::SameEvents(_) => "same-events",
        Check::SameReplay(_) => "same-replay",
        Check::Filtered(_) => "filtered",
        Check::Addresses(_) => "addresses",
        Check::StaysOpen(_) => "stays-open",
        Check::NothingOlder(_) => "nothing-older",
        Check::Headers(_) => "headers",
        Check::Ended(_) => "ended",
        Check::Learnt(_) => "learnt",
        Check::Replay(_) => "replay",
        Check::Unchanged(_) => "unchanged",
        Check::Shown(_) => "shown",
        Check::Answered(_) => "answered",
        Check::Final(_) => "final",
        Check::Explained(_) => "explained",
        Check::SameStatus(_) => "same-status",
        Check::AllContainers(_) => "all-containers",
        Check::AsAskedFor(_) => "as-asked-for",
        Check::SandboxState(_) => "sandbox-state",
        Check::Stamped(_) => "stamped",
        Check::Times(_) => "times",
        Check::Latency(_) => "latency",
        Check::MessageSize(_) => "message-size",
        Check::Keeps(_) => "keeps",
        Check::Aftermath(_) => "aftermath",
    }
}
