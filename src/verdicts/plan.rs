//! The plan of a run, from its history.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rust_embed::RustEmbed;

use super::known::{JudgedRun, Known, RuntimeFacts};
use crate::case::{self, Case};
use crate::history::{CaseRun, ExpectationFile, HostInstant, PlannedCase, RunInfo, RunPlan};
use crate::limits;
use crate::oracle::{INVARIANTS, Invariant};
use crate::outcome::{Outcome, Profile, Verdict};
use crate::plan::{Facts, ProfileChoice, Selection};

/// The part of a run to report, and its expectations.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub selection: Selection,
    pub accepted: Accepted,
}

/// The known failures that do not fail a run.
#[derive(Clone, Debug, Default)]
pub enum Accepted {
    /// Those that the run accepted when it was recorded.
    #[default]
    Recorded,
    Listed(Box<Known>),
    /// The built-in ones of the runtime.
    Builtin,
}

/// The plan of a run, or the selected part.
#[derive(Debug)]
pub(super) struct Plan {
    /// Whether the history contains it; a truncated one may not.
    pub(super) is_recorded: bool,
    pub(super) image: String,
    pub(super) foreign_pods: usize,
    /// The accepted known failures.
    pub(super) known: Arc<Known>,
    /// All known failures of the runtime, accepted or not.
    pub(super) hints: Arc<Known>,
    /// The profiles in which the runtime is judged.
    pub(super) profiles: Arc<[Profile]>,
    /// The tier of the run.
    pub(super) tier: Option<String>,
    /// Whether cases of the tier were left out.
    pub(super) partial: bool,
    pub(super) invariants: Vec<(CaseRun, &'static Invariant)>,
    pub(super) executions: BTreeMap<CaseRun, Execution>,
    pub(super) faults: Vec<String>,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) case: Arc<Readable>,
    /// Its outcome before its verdict.
    blank: Arc<Outcome>,
    pub(super) repetition: Option<u32>,
}

/// A case of the history.
#[derive(Clone, Debug)]
pub(super) enum Readable {
    Case(Box<Case>),
    /// This version of the suite cannot read it: its name, and the reason.
    Not(String, String),
}

/// As they were when the program was built; a debug build reads them as they are now.
#[derive(RustEmbed)]
#[folder = "ci/expectations"]
#[include = "*.yaml"]
struct Embedded;

/// The name of a built-in file in the history of a run.
/// The path of the built-in expectations in messages.
pub(super) const NAME: &str = "built-in expectations";

/// Each file, with its parsed content. A run needs the one of its runtime, and the matrix makes
/// hundreds of runs.
static READ: LazyLock<Vec<(ExpectationFile, Known)>> = LazyLock::new(|| {
    let files = builtin_files().into_iter();
    // That each can be read is for the tests to say.
    let read = files.filter_map(|file| Some((file.clone(), Known::parse(&file).ok()?)));
    read.collect()
});

impl Default for Plan {
    fn default() -> Self {
        let run = (&RunInfo::default(), HostInstant::default());
        Self::unrecorded(run, &Scope::default())
    }
}

impl Plan {
    /// The plan of a history before its own, until a case begins.
    pub(super) fn unrecorded(run: (&RunInfo, HostInstant), scope: &Scope) -> Self {
        Self {
            is_recorded: false,
            ..Self::of(&RunPlan::default(), run, scope)
        }
    }

    /// The selected part of a plan.
    pub(super) fn of(
        plan: &RunPlan,
        (info, began): (&RunInfo, HostInstant),
        scope: &Scope,
    ) -> Self {
        let mut faults = Vec::new();
        let selection = &scope.selection;
        let builtin = known_of(&info.runtime.runtime_name);
        let known = match &scope.accepted {
            Accepted::Recorded => recorded(plan.expectations.as_ref(), &mut faults),
            Accepted::Listed(known) => Known::clone(known),
            Accepted::Builtin => builtin.clone(),
        };
        let (profiles, all_recorded) = judged(plan, selection, &mut faults);
        let partial = plan.partial || selection.is_partial() || !all_recorded;
        let run = JudgedRun {
            facts: RuntimeFacts::of(info),
            began,
        };
        let selection = &Selection {
            profiles: profiles.iter().copied().map(ProfileChoice::One).collect(),
            ..selection.clone()
        };
        let cases = plan.cases.iter().map(Readable::of);
        let cases: Vec<_> = cases.map(Execution::new).collect();
        if plan.executions.len() > limits::EXECUTIONS {
            let bound = limits::EXECUTIONS;
            faults.push(format!(
                "more than {bound} cases are planned; the rest is left out"
            ));
        }
        let planned = plan.executions.iter().take(limits::EXECUTIONS);
        let numbered = (0..).map(CaseRun).zip(planned);
        let executions = numbered.filter_map(|(run, planned)| {
            let execution = Execution {
                repetition: planned.repetition,
                ..cases.get(planned.case as usize)?.clone()
            };
            selection
                .selects(&execution.case.facts())
                .then_some((run, execution))
        });
        let first = u32::try_from(plan.executions.len()).unwrap_or(u32::MAX);
        let numbered = (first..).map(CaseRun).zip(&plan.invariants);
        let invariants = numbered.filter_map(|(run, id)| {
            let invariant = INVARIANTS.iter().find(|invariant| invariant.id == id)?;
            let wanted = selection.selects_invariant(&invariant_facts(invariant));
            wanted.then_some((run, invariant))
        });
        Self {
            is_recorded: true,
            image: plan.image.clone(),
            foreign_pods: usize::try_from(plan.foreign_pods).unwrap_or(usize::MAX),
            known: Arc::new(known.for_a_run(run.clone())),
            hints: Arc::new(builtin.for_a_run(run)),
            profiles: profiles.into(),
            tier: plan.tier.clone(),
            partial,
            invariants: invariants.collect(),
            executions: executions.collect(),
            faults,
            notes: plan.notes.clone(),
        }
    }

    /// Adds a case of a history without a plan.
    pub(super) fn add(&mut self, run: CaseRun, id: &str, definition: &str, selection: &Selection) {
        if self.invariants.is_empty() {
            let wanted = INVARIANTS
                .iter()
                .filter(|invariant| selection.selects_invariant(&invariant_facts(invariant)));
            // Numbers that no case of such a history has reached.
            let numbers = (0..u32::MAX).rev().map(CaseRun);
            self.invariants = numbers.zip(wanted).collect();
        }
        let embedded = case::load::embedded().unwrap_or_default();
        let now = embedded.into_iter().find(|case| case.id == id);
        let case = Readable::of(&PlannedCase {
            name: now.map_or(format!("recorded::{id}"), |case| case.name),
            definition: definition.to_owned(),
        });
        if selection.selects(&case.facts()) {
            self.executions.insert(run, Execution::new(case));
        }
    }
}

impl Readable {
    fn of(planned: &PlannedCase) -> Self {
        let path = format!("{}.yaml", planned.name.replace("::", "/"));
        match case::parse(Path::new(&path), &planned.definition) {
            Ok(case) => Self::Case(Box::new(case)),
            Err(found) => {
                let first = found.first().map(|found| found.message.clone());
                let reason = format!(
                    "this version of the suite cannot read the recorded case: {}",
                    first.unwrap_or_default()
                );
                Self::Not(planned.name.clone(), reason)
            }
        }
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Case(case) => &case.id,
            Self::Not(name, _) => name,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Case(case) => &case.name,
            Self::Not(name, _) => name,
        }
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        match self {
            Self::Case(case) => Facts::from_case(case),
            Self::Not(name, _) => Facts {
                id: name,
                name,
                ..Facts::default()
            },
        }
    }
}

impl Execution {
    fn new(case: Readable) -> Self {
        let mut outcome = blank(case.id(), case.name(), HostInstant::default());
        match &case {
            Readable::Case(case) => {
                outcome.title = case.title.as_str().into();
                outcome.why = case.why.trim().into();
                outcome.sources = case.sources.as_slice().into();
                outcome.requirements = case.requirements.as_slice().into();
                outcome.levels = case.levels;
            }
            Readable::Not(_, reason) => outcome.reason = Some(reason.clone()),
        }
        Self {
            case: Arc::new(case),
            blank: Arc::new(outcome),
            repetition: None,
        }
    }

    /// An outcome before its verdict.
    pub(super) fn blank(&self, began: HostInstant) -> Outcome {
        Outcome {
            repetition: self.repetition,
            began,
            ..Outcome::clone(&self.blank)
        }
    }
}

/// The expectations that the run was judged by.
fn recorded(file: Option<&ExpectationFile>, faults: &mut Vec<String>) -> Known {
    let known = file.map(Known::parse).transpose();
    let known = known.unwrap_or_else(|fault| {
        faults.push(format!("the recorded expectation file: {fault}"));
        None
    });
    known.unwrap_or_default()
}

/// The facts about an invariant for a selection.
pub fn invariant_facts(invariant: &Invariant) -> Facts<'static> {
    Facts {
        id: invariant.id,
        name: invariant.name,
        requirements: invariant.requirements.to_vec(),
        levels: Some(invariant.levels),
        ..Facts::default()
    }
}

/// The judged profiles of a plan, and whether the run was made for all of them.
fn judged(plan: &RunPlan, selection: &Selection, faults: &mut Vec<String>) -> (Vec<Profile>, bool) {
    let mut recorded = Vec::new();
    for word in &plan.profiles {
        match Profile::ALL.iter().find(|profile| profile.name() == word) {
            Some(profile) => recorded.push(*profile),
            None => faults.push(format!(
                "this version of the suite knows no profile `{word}`"
            )),
        }
    }
    if recorded.is_empty() {
        recorded = Profile::ALL.to_vec();
    }
    if selection.profiles.is_empty() {
        return (recorded, true);
    }
    let asked_for = selection.judged();
    let all_recorded = asked_for.iter().all(|profile| recorded.contains(profile));
    (asked_for, all_recorded)
}

/// An invariant's outcome before any finding.
pub(super) fn blank_invariant(invariant: &Invariant, judged: HostInstant) -> Outcome {
    let mut outcome = blank(invariant.id, invariant.name, judged);
    outcome.title = invariant.sentence.into();
    outcome.sources = [invariant.source.to_owned()].into();
    let requirements = invariant.requirements.iter();
    outcome.requirements = requirements.map(ToString::to_string).collect();
    outcome.levels = invariant.levels;
    outcome.verdict = Verdict::Pass;
    outcome
}

fn blank(id: &str, name: &str, began: HostInstant) -> Outcome {
    Outcome {
        id: id.into(),
        name: name.into(),
        began,
        ..Outcome::default()
    }
}

/// All files, by their paths.
pub fn builtin_files() -> Vec<ExpectationFile> {
    let file = |name: Cow<'static, str>| {
        let data = Embedded::get(&name)?.data.into_owned();
        let path = format!("ci/expectations/{name}");
        let text = String::from_utf8(data).ok()?;
        Some(ExpectationFile { path, text })
    };
    Embedded::iter().filter_map(file).collect()
}

pub fn builtin() -> Vec<Known> {
    READ.iter().map(|(_, known)| known.clone()).collect()
}

/// The file of a runtime, by the runtime's name; `None` if there is none.
pub fn builtin_of(runtime: &str) -> Option<ExpectationFile> {
    let (file, _) = found(runtime)?;
    Some(ExpectationFile {
        path: NAME.to_owned(),
        ..file.clone()
    })
}

/// The note that a runtime is newer than each version that was measured, if it is.
pub fn unmeasured(runtime: &str, version: &str) -> Option<String> {
    let (_, known) = found(runtime)?;
    known.is_outdated_by(version).then(|| {
        let measured = known.measured.as_deref().unwrap_or_default();
        format!("note: never measured with this version, but with {measured}")
    })
}

/// The known failures of a runtime; empty without a file.
pub(super) fn known_of(runtime: &str) -> Known {
    let known = found(runtime).map(|(_, known)| known.clone());
    known.unwrap_or_default().named(NAME)
}

fn found(runtime: &str) -> Option<&'static (ExpectationFile, Known)> {
    let mut read = READ.iter();
    read.find(|(_, known)| known.runtime.eq_ignore_ascii_case(runtime))
}
