//! The matrix as text, Markdown and JSON.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::trial::TrialResult;
use super::{DefectResult, Matrix, MatrixOptions};
use crate::case::{Case, Defect};
use crate::files::{Draft, OutputError};
use crate::report::counted;

/// The reason for a missing matrix.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The list names a defect that the model does not implement.
    #[error("the defect `{0}` has no implementation in src/model/defects")]
    NoHook(String),
    /// No defect and no variation has a name that contains this.
    #[error(
        "no defect and no permitted variation has a name that contains `{0}`; `defects` lists \
         the defects{1}"
    )]
    NoSuchName(String, String),
    /// A table cannot be written to a file.
    #[error(transparent)]
    File(#[from] OutputError),
    /// A table cannot be written to the output.
    #[error("print the matrix: {0}")]
    Output(#[from] std::io::Error),
}

impl Matrix {
    /// Collects the results of all trials, in the order of the defects.
    pub(super) fn from_trials(
        results: Vec<TrialResult>,
        cases: &[Case],
        defects: &[Defect],
    ) -> Self {
        let mut matrix = Self {
            cases: cases.iter().map(|case| case.id.clone()).collect(),
            ..Self::default()
        };
        for result in results {
            match result {
                TrialResult::Clean(clean) => matrix.clean.push(clean),
                TrialResult::Defect(detected) => matrix.defects.push(detected),
            }
        }
        matrix.defects.sort_by_key(|result| {
            defects
                .iter()
                .position(|defect| defect.name == result.defect.name)
        });
        matrix
            .clean
            .sort_by_key(|clean| (clean.variation, clean.seed));
        matrix
    }
}

/// Checks that the tables can be written, before anything runs.
pub(super) fn prepare(options: &MatrixOptions) -> Result<(), MatrixError> {
    let mut paths = [&options.markdown, &options.json].into_iter().flatten();
    paths.try_for_each(|path| to_file(path, ""))
}

pub(super) fn write(
    options: &MatrixOptions,
    matrix: &Matrix,
    out: &mut dyn Write,
) -> Result<(), MatrixError> {
    if let Some(path) = &options.markdown {
        to_file(path, &markdown(matrix))?;
    }
    if let Some(path) = &options.json {
        to_file(path, &format!("{:#}\n", as_json(matrix)))?;
    }
    out.write_all(problems(matrix).as_bytes())?;
    out.write_all(format!("{}\n", summary(matrix)).as_bytes())?;
    Ok(())
}

fn to_file(path: &Path, text: &str) -> Result<(), MatrixError> {
    let draft = Draft::open("matrix", path)?;
    Ok(draft.complete(|out| out.write_all(text.as_bytes()))?)
}

/// The problems, one per line.
fn problems(matrix: &Matrix) -> String {
    let mut text = String::new();
    for noticed in &matrix.defects {
        let name = &noticed.defect.name;
        let failed = match &noticed.failed[..] {
            [] => "nothing failed".to_owned(),
            failed => format!("failed: {}", failed.join(" ")),
        };
        if let Some(fault) = &noticed.fault {
            let _ = writeln!(text, "NOT RUN      {name}: {fault}");
        } else if !noticed.is_listed() && !matrix.are_named {
            // Most defects concern no case of a user.
        } else if !noticed.is_noticed() {
            let missing = match &noticed.missing[..] {
                [] => String::new(),
                missing => format!("not by {}; ", missing.join(", ")),
            };
            let _ = writeln!(text, "UNNOTICED    {name}: {missing}{failed}");
        } else if !noticed.is_precise() {
            let _ = writeln!(text, "IMPRECISE    {name}: {failed}");
        } else if matrix.are_named {
            let _ = writeln!(text, "noticed      {name}: {failed}");
        }
    }
    for case in matrix.never_red() {
        let _ = writeln!(
            text,
            "NEVER FAILS  {case}: no defect that lists it makes it fail"
        );
    }
    for clean in &matrix.clean {
        for alarm in &clean.alarms {
            let (variation, seed) = (clean.variation, clean.seed);
            let _ = writeln!(text, "FALSE ALARM  {variation}, seed {seed}: {alarm}");
        }
    }
    text
}

fn summary(matrix: &Matrix) -> String {
    let noticed = matrix.defects.iter().filter(|noticed| noticed.is_noticed());
    let defects = counted(matrix.defects.len(), "defect", "defects");
    let mut parts = vec![format!("{defects}, {} noticed", noticed.count())];
    if !matrix.cases.is_empty() {
        let cases = counted(matrix.cases.len(), "case", "cases");
        let can_fail = matrix.cases.len() - matrix.never_red().len();
        parts.push(format!("{cases}, {can_fail} can fail"));
    }
    if !matrix.clean.is_empty() {
        let alarms = matrix.clean.iter().map(|clean| clean.alarms.len()).sum();
        let alarms = counted(alarms, "false alarm", "false alarms");
        let runs = counted(matrix.clean.len(), "clean run", "clean runs");
        parts.push(format!("{alarms} in {runs}"));
    }
    parts.join("; ")
}

fn markdown(matrix: &Matrix) -> String {
    let mut text = format!("# Defect matrix\n\n{}.\n\n", summary(matrix));
    text.push_str(
        "| defect | description | similar bug | violates | noticed by | other failures |\n",
    );
    text.push_str("|---|---|---|---|---|---|\n");
    for noticed in &matrix.defects {
        let defect = &noticed.defect;
        let named = |id: &&String| !defect.noticed_by.contains(id);
        let also: Vec<&str> = noticed
            .failed
            .iter()
            .filter(named)
            .map(String::as_str)
            .collect();
        let by = if noticed.is_noticed() {
            defect.noticed_by.join(" ")
        } else {
            format!("**not by {}**", noticed.missing.join(", "))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {by} | {} |",
            defect.name,
            defect.description,
            defect.similar_to,
            defect.requirements.join(" "),
            also.join(" ")
        );
    }
    text.push_str("\nRuns without a defect, in each permitted variation:\n\n");
    text.push_str("| variation | seed | false alarms |\n|---|---|---|\n");
    for clean in &matrix.clean {
        let alarms = clean.alarms.len();
        let _ = writeln!(text, "| {} | {} | {alarms} |", clean.variation, clean.seed);
    }
    text
}

fn as_json(matrix: &Matrix) -> Value {
    let defect = |noticed: &DefectResult| {
        json!({
            "name": noticed.defect.name,
            "what": noticed.defect.description,
            "imitates": noticed.defect.similar_to,
            "requirements": noticed.defect.requirements,
            "shown_in": noticed.defect.shown_in().collect::<Vec<_>>(),
            "noticed_by": noticed.defect.noticed_by,
            "failed": noticed.failed,
            "fault": noticed.fault,
            "noticed": noticed.is_noticed(),
            "precise": noticed.is_precise(),
        })
    };
    let clean = matrix.clean.iter().map(|clean| {
        json!({
            "variation": clean.variation,
            "seed": clean.seed,
            "alarms": clean.alarms,
        })
    });
    json!({
        "version": 1,
        "suite": crate::VERSION,
        "holds": matrix.holds(),
        "defects": matrix.defects.iter().map(defect).collect::<Vec<_>>(),
        "clean": clean.collect::<Vec<_>>(),
        "cases": matrix.cases,
        "never_red": matrix.never_red(),
    })
}
