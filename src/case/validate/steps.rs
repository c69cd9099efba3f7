//! The walk over the steps of a case, in the order in which they are taken: what surrounds each,
//! and what the names in it stand for. What makes one step wrong is in `case::steps`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::findings::Findings;
use super::names::{Kind, Names, Wanted};
use super::workload;
use crate::case::file::CaseFile;
use crate::case::steps::Step;
use crate::case::{CallOutcome, CreateStep, Need, Query, WorkloadSpec, limits};
use crate::checks::Situation;

/// Checks the steps; returns what the names in them stand for, and what else follows from them.
pub(super) fn check<'a>(file: &'a CaseFile, found: &mut Findings) -> (Names<'a>, Implied) {
    let mut walk = Walk {
        file,
        found,
        names: Names::default(),
        implied: Implied::default(),
        checkpoints: BTreeSet::new(),
        around: Surroundings::default(),
        rounds: Vec::new(),
        repeats: 0,
        written: 0,
        taken: 0,
    };
    // An OOM kill is provoked where the host counts it.
    let shows = file.provokes.map(|Situation::OomKill| Need::MemoryLimit);
    walk.needs(file.needs.iter().copied().chain(shows));
    walk.steps(&file.steps);
    walk.count();
    (walk.names, walk.implied)
}

/// What follows from a case, and needs no key of its own.
#[derive(Default)]
pub(in crate::case) struct Implied {
    /// What the case needs beyond the socket: what it says, what shows whether the situation arose
    /// that it provokes, and what its steps need, in their order.
    pub(in crate::case) needs: Vec<Need>,
    pub(in crate::case) stalls_a_subscriber: bool,
}

/// A walk over the steps of a case, and what has been found on it.
pub(in crate::case) struct Walk<'a, 'f> {
    file: &'a CaseFile,
    found: &'f mut Findings,
    pub(in crate::case) names: Names<'a>,
    pub(in crate::case) implied: Implied,
    /// The containers of which checkpoints are made.
    pub(in crate::case) checkpoints: BTreeSet<&'a str>,
    pub(in crate::case) around: Surroundings,
    /// The numbers of the steps around whose names end with them, from the outermost.
    rounds: Vec<usize>,
    repeats: usize,
    written: usize,
    taken: u64,
}

#[derive(Clone, Copy)]
pub(in crate::case) struct Surroundings {
    pub(in crate::case) times: u64,
    /// Whether `item` stands for something.
    pub(in crate::case) has_item: bool,
    /// Whether other rounds may be under way at the same time.
    pub(in crate::case) parallel: bool,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            times: 1,
            has_item: false,
            parallel: false,
        }
    }
}

impl<'a> Walk<'a, '_> {
    /// Checks the steps under the key `steps`.
    pub(in crate::case) fn steps(&mut self, steps: &'a [Step]) {
        self.list("steps", steps);
    }

    /// Checks the steps under a key.
    pub(in crate::case) fn list(&mut self, key: &'static str, steps: &'a [Step]) {
        self.found.enter(key);
        if steps.is_empty() {
            self.found.object("there is nothing to do");
        }
        for (index, step) in steps.iter().enumerate() {
            self.written += 1;
            self.found.enter_element(index);
            self.found.enter(step.word());
            self.step(step);
            self.found.leave();
            self.found.leave();
        }
        self.found.leave();
    }

    fn step(&mut self, step: &'a Step) {
        let rules = step.rules();
        if !rules.is_block() {
            self.taken = self.taken.saturating_add(self.around.times);
        }
        if !self.has_events() && !rules.works_without_events() {
            self.found
                .object("where there are no events, a case can only subscribe")
                .advise("take `no-events` from `needs`, or this step away");
        }
        rules.check(self);
    }

    /// Checks the steps under a key that may be left out.
    pub(in crate::case) fn optional(&mut self, key: &'static str, steps: &'a [Step]) {
        if !steps.is_empty() {
            self.list(key, steps);
        }
    }

    /// Checks the steps under a key, whose names stand for nothing outside them.
    pub(in crate::case) fn apart(&mut self, key: &'static str, steps: &'a [Step]) {
        self.repeats += 1;
        self.rounds.push(self.repeats);
        self.list(key, steps);
        self.rounds.pop();
    }

    /// Checks what has other surroundings than the step.
    pub(in crate::case) fn within(&mut self, inner: Surroundings, check: impl FnOnce(&mut Self)) {
        let around = std::mem::replace(&mut self.around, inner);
        check(self);
        self.around = around;
    }

    /// Declares what the step needs beyond the socket, apart from the steps inside it.
    pub(in crate::case) fn needs(&mut self, needs: impl IntoIterator<Item = Need>) {
        for need in needs {
            if !self.implied.needs.contains(&need) {
                self.implied.needs.push(need);
            }
        }
    }

    /// Whether the case is about a runtime with events.
    pub(in crate::case) fn has_events(&self) -> bool {
        !self.file.needs.contains(&Need::NoEvents)
    }

    /// Checks what stands in an element of the list at which the walk is.
    pub(in crate::case) fn in_element(&mut self, index: usize, check: impl FnOnce(&mut Self)) {
        self.found.enter_element(index);
        check(self);
        self.found.leave();
    }

    /// Objects to one `repeat` too many around this one.
    pub(in crate::case) fn nest(&mut self) {
        let most = limits::NESTING;
        if self.rounds.len() == most {
            self.found
                .object(format!("a `repeat` stands in at most {} others", most - 1));
        }
    }

    /// Objects to the step as a whole.
    pub(in crate::case) fn object(&mut self, message: impl Into<String>) -> &mut Findings {
        self.found.object(message)
    }

    /// Objects to the value of a key of the step.
    pub(in crate::case) fn object_to(
        &mut self,
        key: &'static str,
        message: impl Into<String>,
    ) -> &mut Findings {
        self.found.object_to(key, message)
    }

    /// Objects to the step unless the case runs alone.
    pub(in crate::case) fn alone(&mut self, otherwise: &str) {
        if !self.file.exclusive {
            self.found
                .object(otherwise)
                .advise("add `exclusive: true` to the case");
        }
    }

    /// Objects to a step that gives up the stream which all cases read, if others run meanwhile.
    pub(in crate::case) fn without_listeners(&mut self) {
        self.alone("other cases would miss the events of this moment");
        if self.around.parallel {
            self.found
                .object("other rounds would miss the events of this moment")
                .advise("leave `workers` out of the `repeat`");
        }
    }

    /// Objects to a span of time that is too long.
    pub(in crate::case) fn span(&mut self, key: &'static str, span: Option<Duration>) {
        workload::check_span(key, span, self.found);
    }

    /// Objects to what the keys `expect` and `abandon-after` say of how a call may end.
    pub(in crate::case) fn expectation(&mut self, expect: CallOutcome, abandon: Option<Duration>) {
        if abandon.is_some() && expect != CallOutcome::Success {
            self.found
                .object_to("expect", "nobody waits for the end of this call")
                .advise("leave out either `expect` or `abandon-after`");
        }
        if abandon.is_some_and(|time| time.is_zero()) {
            self.found
                .object_to("abandon-after", "no call comes to anything within no time");
        }
        self.span("abandon-after", abandon);
    }

    /// Objects to a limit of memory that is out of bounds.
    pub(in crate::case) fn memory_limit(&mut self, mib: u32) {
        workload::check_limit(mib, self.found);
    }

    /// Checks the workload of a container; `limit` is its limit of memory, if it has one.
    pub(in crate::case) fn workload(&mut self, workload: &WorkloadSpec, limit: Option<u32>) {
        self.found.enter("workload");
        workload::check(workload, limit, self.around.has_item, self.found);
        self.found.leave();
    }

    /// Checks the workload of a command, which is not the init of its container.
    pub(in crate::case) fn command(
        &mut self,
        key: &'static str,
        workload: &WorkloadSpec,
        limit: Option<u32>,
    ) {
        self.found.enter(key);
        workload::check_command(workload, limit, self.around.has_item, self.found);
        self.found.leave();
    }

    /// Checks what is asked about a sandbox or a container.
    pub(in crate::case) fn queries(&mut self, of: &str, queries: &[Query]) {
        if queries.contains(&Query::ContainerStatus) {
            self.container("of", of);
        } else {
            self.sandbox_or_container("of", of);
        }
        if queries.is_empty() {
            self.found.object_to("read", "this asks nothing");
        }
    }

    fn count(&mut self) {
        self.found.enter("steps");
        if self.written > limits::STEPS_WRITTEN {
            let (written, most) = (self.written, limits::STEPS_WRITTEN);
            self.found.object(format!(
                "{written} steps are too many for one case; {most} may be written"
            ));
        }
        if self.taken > limits::STEPS_TAKEN {
            let (taken, most) = (self.taken, limits::STEPS_TAKEN);
            self.found.object(format!(
                "with all rounds the case would take {taken} steps, where {most} are allowed"
            ));
        }
        self.found.leave();
    }
}

impl<'a> Walk<'a, '_> {
    fn resolve(&mut self, key: &'static str, name: &str, wanted: Wanted) -> Option<Kind<'a>> {
        let Self {
            names,
            found,
            rounds,
            ..
        } = self;
        names.in_step((key, name), wanted, rounds, found)
    }

    fn bind(&mut self, name: &'a str, kind: Kind<'a>) {
        let Self {
            names,
            found,
            rounds,
            ..
        } = self;
        names.bind(name, kind, rounds, found);
    }

    /// The name under a key must stand for a sandbox.
    pub(in crate::case) fn sandbox(&mut self, key: &'static str, name: &str) {
        self.resolve(key, name, Wanted::Sandbox);
    }

    /// The name under a key must stand for a container; returns its limit of memory, if it has one.
    pub(in crate::case) fn container(&mut self, key: &'static str, name: &str) -> Option<u32> {
        match self.resolve(key, name, Wanted::Container) {
            Some(Kind::Container { memory_mib, .. }) => memory_mib,
            _ => None,
        }
    }

    /// The name under a key must stand for a sandbox or a container.
    pub(in crate::case) fn sandbox_or_container(&mut self, key: &'static str, name: &str) {
        self.resolve(key, name, Wanted::Either);
    }

    /// The name under a key must stand for a subscription; returns whether that has a connection of
    /// its own.
    pub(in crate::case) fn subscription(&mut self, key: &'static str, name: &str) -> Option<bool> {
        match self.resolve(key, name, Wanted::Subscription) {
            Some(Kind::Subscription { own }) => Some(own),
            _ => None,
        }
    }

    /// Lets a name stand for a sandbox, whose pod may have a limit of memory.
    pub(in crate::case) fn bind_sandbox(&mut self, name: &'a str, memory_mib: Option<u32>) {
        self.bind(name, Kind::Sandbox { memory_mib });
    }

    /// Lets a name stand for a container; returns the lowest limit of memory, its own or its pod's.
    pub(in crate::case) fn bind_container(&mut self, step: &'a CreateStep) -> Option<u32> {
        let of_pod = match self.resolve("in", &step.sandbox, Wanted::Sandbox) {
            Some(Kind::Sandbox { memory_mib }) => memory_mib,
            _ => None,
        };
        let limit = of_pod.into_iter().chain(step.memory_mib).min();
        let kind = Kind::Container {
            sandbox: &step.sandbox,
            memory_mib: limit,
            declares_exit: workload::declares_exit(&step.workload),
        };
        self.bind(&step.binding, kind);
        limit
    }

    /// Lets a name stand for a subscription.
    pub(in crate::case) fn bind_subscription(&mut self, name: &'a str, own: bool) {
        self.bind(name, Kind::Subscription { own });
    }

    /// The same of the call that makes what the name stands for, which may be nothing if it fails.
    pub(in crate::case) fn is_made(
        &mut self,
        name: &'a str,
        expect: CallOutcome,
        abandon: Option<Duration>,
    ) {
        self.expectation(expect, abandon);
        if expect != CallOutcome::Success || abandon.is_some() {
            self.names.may_be_unbound(name);
        }
    }
}
