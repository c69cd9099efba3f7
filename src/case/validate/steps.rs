//! The walk over the steps of a case, in the order in which they are taken: the context of each,
//! and the objects to which its names are bound. The rule of each step is in `case::steps`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Findings, is_kebab};
use crate::case::diagnose::did_you_mean;
use crate::case::file::CaseFile;
use crate::case::{CallOutcome, CreateStep, Delay, Need, Number, Query, Step, limits};
use crate::checks::{CallEdge, Kind, Situation, Wanted};
use crate::history::Holder;

/// Checks the steps. Returns their names, and the facts that follow from them.
pub(super) fn check_steps<'a>(file: &'a CaseFile, found: &mut Findings) -> (Names<'a>, Implied) {
    let mut walk = Walk {
        file,
        found,
        names: Names::default(),
        implied: Implied::default(),
        checkpoints: BTreeSet::new(),
        around: Context::default(),
        scopes: Vec::new(),
        opened: 0,
        written: 0,
        taken: 0,
    };
    // An OOM kill is provoked where the host counts it.
    let counted = file.provokes == Some(Situation::OomKill);
    let shows = counted.then_some(Need::MemoryLimit);
    walk.needs(file.needs.iter().copied().chain(shows));
    walk.steps(&file.steps);
    walk.inside("steps", Walk::limit_steps);
    if matches!(file.provokes, Some(Situation::Behind(_))) && !walk.implied.stalls_a_subscriber {
        walk.error_at("provokes", "no subscriber of the case stops reading")
            .help("add `stalls: true` to a `subscribe`");
    }
    (walk.names, walk.implied)
}

/// The facts that follow from the steps of a case, and have no key of their own.
#[derive(Default)]
pub(in crate::case) struct Implied {
    /// The needs beyond the socket: those of the case, those that show whether its situation arose,
    /// and those of its steps, in their order.
    pub(in crate::case) needs: Vec<Need>,
    pub(in crate::case) stalls_a_subscriber: bool,
}

/// A walk over the steps of a case, and its findings so far.
pub(in crate::case) struct Walk<'a, 'f> {
    file: &'a CaseFile,
    found: &'f mut Findings,
    pub(in crate::case) names: Names<'a>,
    pub(in crate::case) implied: Implied,
    /// The containers of which checkpoints are made.
    pub(in crate::case) checkpoints: BTreeSet<&'a str>,
    pub(in crate::case) around: Context,
    /// The numbers of the scopes around the step, from the outermost.
    scopes: Vec<usize>,
    /// The number of scopes that were opened so far.
    opened: usize,
    written: usize,
    taken: u64,
}

/// The context of a step.
#[derive(Clone, Copy)]
pub(in crate::case) struct Context {
    /// How often the step is taken.
    pub(in crate::case) times: u64,
    /// Whether `item` is defined.
    pub(in crate::case) has_item: bool,
    /// Whether other rounds may run at the same time.
    pub(in crate::case) parallel: bool,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            times: 1,
            has_item: false,
            parallel: false,
        }
    }
}

/// Lists of steps.
impl<'a> Walk<'a, '_> {
    /// Checks the steps under the key `steps`.
    pub(in crate::case) fn steps(&mut self, steps: &'a [Step]) {
        self.list("steps", steps);
    }

    /// Checks the steps under a key.
    fn list(&mut self, key: &'static str, steps: &'a [Step]) {
        self.inside(key, |walk| {
            if steps.is_empty() {
                walk.error("there is nothing to do");
            }
            for (index, step) in steps.iter().enumerate() {
                walk.written += 1;
                walk.in_element(index, |walk| walk.inside(step.word(), |it| it.step(step)));
            }
        });
    }

    fn step(&mut self, step: &'a Step) {
        if !step.is_block() {
            self.taken = self.taken.saturating_add(self.around.times);
        }
        if !self.has_events() && !step.works_without_events() {
            self.error("where there are no events, a case can only subscribe")
                .help("take `no-events` from `needs`, or this step away");
        }
        step.check(self);
    }

    /// Checks the steps under an optional key.
    pub(in crate::case) fn optional(&mut self, key: &'static str, steps: &'a [Step]) {
        if !steps.is_empty() {
            self.list(key, steps);
        }
    }

    /// Checks the steps under a key, whose names are local to them.
    pub(in crate::case) fn nested_scope(&mut self, key: &'static str, steps: &'a [Step]) {
        self.opened += 1;
        self.scopes.push(self.opened);
        self.list(key, steps);
        self.scopes.pop();
    }

    /// Runs a check in another context than that of the step.
    pub(in crate::case) fn within(&mut self, inner: Context, check: impl FnOnce(&mut Self)) {
        let around = std::mem::replace(&mut self.around, inner);
        check(self);
        self.around = around;
    }

    /// Runs a check of the value of a key.
    pub(in crate::case) fn inside(&mut self, key: &'static str, check: impl FnOnce(&mut Self)) {
        self.found.enter(key);
        check(self);
        self.found.leave();
    }

    /// Runs a check of an element of the list that the walk has entered.
    pub(in crate::case) fn in_element(&mut self, index: usize, check: impl FnOnce(&mut Self)) {
        self.found.enter_element(index);
        check(self);
        self.found.leave();
    }

    fn limit_steps(&mut self) {
        if self.written > limits::STEPS_WRITTEN {
            let (written, most) = (self.written, limits::STEPS_WRITTEN);
            self.error(format!(
                "{written} steps are too many for one case; {most} may be written"
            ));
        }
        if self.taken > limits::STEPS_TAKEN {
            let (taken, most) = (self.taken, limits::STEPS_TAKEN);
            self.error(format!(
                "with all rounds the case would take {taken} steps, where {most} are allowed"
            ));
        }
    }
}

/// Problems, and the rules that several steps share.
impl Walk<'_, '_> {
    /// Declares the needs of the step beyond the socket, without those of the steps inside it.
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

    /// Reports a problem of the step as a whole.
    pub(in crate::case) fn error(&mut self, message: impl Into<String>) -> &mut Findings {
        self.found.error(message)
    }

    /// Reports a problem of the value of a key.
    pub(in crate::case) fn error_at(
        &mut self,
        key: &'static str,
        message: impl Into<String>,
    ) -> &mut Findings {
        self.found.error_at(key, message)
    }

    /// Rejects one `repeat` too many around this one.
    pub(in crate::case) fn limit_nesting(&mut self) {
        let most = limits::NESTING;
        if self.scopes.len() == most {
            self.error(format!("a `repeat` stands in at most {} others", most - 1));
        }
    }

    /// Rejects the step unless the case runs alone.
    pub(in crate::case) fn forbid_other_cases(&mut self, otherwise: &str) {
        if !self.file.exclusive {
            self.error(otherwise)
                .help("add `exclusive: true` to the case");
        }
    }

    /// Rejects a step that closes the stream of the run, if other steps or cases run meanwhile.
    pub(in crate::case) fn forbid_listeners(&mut self) {
        self.forbid_other_cases("other cases would miss the events of this moment");
        if self.around.parallel {
            self.error("other rounds would miss the events of this moment")
                .help("leave `workers` out of the `repeat`");
        }
    }

    /// Rejects a duration that is too long.
    pub(in crate::case) fn span(&mut self, key: &'static str, span: Option<Duration>) {
        if span.is_some_and(|span| span > limits::SPAN) {
            let most = humantime::format_duration(limits::SPAN);
            self.error_at(key, format!("nothing may take longer than {most}"));
        }
    }

    /// Checks the keys `expect` and `abandon-after` of a call.
    pub(in crate::case) fn expectation(&mut self, expect: CallOutcome, abandon: Option<Duration>) {
        if abandon.is_some() && expect != CallOutcome::Success {
            self.error_at("expect", "`expect` has no effect with `abandon-after`")
                .help("leave out either `expect` or `abandon-after`");
        }
        if abandon.is_some_and(|time| time.is_zero()) {
            self.error_at("abandon-after", "`abandon-after` must be greater than zero");
        }
        self.span("abandon-after", abandon);
    }

    /// Rejects a memory limit that is out of bounds.
    pub(in crate::case) fn memory_limit(&mut self, mib: u32) {
        let most = limits::MEMORY_MIB;
        if !(1..=most).contains(&mib) {
            let message = format!("a memory limit is from 1 to {most} MiB");
            self.error_at("memory-mib", message);
        }
    }

    /// Rejects `item` as the value of a key outside of a `repeat` with `items`.
    fn item(&mut self, key: &'static str) {
        if !self.around.has_item {
            self.error_at(key, "`item` is only defined inside a `repeat` with `items`")
                .help("write a value, or put the step into such a `repeat`");
        }
    }

    pub(in crate::case) fn number(&mut self, key: &'static str, number: Number) {
        if number == Number::Item {
            self.item(key);
        }
    }

    pub(in crate::case) fn delay(&mut self, key: &'static str, delay: Delay) {
        match delay {
            Delay::Given(span) => self.span(key, Some(span)),
            Delay::Item => self.item(key),
        }
    }

    /// Checks the queries about a sandbox or a container.
    pub(in crate::case) fn queries(&mut self, of: &str, queries: &[Query]) {
        if queries.contains(&Query::ContainerStatus) {
            self.container("of", of);
        } else {
            self.sandbox_or_container("of", of);
        }
        if queries.is_empty() {
            self.error_at("read", "`read` must name at least one query");
        }
    }
}

/// Names.
impl<'a> Walk<'a, '_> {
    /// The object to which the name under a key is bound, if the step can use it.
    fn resolve(&mut self, key: &'static str, name: &str, wanted: Wanted) -> Option<Kind<'a>> {
        let binding = self.names.resolve((key, name), wanted, self.found)?;
        if self.names.is_unsure(name) {
            self.error_at(key, format!("`{name}` may not have been made"))
                .help("use it in an `aftermath` alone");
            return None;
        }
        if self.scopes.starts_with(&binding.scopes) {
            return Some(binding.kind);
        }
        let message = format!(
            "`{name}` is made anew in each round of a `repeat`, and no step after it can mean one \
             of them"
        );
        self.error_at(key, message)
            .help("move the step into the `repeat`");
        None
    }

    /// Requires that the name under a key is bound to a sandbox.
    pub(in crate::case) fn sandbox(&mut self, key: &'static str, name: &str) {
        self.resolve(key, name, Wanted::Sandbox);
    }

    /// Requires that the name under a key is bound to a container. Returns its memory limit in MiB,
    /// if it has one.
    pub(in crate::case) fn container(&mut self, key: &'static str, name: &str) -> Option<u32> {
        match self.resolve(key, name, Wanted::Container) {
            Some(Kind::Container { memory_mib, .. }) => memory_mib,
            _ => None,
        }
    }

    /// Requires that the name under a key is that of a container whose creation was tried.
    pub(in crate::case) fn requested(&mut self, key: &'static str, name: &str) {
        if !self.names.is_unsure(name) {
            self.container(key, name);
        }
    }

    /// Requires that the name under a key is bound to a sandbox or a container.
    pub(in crate::case) fn sandbox_or_container(&mut self, key: &'static str, name: &str) {
        self.resolve(key, name, Wanted::Either);
    }

    /// Requires that the name under a key is bound to a subscription. Returns whether that has its
    /// own connection.
    pub(in crate::case) fn subscription(&mut self, key: &'static str, name: &str) -> Option<bool> {
        match self.resolve(key, name, Wanted::Subscription) {
            Some(Kind::Subscription { own }) => Some(own),
            _ => None,
        }
    }

    /// Binds a name in the scope of the step.
    pub(in crate::case) fn bind(&mut self, name: &'a str, kind: Kind<'a>) {
        let most = limits::NAME_CHARS;
        if !is_kebab(name) || name.len() > most {
            self.error_at("as", format!("`{name}` is no name"))
                .help(format!(
                    "a name has small letters, digits and hyphens, and at most {most} of them"
                ));
        }
        if self.names.bound.contains_key(name) {
            self.error_at("as", format!("the name `{name}` is taken already"))
                .help("a name is bound once in the whole case");
            return;
        }
        let scopes = self.scopes.clone();
        self.names.bound.insert(name, Binding { kind, scopes });
    }

    /// Binds the name of a container. Returns its memory limit in MiB: the lower one of its own and
    /// its pod's.
    pub(in crate::case) fn bind_container(&mut self, step: &'a CreateStep) -> Option<u32> {
        let of_pod = match self.resolve("in", &step.sandbox, Wanted::Sandbox) {
            Some(Kind::Sandbox { memory_mib }) => memory_mib,
            _ => None,
        };
        let limit = of_pod.into_iter().chain(step.memory_mib).min();
        let kind = Kind::Container {
            sandbox: &step.sandbox,
            memory_mib: limit,
            declares_exit: step.workload.declares_exit(),
        };
        self.bind(&step.binding, kind);
        limit
    }

    /// Records the expected outcome of the call that creates the object of a name.
    pub(in crate::case) fn created_by(
        &mut self,
        name: &'a str,
        expect: CallOutcome,
        abandon: Option<Duration>,
    ) {
        self.expectation(expect, abandon);
        if expect != CallOutcome::Success || abandon.is_some() {
            self.names.unsure.insert(name);
        }
    }
}

/// The names of a case: the objects to which they are bound, and the steps on them.
#[derive(Default)]
pub(in crate::case) struct Names<'a> {
    bound: BTreeMap<&'a str, Binding<'a>>,
    calls: BTreeSet<(&'a str, CallEdge)>,
    relisted: BTreeSet<&'a str>,
    /// The holders whose resources steps count, and how often.
    measured: Vec<(Holder, u64)>,
    /// Names of objects whose creation may fail.
    unsure: BTreeSet<&'a str>,
}

pub(super) struct Binding<'a> {
    pub(super) kind: Kind<'a>,
    /// The scopes around it, from the outermost.
    scopes: Vec<usize>,
}

impl<'a> Names<'a> {
    /// Whether a name may be unbound.
    pub(super) fn is_unsure(&self, name: &str) -> bool {
        self.unsure.contains(name)
    }

    /// Records that a step makes a call on the object of a name.
    pub(in crate::case) fn called(&mut self, name: &'a str, edges: &[CallEdge]) {
        self.calls.extend(edges.iter().map(|edge| (name, *edge)));
    }

    /// Whether a step makes such a call.
    pub(super) fn is_called(&self, name: &str, edge: CallEdge) -> bool {
        self.calls.contains(&(name, edge))
    }

    /// Records that a step lists a sandbox's containers.
    pub(in crate::case) fn relisted(&mut self, sandbox: &'a str) {
        self.relisted.insert(sandbox);
    }

    /// Whether a step lists a sandbox's containers.
    pub(super) fn is_relisted(&self, sandbox: &str) -> bool {
        self.relisted.contains(sandbox)
    }

    /// Records that a step counts resources, and how often it is taken.
    pub(in crate::case) fn measured(&mut self, holder: Holder, times: u64) {
        self.measured.push((holder, times));
    }

    /// How often steps count the resources of a holder.
    pub(super) fn measurements(&self, holder: Holder) -> u64 {
        let own = self.measured.iter().filter(|(it, _)| *it == holder);
        own.map(|(_, times)| times).sum()
    }

    /// The object to which the name under `key` is bound. Reports an unbound name, and an object of
    /// another kind.
    pub(super) fn resolve(
        &self,
        (key, name): (&'static str, &str),
        wanted: Wanted,
        found: &mut Findings,
    ) -> Option<&Binding<'a>> {
        let Some(binding) = self.bound.get(name) else {
            let known = self.bound.iter();
            let known = known.filter(|(_, known)| wanted.admits(known.kind));
            let help = did_you_mean(name, known.map(|(name, _)| *name))
                .unwrap_or_else(|| wanted.way_to_bind(name));
            let message = format!("no {} is called `{name}` so far", wanted.noun());
            found.error_at(key, message).help(help);
            return None;
        };
        if wanted.admits(binding.kind) {
            return Some(binding);
        }
        let (is, needed) = (binding.kind.noun(), wanted.noun());
        let message = format!("`{name}` is a {is}, where a {needed} is needed");
        found.error_at(key, message);
        None
    }
}
