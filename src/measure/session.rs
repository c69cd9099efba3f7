//! A whole measurement: its session, its table and its files.

use std::path::Path;
use std::sync::Arc;

use super::measurement::Results;
use super::options::{MeasureAllowance, MeasureCommand, MeasureOptions};
use super::{MeasureError, events, pleg, table};
use crate::drive::{Allowance, DriveOptions, Session};
use crate::files::{Draft, OutputError};
use crate::report::printable;
use crate::run::{self, Exit, RunOptions, Surroundings, Target};
use crate::terminal;

/// Executes the selected measurement, prints the table, and removes all that it created. Returns
/// the exit code: undecided if anything could not be measured or removed.
pub fn measure(target: &Target, options: &MeasureOptions) -> Result<Exit, MeasureError> {
    options.check()?;
    let node = options.node();
    let json = draft("measurements", node.json.as_deref())?;
    let html = draft("page of the measurements", node.html.as_deref())?;
    if let (Some(json), Some(html)) = (&json, &html) {
        html.differs_from(json.what(), json.path())?;
    }
    let results = Results::default();
    let work = |session, surroundings| {
        work(
            session,
            surroundings,
            options.command.clone(),
            results.clone(),
        )
    };
    let ended = run::with_session(&session_options(target, options), work)?;
    let mut faults = ended.faults;
    faults.extend(
        ended
            .result
            .and_then(Result::err)
            .map(|fault| fault.to_string()),
    );
    let Some(mut measurement) = results.take() else {
        return Ok(conclude(&faults));
    };
    measurement.faults = faults;
    if let Some(json) = json {
        json.complete(|out| {
            serde_json::to_writer_pretty(&mut *out, &measurement)?;
            out.write_all(b"\n")
        })?;
    }
    if let Some(html) = html {
        html.complete(|out| out.write_all(table::page(&measurement).as_bytes()))?;
    }
    terminal::print(&table::text(&measurement))?;
    Ok(conclude(&measurement.faults))
}

fn draft(what: &'static str, path: Option<&Path>) -> Result<Option<Draft>, OutputError> {
    path.map(|path| Draft::open(what, path)).transpose()
}

async fn work(
    session: Arc<Session>,
    surroundings: Surroundings,
    command: MeasureCommand,
    results: Results,
) -> Result<(), MeasureError> {
    if let Some(reason) = session.no_events() {
        return Err(MeasureError::NoEvents(reason.to_owned()));
    }
    announce(&surroundings);
    results.begin(&surroundings);
    match command {
        MeasureCommand::Events(options) => events::measure(session, options, results).await,
        MeasureCommand::Pleg(options) => pleg::measure(session, options, results).await,
    }
}

/// The options of a run that its session needs.
fn session_options(target: &Target, options: &MeasureOptions) -> RunOptions {
    let node = options.node();
    let allow = node.allow.iter().map(|allowed| match allowed {
        MeasureAllowance::Kubelet => Allowance::Kubelet,
    });
    RunOptions {
        target: target.clone(),
        drive: DriveOptions {
            allow: allow.collect(),
            pods: node.made.clone(),
            ..DriveOptions::default()
        },
        ..RunOptions::default()
    }
}

/// Prints the errors and returns the exit code.
fn conclude(faults: &[String]) -> Exit {
    for fault in faults {
        terminal::say(&format!("error: {fault}"));
    }
    if faults.is_empty() {
        Exit::Conformant
    } else {
        Exit::Undecided
    }
}

/// Prints the subject of the measurement, and the other users of the node.
pub(super) fn announce(surroundings: &Surroundings) {
    let (info, runtime) = (&surroundings.info, &surroundings.info.runtime);
    let how = if surroundings.simulated {
        ", in this process, in simulated time".to_owned()
    } else {
        format!(" at {}", info.endpoint)
    };
    let [name, version] = [&runtime.runtime_name, &runtime.runtime_version].map(|it| printable(it));
    terminal::say(&format!(
        "measuring {name} {version}{how}\nrun {}",
        info.run
    ));
    let foreign = surroundings.foreign_pods;
    if foreign > 0 {
        terminal::say(&format!(
            "this node has {foreign} other pods, which are left alone; the figures include \
             their activity"
        ));
    }
}

/// Shows the current measurement on a terminal.
pub(super) fn progress(doing: &str) {
    if terminal::has_status() {
        terminal::show_status(&[format!("measuring: {doing}")]);
    }
}
