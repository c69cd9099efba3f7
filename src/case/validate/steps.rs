//! Whether the steps of a case make sense, in the order in which they are taken.

mod beside;

use std::time::Duration;

use super::findings::Findings;
use super::names::{Kind, Names, Wanted};
use super::workload;
use crate::case::file::CaseFile;
use crate::case::{
    AwaitStep, CallEdge, CreateStep, Read, RepeatStep, Resubscribe, SandboxStep, Step, StopStep,
    limits,
};

/// Checks the steps and tells what the names in them stand for.
pub(super) fn check<'a>(file: &'a CaseFile, found: &mut Findings) -> Names<'a> {
    let mut walk = Walk {
        file,
        found,
        names: Names::default(),
        rounds: Vec::new(),
        repeats: 0,
        written: 0,
        taken: 0,
    };
    walk.steps(&file.steps, Round::default());
    walk.count();
    walk.names
}

pub(super) struct Walk<'a, 'f> {
    pub(super) file: &'a CaseFile,
    pub(super) found: &'f mut Findings,
    pub(super) names: Names<'a>,
    /// The numbers of the `repeat` steps around, from the outermost.
    pub(super) rounds: Vec<usize>,
    repeats: usize,
    written: usize,
    taken: u64,
}

/// What surrounds a step.
#[derive(Clone, Copy)]
pub(super) struct Round {
    /// How often it is taken.
    times: u64,
    /// Whether `item` means something.
    has_item: bool,
    /// Whether other rounds may be under way meanwhile.
    pub(super) parallel: bool,
}

impl Default for Round {
    fn default() -> Self {
        Self {
            times: 1,
            has_item: false,
            parallel: false,
        }
    }
}

impl<'a> Walk<'a, '_> {
    pub(super) fn steps(&mut self, steps: &'a [Step], round: Round) {
        self.list("steps", steps, round);
    }

    fn list(&mut self, key: &'static str, steps: &'a [Step], round: Round) {
        self.found.enter(key);
        if steps.is_empty() {
            self.found.object("there is nothing to do");
        }
        for (index, step) in steps.iter().enumerate() {
            self.written += 1;
            self.found.enter_element(index);
            self.found.enter(keyword(step));
            self.step(step, round);
            self.found.leave();
            self.found.leave();
        }
        self.found.leave();
    }

    fn step(&mut self, step: &'a Step, round: Round) {
        let nested = matches!(
            step,
            Step::Repeat(_)
                | Step::Prompt(_)
                | Step::Parallel(_)
                | Step::AnotherClient(_)
                | Step::StepClock(_)
        );
        if !nested {
            self.taken = self.taken.saturating_add(round.times);
        }
        self.without_events(step);
        match step {
            Step::Sandbox(step) => self.sandbox(step),
            Step::Create(step) => self.create(step, round),
            Step::Start(step) => {
                self.container(&step.container, &[CallEdge::StartReturned]);
                self.terms(step.terms());
            }
            Step::Stop(step) => self.stop(step),
            Step::Remove(step) => self.remove(step),
            Step::StopSandbox(step) => {
                self.resolve(("sandbox", &step.sandbox), Wanted::Sandbox);
                self.names
                    .called(&step.sandbox, &[CallEdge::StopSandboxCalled]);
            }
            Step::RemoveSandbox(step) => {
                self.resolve(("sandbox", &step.sandbox), Wanted::Sandbox);
            }
            Step::KillSandbox(step) => self.kill_sandbox(step),
            Step::Kill(step) => self.kill(step),
            Step::Gone(step) => self.gone(step),
            Step::Await(step) => self.wait(step),
            Step::Relist(step) => {
                self.resolve(("sandbox", &step.sandbox), Wanted::Sandbox);
                self.names.relisted(&step.sandbox);
            }
            Step::Resubscribe(step) => self.resubscribe(step, round),
            Step::Subscribe(_)
            | Step::Unsubscribe(_)
            | Step::Resume(_)
            | Step::AwaitEnd(_)
            | Step::Quiet(_) => self.subscription(step, round),
            Step::Prompt(step) => self.prompt(step, round),
            Step::Version(_) | Step::Image(_) | Step::Unknown(_) => {}
            Step::Parallel(branches) => self.parallel(branches, round),
            Step::Filters(step) => self.resolve(("sandbox", &step.sandbox), Wanted::Sandbox),
            Step::EachHandler(step) => self.each_handler(step, round),
            Step::OnEvent(step) => {
                self.span("again", step.again);
                self.reads(&step.of, &step.read);
                if !step.steps.is_empty() {
                    self.steps(&step.steps, round);
                }
            }
            Step::Meanwhile(step) => {
                self.reads(&step.of, &step.read);
                self.steps(&step.steps, round);
            }
            Step::Exec(step) => self.exec(step, round),
            Step::Aside(step) => self.aside(step),
            Step::AnotherClient(step) => self.steps(&step.steps, round),
            Step::StepClock(step) => self.step_clock(step, round),
            Step::OutsideCri(_) => self.outside_cri(),
            Step::RestartRuntime(_) => self.restart_runtime(round),
            Step::Repeat(step) => self.repeat(step, round),
        }
    }

    pub(super) fn resolve(&mut self, name: (&'static str, &str), wanted: Wanted) {
        let Self {
            names,
            found,
            rounds,
            ..
        } = self;
        names.in_step(name, wanted, rounds, found);
    }

    fn container(&mut self, name: &'a str, edges: &[CallEdge]) {
        self.resolve(("container", name), Wanted::Container);
        self.names.called(name, edges);
    }

    fn sandbox(&mut self, step: &'a SandboxStep) {
        let Self {
            names,
            found,
            rounds,
            ..
        } = self;
        let memory_mib = step.memory_mib;
        let kind = Kind::Sandbox { memory_mib };
        names.bind(&step.binding, kind, rounds, found);
        self.names
            .called(&step.binding, &[CallEdge::SandboxReturned]);
        self.again(step);
        self.terms(step.terms());
        self.names.is_made(&step.binding, step.terms());
    }

    fn create(&mut self, step: &'a CreateStep, round: Round) {
        let Self {
            names,
            found,
            rounds,
            ..
        } = self;
        let limit = match names.in_step(("in", &step.sandbox), Wanted::Sandbox, rounds, found) {
            Some(Kind::Sandbox { memory_mib }) => {
                memory_mib.into_iter().chain(step.memory_mib).min()
            }
            _ => step.memory_mib,
        };
        let kind = Kind::Container {
            sandbox: &step.sandbox,
            memory_mib: limit,
            declares_exit: workload::declares_exit(&step.workload),
        };
        names.bind(&step.binding, kind, rounds, found);
        if let Some(earlier) = &step.attempt_of {
            self.resolve(("attempt-of", earlier), Wanted::Container);
        }
        let most = limits::ANNOTATION_KIB;
        if step.annotation_kib.is_some_and(|kib| kib > most) {
            let message = format!("an annotation has at most {most} KiB");
            self.found.object_to("annotation-kib", message);
        }
        self.others(step);
        self.terms(step.terms());
        self.names.is_made(&step.binding, step.terms());
        workload::check(step, (self.file, limit), round.has_item, self.found);
    }

    fn stop(&mut self, step: &'a StopStep) {
        self.container(
            &step.container,
            &[CallEdge::StopCalled, CallEdge::StopReturned],
        );
        if step.grace.subsec_nanos() != 0 || step.grace > limits::GRACE {
            let most = limits::GRACE.as_secs();
            self.found
                .object_to(
                    "grace",
                    format!("a grace period is from 0 to {most} whole seconds"),
                )
                .advise("the CRI counts it in seconds");
        }
        self.terms(step.terms());
    }

    fn wait(&mut self, step: &AwaitStep) {
        self.resolve(("of", &step.of), Wanted::Either);
        self.span("within", step.within);
        if step.within.is_some_and(|within| within.is_zero()) {
            self.found
                .object_to("within", "no event arrives within no time");
        }
    }

    pub(super) fn span(&mut self, key: &'static str, span: Option<Duration>) {
        workload::check_span(key, span, self.found);
    }

    fn reads(&mut self, of: &str, read: &[Read]) {
        let wanted = if read.contains(&Read::ContainerStatus) {
            Wanted::Container
        } else {
            Wanted::Either
        };
        self.resolve(("of", of), wanted);
        if read.is_empty() {
            self.found.object_to("read", "this asks nothing");
        }
    }

    fn resubscribe(&mut self, step: &'a Resubscribe, round: Round) {
        self.without_listeners(round);
        if !step.meanwhile.is_empty() {
            self.list("meanwhile", &step.meanwhile, round);
        }
    }

    /// The stream that all cases read is given up.
    pub(super) fn without_listeners(&mut self, round: Round) {
        self.alone("other cases would miss the events of this moment");
        if round.parallel {
            self.found
                .object("other rounds would miss the events of this moment")
                .advise("leave `workers` out of the `repeat`");
        }
    }

    fn repeat(&mut self, step: &'a RepeatStep, round: Round) {
        let times = match (step.times, step.items.len()) {
            (Some(times), 0) => times,
            (None, items @ 1..) => u32::try_from(items).unwrap_or(u32::MAX),
            (Some(_), 1..) | (None, 0) => {
                self.found
                    .object("a `repeat` has either `times` or `items`");
                1
            }
        };
        let most = limits::ROUNDS;
        if !(1..=most).contains(&times) {
            let key = if step.times.is_some() {
                "times"
            } else {
                "items"
            };
            self.found
                .object_to(key, format!("a `repeat` has from 1 to {most} rounds"));
        }
        let most = limits::WORKERS;
        if !(1..=most).contains(&step.workers) {
            self.found
                .object_to("workers", format!("there are from 1 to {most} workers"));
        }
        let most = limits::NESTING;
        if self.rounds.len() == most {
            self.found
                .object(format!("a `repeat` stands in at most {} others", most - 1));
        }
        let inner = Round {
            times: round.times.saturating_mul(u64::from(times)),
            has_item: round.has_item || !step.items.is_empty(),
            parallel: round.parallel || step.workers > 1,
        };
        self.apart(&step.steps, inner);
    }

    /// Steps whose names stand for nothing outside them.
    pub(super) fn apart(&mut self, steps: &'a [Step], round: Round) {
        self.repeats += 1;
        self.rounds.push(self.repeats);
        self.steps(steps, round);
        self.rounds.pop();
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

fn keyword(step: &Step) -> &'static str {
    match step {
        Step::Sandbox(_) => "sandbox",
        Step::Create(_) => "create",
        Step::Start(_) => "start",
        Step::Stop(_) => "stop",
        Step::Remove(_) => "remove",
        Step::StopSandbox(_) => "stop-sandbox",
        Step::RemoveSandbox(_) => "remove-sandbox",
        Step::KillSandbox(_) => "kill-sandbox",
        Step::Kill(_) => "kill",
        Step::Gone(_) => "gone",
        Step::Await(_) => "await",
        Step::Relist(_) => "relist",
        Step::Resubscribe(_) => "resubscribe",
        Step::Subscribe(_) => "subscribe",
        Step::Unsubscribe(_) => "unsubscribe",
        Step::Resume(_) => "resume",
        Step::AwaitEnd(_) => "await-end",
        Step::Quiet(_) => "quiet",
        Step::Prompt(_) => "prompt",
        Step::Version(_) => "version",
        Step::Parallel(_) => "parallel",
        Step::Filters(_) => "filters",
        Step::EachHandler(_) => "each-handler",
        Step::OnEvent(_) => "on-event",
        Step::Meanwhile(_) => "meanwhile",
        Step::Exec(_) => "exec",
        Step::Aside(_) => "aside",
        Step::Image(_) => "image",
        Step::Unknown(_) => "unknown",
        Step::AnotherClient(_) => "another-client",
        Step::StepClock(_) => "step-clock",
        Step::OutsideCri(_) => "outside-cri",
        Step::RestartRuntime(_) => "restart-runtime",
        Step::Repeat(_) => "repeat",
    }
}
