//! What walks on the model prove: each defect that concerns events is found and shrunk, and nothing
//! is found without one. `EXPLORE_WALKS` sets the number of walks without a defect, 10,000 for a
//! release; with fewer a part of the variations is taken, too.

mod beyond;

use std::io;
use std::process::ExitCode;

use cri_event_conformance::case::load;
use cri_event_conformance::drive::{Allowance, DriveOptions};
use cri_event_conformance::explore::{ExploreOptions, Explored, explore};
use cri_event_conformance::model::{Behaviour, VARIATIONS, faults};
use cri_event_conformance::run::Target;
use libtest_mimic::{Arguments, Failed, Trial};

use beyond::{BEYOND_WALKS, MORE_STEPS};

/// The walks within which every defect is found that walks can find.
const WALKS_TO_FIND: u64 = 200;
/// The steps to which what is found is shrunk at most.
const STEPS: usize = 6;
/// Walks without a defect, in all variations together.
const CLEAN_WALKS: u64 = 240;

fn main() -> ExitCode {
    let clean = std::env::var("EXPLORE_WALKS").ok();
    let clean = clean
        .and_then(|walks| walks.parse().ok())
        .unwrap_or(CLEAN_WALKS);
    let each = clean / VARIATIONS.len() as u64;
    let mut trials = Vec::new();
    for (variation, change) in VARIATIONS {
        let name = format!("clean::{}", variation.replace(' ', "-"));
        trials.push(Trial::test(name, move || silent(*change, each)));
    }
    for defect in faults() {
        let beyond = BEYOND_WALKS.iter().any(|(name, _)| *name == defect.name);
        if !beyond {
            let name = format!("defect::{}", defect.name);
            trials.push(Trial::test(name, move || found(defect.name)));
        }
    }
    let known = |name: &str| faults().any(|defect| defect.name == name);
    for (name, _) in BEYOND_WALKS {
        assert!(known(name), "there is no defect `{name}`");
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Nothing is found on a correct runtime.
fn silent(change: fn(&mut Behaviour), walks: u64) -> Result<(), Failed> {
    let mut behaviour = Behaviour::default();
    change(&mut behaviour);
    let options = ExploreOptions {
        walks: Some(walks),
        ..options()
    };
    let explored = take_walks(&options, behaviour)?;
    let alarms = explored
        .found
        .iter()
        .map(|found| format!("walk {}: {}\n{}", found.walk, found.finding.key, found.case));
    let alarms: Vec<String> = alarms.collect();
    match &alarms[..] {
        [] => Ok(()),
        alarms => Err(alarms.join("\n").into()),
    }
}

/// A defect is found soon, and what is found is small.
fn found(name: &'static str) -> Result<(), Failed> {
    let defect = faults().find(|defect| defect.name == name);
    let defect = defect.ok_or("there is no such defect")?;
    let mut behaviour = Behaviour::default();
    defect.fault.apply(&mut behaviour);
    let options = ExploreOptions {
        walks: Some(WALKS_TO_FIND),
        fail_fast: true,
        ..options()
    };
    let explored = take_walks(&options, behaviour)?;
    let found = explored.found.first();
    let found = found.ok_or("no walk has found it")?;
    let more = MORE_STEPS.iter().find(|(more, _)| *more == name);
    if found.steps > more.map_or(STEPS, |(_, steps)| *steps) {
        let (steps, case) = (found.steps, &found.case);
        return Err(format!("it is shown by {steps} steps:\n{case}").into());
    }
    Ok(())
}

fn options() -> ExploreOptions {
    ExploreOptions {
        seed: Some(1),
        drive: DriveOptions {
            allow: vec![Allowance::Disruption],
            ..DriveOptions::default()
        },
        ..ExploreOptions::default()
    }
}

fn take_walks(options: &ExploreOptions, behaviour: Behaviour) -> Result<Explored, Failed> {
    let requirements = load::requirements(None).map_err(|fault| fault.to_string())?;
    let target = Target::model(behaviour, 0);
    Ok(explore(options, &target, &requirements, &mut io::sink())?)
}
