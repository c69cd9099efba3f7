//! Takes walks, and shrinks their findings.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::coverage::Coverage;
use super::finding::{Finding, Key, Rate, Threshold};
use super::generate::{Size, generate};
use super::plan::{Behaviour, Capabilities, Plan, size};
use super::shrink::{Answer, shrink};
use super::testbed::{Ran, Testbed, Trials, disrupts};
use super::text::{Focus, Header, Walk, walk};
use super::{ExploreError, ExploreOptions, Explored, NewFinding};
use crate::case::{Need, Requirement};
use crate::escape::printable;
use crate::files::{self, Draft};
use crate::history::{HostInstant, RunInfo};
use crate::host;
use crate::oracle::INVARIANTS;
use crate::outcome::Verdict;
use crate::report::counted;
use crate::run::{RunError, Target};

/// Takes walks on a runtime until the end that the options set.
pub fn explore(
    options: &ExploreOptions,
    target: &Target,
    requirements: &[Requirement],
    out: &mut (dyn Write + Send),
) -> Result<Explored, ExploreError> {
    let testbed = Testbed::new(options, target)?;
    let seed = options.seed.unwrap_or_else(new_seed);
    let mut explorer = Explorer {
        options,
        testbed,
        seed,
        coverage: Coverage::default(),
        explored: Explored::default(),
        seen: BTreeSet::new(),
        began: host::now(),
        out,
    };
    explorer.announce()?;
    let ended = explorer.run();
    explorer.conclude(requirements)?;
    ended?;
    Ok(explorer.explored)
}

/// A new random seed.
fn new_seed() -> u64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    high >> 32
}

struct Explorer<'a> {
    options: &'a ExploreOptions,
    testbed: Testbed<'a>,
    seed: u64,
    coverage: Coverage,
    explored: Explored,
    seen: BTreeSet<Key>,
    began: HostInstant,
    out: &'a mut (dyn Write + Send),
}

/// Walks unless options say how many.
const WALKS: u64 = 100;
/// On the model so many walks are made before any of them is counted as covered. Walks follow from
/// it as from the seed, so that it does not depend on the machine.
const WALKS_AT_ONCE: u64 = 16;

impl Explorer<'_> {
    /// Prints one line, with the unprintable characters of a runtime escaped.
    fn say(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{}", printable(line))
    }

    fn announce(&mut self) -> io::Result<()> {
        let RunInfo { runtime, .. } = &self.testbed.info;
        let (seed, steps, pods) = (self.seed, self.options.steps, self.options.pods);
        let line = format!(
            "exploring {} {}: --seed {seed} --steps {steps} --pods {pods}",
            runtime.runtime_name, runtime.runtime_version
        );
        self.say(&line)?;
        let can = &self.testbed.can;
        let missing = Capabilities::USED
            .into_iter()
            .filter(|need| !can.met.contains(need));
        let unasked = |need: &Need| disrupts(*need) && !can.disruption;
        let (unasked, lacks): (Vec<Need>, Vec<Need>) = missing.partition(unasked);
        let behaviours = Behaviour::ALL.into_iter();
        let behaviours = behaviours.filter(|behaviour| !can.has(*behaviour));
        let behaviours = behaviours.map(|behaviour| behaviour.allows().to_owned());
        let lacks: Vec<String> = words(lacks).chain(behaviours).collect();
        let unasked: Vec<String> = words(unasked).collect();
        for (why, left_out) in [
            ("as the runtime or the node lacks it", lacks),
            ("as --allow does not name it", unasked),
        ] {
            if !left_out.is_empty() {
                self.say(&format!("left out, {why}: {}", left_out.join(", ")))?;
            }
        }
        Ok(())
    }

    /// Takes one batch of walks after the other.
    fn run(&mut self) -> Result<(), ExploreError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // A walk on a real runtime has it for itself.
        let batch = if self.testbed.is_model() {
            WALKS_AT_ONCE
        } else {
            1
        };
        let last = self
            .options
            .walk
            .map(|walk| walk + 1)
            .or(self.options.walks);
        let unbounded = if self.options.duration.is_some() {
            u64::MAX
        } else {
            WALKS
        };
        let last = last.unwrap_or(unbounded);
        let mut next = 0;
        while next < last && !self.is_over() {
            let end = last.min(next + batch);
            let walks: Vec<(u64, Walk)> = (next..end).map(|it| (it, self.walk(it))).collect();
            for (_, walk) in &walks {
                self.coverage.count(&walk.plan);
            }
            next = end;
            let wanted = self.options.walk;
            let walks = walks.into_iter();
            let mut walks: Vec<_> = walks
                .filter(|(number, _)| wanted.is_none_or(|wanted| wanted == *number))
                .collect();
            while !walks.is_empty() {
                let at_once = if self.options.fail_fast {
                    processors.min(walks.len())
                } else {
                    walks.len()
                };
                let rest = walks.split_off(at_once);
                for (number, walk, ran) in self.run_all(walks, processors) {
                    self.record(number, &walk, ran?)?;
                    if self.options.fail_fast && !self.explored.found.is_empty() {
                        return Ok(());
                    }
                }
                walks = rest;
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let duration = self.options.duration;
        duration.is_some_and(|duration| host::elapsed(self.began) >= duration)
    }

    fn walk(&self, number: u64) -> Walk {
        let size_of = Size {
            steps: self.options.steps.into(),
            pods: self.options.pods.into(),
        };
        let can = &self.testbed.can;
        let plan = generate((self.seed, number), size_of, can, &self.coverage);
        walk(plan, can, &self.header(number))
    }

    fn header(&self, number: u64) -> Header {
        Header {
            number: 0,
            name: format!("walk-{number}"),
            title: "A random walk keeps all rules.".to_owned(),
            why: "What no case tells may break them all the same.".to_owned(),
            source: self.origin(number),
            silent: is_silent(number),
            repeat: None,
            only: None,
        }
    }

    /// The command that takes a walk again.
    fn origin(&self, number: u64) -> String {
        let (seed, steps, pods) = (self.seed, self.options.steps, self.options.pods);
        format!("explore --seed {seed} --steps {steps} --pods {pods} --walk {number}")
    }

    /// Runs walks, on a model several at once; returns them in their order.
    fn run_all(
        &self,
        walks: Vec<(u64, Walk)>,
        threads: usize,
    ) -> Vec<(u64, Walk, Result<Ran, RunError>)> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(BTreeMap::new());
        let (testbed, options) = (&self.testbed, self.options);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(walks.len()) {
                scope.spawn(|| {
                    while let Some((number, walk)) = walks.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let history = history_of(options, *number);
                        let ran = testbed.run(walk, *number, history);
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        done.insert(*number, ran);
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let walks = walks.into_iter();
        walks
            .filter_map(|(number, walk)| Some((number, walk, done.remove(&number)?)))
            .collect()
    }

    /// Counts the findings of a walk, and shrinks the new ones.
    fn record(&mut self, number: u64, walk: &Walk, ran: Ran) -> Result<(), ExploreError> {
        self.explored.walks += 1;
        let is_open = matches!(ran.verdict, Some(Verdict::Skip | Verdict::Inconclusive));
        self.explored.open += u64::from(is_open);
        self.coverage
            .judged(ran.requirements.iter().map(String::as_str));
        let mut is_new = false;
        for finding in ran.findings {
            if let Some(known) = &finding.known {
                let known = format!("{}: {known}", finding.key);
                *self.explored.known.entry(known).or_default() += 1;
            } else if self.seen.insert(finding.key.clone()) {
                is_new = true;
                self.shrink(number, walk, finding)?;
                if self.options.fail_fast {
                    break;
                }
            }
        }
        if let Some(history) = history_of(self.options, number)
            && !is_new
        {
            // It shows nothing that another one does not.
            let _ = std::fs::remove_file(history);
        }
        match ran.fault {
            Some(fault) => Err(ExploreError::CutShort(fault)),
            None => Ok(()),
        }
    }

    fn shrink(&mut self, number: u64, walk: &Walk, finding: Finding) -> Result<(), ExploreError> {
        self.announce_finding(number, walk, &finding)?;
        let trials = Trials {
            testbed: &self.testbed,
            number,
            key: finding.key.clone(),
            header: self.header(number),
            began: host::now(),
            bound: self.options.shrink_for_after(host::elapsed(self.began)),
        };
        let (mut plan, mut rate) = (walk.plan.clone(), Rate { found: 1, runs: 1 });
        let mut interruption = None;
        if !self.options.no_shrink {
            if !self.testbed.is_model() {
                rate = trials.rate(&plan)?;
            }
            let threshold = if self.testbed.is_model() {
                Threshold::SURE
            } else {
                rate.threshold()
            };
            let mut fault = None;
            let smaller = shrink(
                plan.clone(),
                &finding.name,
                &self.testbed.can,
                &mut |candidate: &Plan| match trials.fails(candidate, threshold) {
                    Ok(answer) => answer,
                    Err(found) => {
                        fault = Some(found);
                        Answer::OutOfTime
                    }
                },
            );
            if smaller != plan {
                plan = smaller;
                if !self.testbed.is_model() && fault.is_none() {
                    rate = trials.rate(&plan)?;
                }
            }
            if let Some(fault) = &fault {
                self.say(&format!("  shrinking ended early: {fault}"))?;
            }
            interruption = fault;
        }
        let found = self.shown(number, finding, plan, rate);
        let colon = if self.options.output_dir.is_none() {
            ":"
        } else {
            ""
        };
        let (steps, rate) = (found.steps, found.rate);
        self.say(&format!("  shown by {steps} steps in {rate}{colon}"))?;
        self.write(&found)?;
        self.explored.found.push(found);
        interruption.map_or(Ok(()), Err)
    }

    fn announce_finding(&mut self, number: u64, walk: &Walk, finding: &Finding) -> io::Result<()> {
        let steps = size(&walk.plan);
        self.say("")?;
        self.say(&format!("walk {number} of {steps} steps: {}", finding.key))?;
        let (expected, actual) = &finding.words;
        if expected.is_empty() {
            self.say(&format!("  {actual}"))?;
        } else {
            self.say(&format!("  expected  {expected}"))?;
            self.say(&format!("  actual    {actual}"))?;
        }
        self.out.flush()
    }

    /// The case that shows a finding.
    fn shown(&self, number: u64, finding: Finding, plan: Plan, rate: Rate) -> NewFinding {
        let (expected, actual) = &finding.words;
        let why = if expected.is_empty() {
            format!("Seen in {rate}: {actual}")
        } else {
            format!("Seen in {rate}: {actual}, where {expected} is expected.")
        };
        let sentence = if finding.sentence.ends_with('.') && !finding.sentence.contains('\n') {
            finding.sentence.clone()
        } else {
            "All calls succeed that must, and all rules are kept.".to_owned()
        };
        let only = match &finding.key {
            Key::Broken { rule, kind } => Some(Focus {
                kind: *kind,
                name: finding.name.clone(),
                by_invariant: rule.is_some(),
            }),
            Key::Undecided(_) => None,
        };
        let times = rate.repetitions();
        let count = u32::try_from(self.explored.found.len()).unwrap_or(u32::MAX);
        let header = Header {
            number: (count + 1).min(99),
            name: file_name(&finding.key, count + 1),
            title: sentence,
            why,
            source: self.origin(number),
            silent: is_silent(number),
            repeat: (times > 1).then_some(times),
            only,
        };
        let steps = size(&plan);
        let case = walk(plan, &self.testbed.can, &header).case.definition;
        NewFinding {
            finding,
            walk: number,
            steps,
            rate,
            case,
        }
    }

    fn write(&mut self, found: &NewFinding) -> Result<(), ExploreError> {
        let Some(directory) = &self.options.output_dir else {
            for line in found.case.lines() {
                self.say(&format!("    {line}"))?;
            }
            return Ok(());
        };
        let count = u32::try_from(self.explored.found.len()).unwrap_or(u32::MAX);
        let folder = directory.join(super::text::FOLDER);
        files::create_directory("cases", directory)?;
        files::create_directory("cases", &folder)?;
        let name = file_name(&found.finding.key, count + 1);
        let path = folder.join(format!("{name}.yaml"));
        let draft = Draft::open("case", &path)?;
        draft.complete(|file| file.write_all(found.case.as_bytes()))?;
        self.say(&format!("  case     {}", path.display()))?;
        if let Some(history) = history_of(self.options, found.walk) {
            self.say(&format!("  history  {}", history.display()))?;
        }
        Ok(())
    }

    fn conclude(&mut self, requirements: &[Requirement]) -> io::Result<()> {
        let ids: BTreeSet<&str> = INVARIANTS
            .iter()
            .flat_map(|invariant| invariant.requirements.iter().copied())
            .collect();
        let ids: Vec<String> = requirements
            .iter()
            .map(|requirement| requirement.id.clone())
            .filter(|id| ids.contains(id.as_str()))
            .collect();
        self.explored.left = self.testbed.left();
        let Explored {
            walks,
            open,
            found,
            known,
            left,
        } = &self.explored;
        let mut lines = vec![String::new()];
        let coverage = self.coverage.text(&ids);
        lines.extend(coverage.trim_end().lines().map(str::to_owned));
        let known = known.iter();
        lines.extend(known.map(|(known, walks)| format!("known, in {walks} walks: {known}")));
        lines.extend(left.iter().cloned());
        let walks = counted(
            usize::try_from(*walks).unwrap_or(usize::MAX),
            "walk",
            "walks",
        );
        let found = counted(found.len(), "new finding", "new findings");
        lines.push(format!("{walks}, {open} of them inconclusive; {found}"));
        if let Some(why) = self.explored.undecided() {
            lines.push(format!("exit code 3: {why}"));
        }
        lines.iter().try_for_each(|line| self.say(line))
    }
}

/// The words of needs, as cases have them.
fn words(needs: Vec<Need>) -> impl Iterator<Item = String> {
    let values = needs
        .into_iter()
        .filter_map(|need| serde_json::to_value(need).ok());
    values.filter_map(|need| need.as_str().map(str::to_owned))
}

/// Whether only the steps of a walk make calls: some changes a runtime notices only at a call,
/// which other walks would hide.
fn is_silent(number: u64) -> bool {
    const ONE_OF: u64 = 4;
    number % ONE_OF == ONE_OF - 1
}

/// The file of the history of a walk, if histories are kept.
fn history_of(options: &ExploreOptions, number: u64) -> Option<PathBuf> {
    let directory: &Path = options.output_dir.as_deref()?;
    files::create_directory("histories", directory).ok()?;
    Some(directory.join(format!("walk-{number}.binpb")))
}

/// The name of the case that shows a finding.
fn file_name(key: &Key, number: u32) -> String {
    let key = match key {
        Key::Broken { rule, kind } => {
            let rule = rule.as_ref().map(|rule| format!("{rule}-"));
            format!("{}{}", rule.unwrap_or_default(), kind.key()).to_lowercase()
        }
        Key::Undecided(_) => "undecided".to_owned(),
    };
    format!("found-{number}-{key}")
}
