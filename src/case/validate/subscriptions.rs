//! Whether the steps on a case's own subscriptions make sense.

use super::names::{Kind, Wanted};
use super::steps::{Round, Walk};
use crate::case::{Branch, ConnectionSpec, Need, PromptStep, Step, SubscribeStep, UnsubscribeStep};

impl<'a> Walk<'a, '_> {
    pub(super) fn subscription(&mut self, step: &'a Step, round: Round) {
        match step {
            Step::Subscribe(step) => self.subscribe(step),
            Step::Unsubscribe(step) => self.unsubscribe(step),
            Step::Resume(step) => {
                let name = ("subscription", step.subscription.as_str());
                self.resolve(name, Wanted::Subscription);
            }
            Step::AwaitEnd(step) => {
                self.resolve(("of", &step.of), Wanted::Subscription);
                self.span("within", Some(step.within));
            }
            Step::Quiet(step) => {
                self.alone("other cases would not be quiet meanwhile");
                self.span("for", Some(step.time));
                if round.parallel {
                    self.found
                        .object("other steps would not be quiet meanwhile")
                        .advise("let it stand between the others");
                }
                if !step.steps.is_empty() {
                    self.steps(&step.steps, round);
                }
            }
            _ => {}
        }
    }

    /// Where there are no events, a case can do nothing that is told by them.
    pub(super) fn without_events(&mut self, step: &Step) {
        if !self.file.needs.contains(&Need::NoEvents) {
            return;
        }
        match step {
            Step::Unsubscribe(_) | Step::AwaitEnd(_) | Step::Version(_) => {}
            Step::Subscribe(step) if step.effective.is_some() => {}
            Step::Subscribe(_) => self
                .found
                .object("no event can prove it live where there are none")
                .advise("add `effective: 250ms`"),
            _ => self
                .found
                .object("where there are no events, a case can only subscribe")
                .advise("take `no-events` from `needs`, or this step away"),
        }
    }

    fn subscribe(&mut self, step: &'a SubscribeStep) {
        self.alone("the subscription would see other cases, too");
        for (key, span) in [("deadline", step.deadline), ("effective", step.effective)] {
            self.span(key, span);
        }
        let own = step.connection == ConnectionSpec::Own;
        if step.stalls && !own {
            self.found
                .object_to(
                    "stalls",
                    "the calls on the same connection would be held up",
                )
                .advise("let it have a connection of its own");
        }
        let kind = Kind::Subscription { own };
        let (rounds, found) = (&self.rounds, &mut *self.found);
        self.names.bind(&step.binding, kind, rounds, found);
    }

    fn unsubscribe(&mut self, step: &'a UnsubscribeStep) {
        let Self {
            names,
            found,
            rounds,
            ..
        } = self;
        let name = ("subscription", step.subscription.as_str());
        let kind = names.in_step(name, Wanted::Subscription, rounds, found);
        if step.hang_up && matches!(kind, Some(Kind::Subscription { own: false })) {
            found
                .object_to("hang-up", "the connection is that of the calls")
                .advise("let the subscription have a connection of its own");
        }
    }

    pub(super) fn prompt(&mut self, step: &'a PromptStep, round: Round) {
        self.span("within", Some(step.within));
        self.steps(&step.steps, round);
    }

    pub(super) fn parallel(&mut self, branches: &'a [Branch], round: Round) {
        if branches.len() < 2 {
            self.found.object("a single list has nothing beside it");
        }
        for (index, branch) in branches.iter().enumerate() {
            self.found.enter_element(index);
            self.apart(&branch.steps, round);
            self.found.leave();
        }
    }

    /// What makes no sense beside other cases.
    pub(super) fn alone(&mut self, otherwise: &str) {
        if !self.file.exclusive {
            self.found
                .object(otherwise)
                .advise("add `exclusive: true` to the case");
        }
    }
}
