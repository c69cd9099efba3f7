//! What walks on the model prove: each defect that concerns events is found and shrunk, and nothing
//! is found without one.
//!
//! `EXPLORE_WALKS=10000 cargo test --test explore` proves all of it, with so many walks on each
//! variation of a correct model. Without the variable it takes a share that is the same each time:
//! some walks on each variation, and one defect of several.

mod beyond;

use std::io;
use std::process::ExitCode;

use cri_event_conformance::testing::case::load;
use cri_event_conformance::testing::drive::{Allowance, DriveOptions};
use cri_event_conformance::testing::explore::{ExploreOptions, Explored, explore};
use cri_event_conformance::testing::model::{Behaviour, NamedFault, VARIATIONS, faults};
use cri_event_conformance::testing::run::Target;
use libtest_mimic::{Arguments, Failed, Trial};

use beyond::{BEYOND_WALKS, MORE_STEPS};

/// The walks within which every defect is found that walks can find.
const WALKS_TO_FIND: u64 = 400;
/// The explorations that try to find a defect, one after the other.
const SEEDS: [u64; 3] = [1, 2, 3];
/// The steps to which what is found is shrunk at most.
const STEPS: usize = 6;
/// The walks on each variation of a correct model, unless it is said how many.
const CLEAN_WALKS: u64 = 3;
/// One defect of so many is proven then, in the order of their tables.
const ONE_OF: usize = 64;

fn main() -> ExitCode {
    let walks = std::env::var("EXPLORE_WALKS").ok();
    let walks = walks.map(|walks| walks.parse().expect("EXPLORE_WALKS is a number"));
    let one_of = if walks.is_some() { 1 } else { ONE_OF };
    let mut trials = Vec::new();
    for (variation, change) in VARIATIONS {
        let name = format!("clean::{}", variation.replace(' ', "-"));
        let walks = walks.unwrap_or(CLEAN_WALKS);
        trials.push(Trial::test(name, move || silent(*change, walks)));
    }
    for (place, defect) in faults().enumerate() {
        if place % one_of != 0 {
            continue;
        }
        let beyond = BEYOND_WALKS.iter().any(|(name, _)| *name == defect.name);
        if beyond {
            let name = format!("beyond::{}", defect.name);
            trials.push(Trial::test(name, move || not_found(defect)));
        } else {
            let name = format!("defect::{}", defect.name);
            trials.push(Trial::test(name, move || found(defect)));
        }
    }
    let listed = BEYOND_WALKS.iter().map(|(name, _)| *name);
    for name in listed.chain(MORE_STEPS.iter().map(|(name, ..)| *name)) {
        let known = faults().any(|defect| defect.name == name);
        assert!(known, "there is no defect `{name}`");
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

/// A defect is found soon by one of a few explorations, and what is found is small.
fn found(defect: NamedFault) -> Result<(), Failed> {
    let more = MORE_STEPS.iter().find(|(name, ..)| *name == defect.name);
    let most = more.map_or(STEPS, |(_, most, _)| *most);
    let mut shown = String::from("no walk has found it");
    let mut fewest = None;
    for seed in SEEDS {
        let options = ExploreOptions {
            seed: Some(seed),
            walks: Some(WALKS_TO_FIND),
            fail_fast: true,
            ..options()
        };
        let explored = take_walks(&options, with(defect))?;
        let Some(found) = explored.found.first() else {
            continue;
        };
        if fewest.is_none_or(|fewest| found.steps < fewest) {
            fewest = Some(found.steps);
            shown = format!("{} steps show it:\n{}", found.steps, found.case);
        }
        if found.steps <= STEPS {
            break;
        }
    }
    match (fewest, more) {
        (Some(..=STEPS), Some(_)) => {
            Err(format!("it needs no place in MORE_STEPS: {shown}").into())
        }
        (Some(fewest), _) if fewest <= most => Ok(()),
        _ => Err(shown.into()),
    }
}

/// A defect of which it is said that walks cannot find it is not found.
fn not_found(defect: NamedFault) -> Result<(), Failed> {
    let options = ExploreOptions {
        walks: Some(WALKS_TO_FIND),
        fail_fast: true,
        no_shrink: true,
        ..options()
    };
    // Where no walk can be taken, none can find anything.
    let Ok(explored) = take_walks(&options, with(defect)) else {
        return Ok(());
    };
    match explored.found.first() {
        None => Ok(()),
        Some(found) => {
            let (walk, key) = (found.walk, &found.finding.key);
            Err(format!("walk {walk} finds {key}: it needs no place in BEYOND_WALKS").into())
        }
    }
}

fn with(defect: NamedFault) -> Behaviour {
    let mut behaviour = Behaviour::default();
    defect.fault.apply(&mut behaviour);
    behaviour
}

fn options() -> ExploreOptions {
    ExploreOptions {
        seed: SEEDS.first().copied(),
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
