//! The commands `compare`, `gate`, `matrix-report`, `schema`, `defects` and `matrix`.

use std::fmt::Write as _;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Fault;
use crate::case::{Case, Defect, load, wrong_value};
use crate::doctor::{self, Diagnosis};
use crate::escape::{printable, printable_json};
use crate::files::{self, Draft, OutputError};
use crate::gate::{self, Policy, Ruling, Unusable};
use crate::matrix::{MatrixOptions, matrix as try_all};
use crate::model::fault_named;
use crate::report::json::Documents;
use crate::report::{Comparison, Document, Fleet, NamedReport, html, json};
use crate::run::{self, Endpoints, Exit, ExpectationSource, Output, RunError};
use crate::{case, measure, terminal};

const LARGEST_REPORT: u64 = 256 << 20;
const LARGEST_POLICY: u64 = 1 << 20;

/// The maximum number of reports of a command: its memory grows with each.
const MOST_REPORTS: usize = 20_000;

/// The path of an input that names standard input.
const STDIN: &str = "-";

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The earlier report
    before: PathBuf,
    /// The later one
    after: PathBuf,
    /// How to print; json is one object
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(super) format: Output,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "cri-event-conformance gate [OPTIONS] --policy <FILE> <REPORT>... \
                      [--baseline <REPORT>...]"
)]
pub(super) struct GateArgs {
    /// The requirements, as YAML
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// The JSON reports of the runs to judge; a file may have several, also between the lines of
    /// `kubectl logs`, and - is standard input
    #[arg(value_name = "REPORT", required = true)]
    reports: Vec<PathBuf>,
    /// The JSON reports of an earlier series of runs, where the policy compares
    #[arg(long, value_name = "REPORT", num_args = 1..)]
    baseline: Vec<PathBuf>,
    /// Also write the table as Markdown, as a pull request shows it
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also write the verdict, and that of each rule, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write a test case for each rule as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct MatrixReportArgs {
    /// The JSON reports, each optionally with a name to show, such as that of its node; a file may
    /// have several, also of doctor and between the lines of `kubectl logs`; - is standard input
    #[arg(value_name = "[NAME=]REPORT", required = true)]
    reports: Vec<PathBuf>,
    /// Write the table as HTML, one file with the evidence of each failure, instead of printing it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How to print; json is one object, without evidence
    #[arg(long, value_enum, default_value_t = Output::Text, conflicts_with = "html")]
    format: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaArg {
    /// A case, as --cases reads it
    Case,
    /// A report, as --json writes it
    Report,
    /// The output of `doctor --format json`
    Doctor,
    /// A policy, as gate reads it
    Policy,
    /// Known failures of a runtime, as --expectations reads them
    Expectations,
}

/// Compares two reports; returns the text to print and the exit code.
pub(super) fn compare(args: &CompareArgs) -> Result<(String, Exit), Fault> {
    let [before, after] = [&args.before, &args.after].map(|path| input(path));
    let compared = Comparison::of(&before?.report, &after?.report);
    let exit = if compared.is_worse() {
        Exit::NonConformant
    } else {
        Exit::Conformant
    };
    let text = match args.format {
        Output::Text => compared.text(),
        Output::Json => pretty(&compared),
    };
    Ok((text, exit))
}

/// The growth of the counts in a file of samples.
pub(super) fn growth(path: &Path) -> Result<String, Fault> {
    let read = read(path).and_then(|samples| measure::growth(&samples));
    read.map_err(|fault| Fault::usage(format!("read the samples {}: {fault}", path.display())))
}

/// Judges reports by a policy; returns the text to print and the exit code.
pub(super) fn gate(args: &GateArgs) -> Result<(String, Exit), Fault> {
    let policy = files::read_text(&args.policy, LARGEST_POLICY).map_err(|fault| fault.to_string());
    let wrong = |fault| {
        let path = args.policy.display();
        Fault::usage(format!("read the policy {path}: {fault}"))
    };
    let text = policy.map_err(wrong)?;
    let policy = Policy::parse(&args.policy, &text).map_err(wrong)?;
    let table = opened("Markdown table", args.markdown.as_deref())?;
    let json = opened("JSON", args.json.as_deref())?;
    let junit = opened("JUnit report", args.junit.as_deref())?;
    let (reports, baseline) = (inputs(&args.reports)?, inputs(&args.baseline)?);
    let gate = gate::judge(&policy, &reports, &baseline).map_err(|fault| match &fault {
        Unusable::UnknownName(name, _) => {
            wrong(wrong_value(&args.policy, &text, name, fault.to_string()))
        }
        _ => Fault::usage(fault),
    })?;
    if let Some(draft) = table {
        draft.complete(|out| out.write_all(gate.markdown().as_bytes()))?;
    }
    if let Some(draft) = json {
        draft.complete(|out| out.write_all(pretty(&gate.json()).as_bytes()))?;
    }
    if let Some(draft) = junit {
        draft.complete(|out| gate.write_junit(out))?;
    }
    let exit = match gate.ruling() {
        Ruling::Pass => Exit::Conformant,
        Ruling::CannotTell => Exit::Undecided,
        Ruling::Fail => Exit::NonConformant,
    };
    Ok((gate.text(), exit))
}

/// Reads the reports that a policy judges.
fn inputs(paths: &[PathBuf]) -> Result<Vec<NamedReport>, Fault> {
    let mut reports = Vec::new();
    for path in paths {
        each_report(None, path, &mut |name, text| {
            let report = Document::parse(text)?.without_evidence();
            reports.push(NamedReport { name, report });
            Ok(reports.len())
        })?;
    }
    Ok(reports)
}

fn input(path: &Path) -> Result<NamedReport, Fault> {
    let report = read(path).and_then(|text| Document::parse(&text));
    let report = report.map_err(|fault| unreadable(path, fault))?;
    let name = printable(&path.display().to_string()).into_owned();
    Ok(NamedReport { name, report })
}

fn unreadable(path: &Path, fault: impl std::fmt::Display) -> Fault {
    Fault::usage(format!("read the report {}: {fault}", path.display()))
}

/// Passes the documents of an input one by one, each with its name, to `add`, which returns the
/// number of all documents. The only one has the given name, or that of the file; one of several
/// that of its node, or else of its pod, or the number of its line behind the file's.
fn each_report(
    given: Option<&str>,
    path: &Path,
    add: &mut impl FnMut(String, &str) -> Result<usize, String>,
) -> Result<(), Fault> {
    let refused = |fault: String| unreadable(path, fault);
    let is_stdin = path == Path::new(STDIN);
    let source = if is_stdin {
        Path::new("/dev/stdin")
    } else {
        path
    };
    let file = files::open(source).map_err(|fault| refused(fault.to_string()))?;
    let limit = usize::try_from(LARGEST_REPORT).unwrap_or(usize::MAX);
    let mut documents = Documents::new(BufReader::new(file), limit);
    let mut read = || documents.read().map_err(|fault| refused(fault.to_string()));
    let shown = path.display().to_string();
    let mut next = read()?;
    if next.is_none() {
        let fault = Document::parse(documents.beginning()).err();
        return Err(refused(fault.unwrap_or_default()));
    }
    let mut read = || documents.read().map_err(|fault| refused(fault.to_string()));
    let mut is_only = true;
    while let Some(found) = next {
        next = read()?;
        is_only &= next.is_none();
        let own = || given.is_none().then(|| json::node(&found.text)).flatten();
        let name = if is_only {
            given.unwrap_or(&shown).to_owned()
        } else if let Some(name) = own().or(found.pod) {
            name
        } else {
            format!("{}:{}", given.unwrap_or(&shown), found.line)
        };
        let added = add(printable(&name).into_owned(), &found.text);
        let place = |fault| match found.line {
            1 => refused(fault),
            line => refused(format!("the document in line {line}: {fault}")),
        };
        if added.map_err(place)? > MOST_REPORTS {
            return Err(refused(format!(
                "there are more than {MOST_REPORTS} reports"
            )));
        }
    }
    Ok(())
}

/// Prints many reports as one page of Markdown or as JSON, or writes them as HTML to a file and
/// returns nothing.
pub(super) fn matrix_report(args: &MatrixReportArgs) -> Result<String, Fault> {
    let draft = opened("HTML table", args.html.as_deref())?;
    let (mut fleet, mut count) = (Fleet::default(), 0);
    for given in &args.reports {
        let (name, path) = match given.to_str().and_then(|text| text.split_once('=')) {
            Some(("", _)) => {
                return Err(Fault::usage(format!(
                    "`{}` has no name before `=`: write NAME=REPORT, or ./=... for a file of that \
                     name",
                    given.display()
                )));
            }
            Some((name, path)) if !name.contains('/') => (Some(name), Path::new(path)),
            _ => (None, &**given),
        };
        each_report(name, path, &mut |name, text| {
            match Document::parse(text) {
                Ok(report) => fleet.add(&NamedReport { name, report }),
                Err(fault) => {
                    let found = serde_json::from_str::<Diagnosis>(text).map_err(|_| fault)?;
                    fleet.add_properties(&name, &found.properties());
                }
            }
            count += 1;
            Ok(count)
        })?;
    }
    let matrix = fleet.matrix();
    match (draft, args.format) {
        (Some(draft), _) => {
            draft.complete(|out| out.write_all(html::matrix(&matrix).as_bytes()))?;
            Ok(String::new())
        }
        (None, Output::Json) => Ok(pretty(&matrix)),
        (None, Output::Text) => Ok(matrix.markdown()),
    }
}

fn opened(what: &'static str, path: Option<&Path>) -> Result<Option<Draft>, OutputError> {
    path.map(|path| Draft::open(what, path)).transpose()
}

pub(super) fn schema(of: SchemaArg) -> String {
    match of {
        SchemaArg::Case => pretty(&case::schema()),
        SchemaArg::Report => pretty(&json::schema()),
        SchemaArg::Doctor => pretty(&doctor::schema()),
        SchemaArg::Policy => pretty(&gate::schema()),
        SchemaArg::Expectations => pretty(&run::expectation_schema()),
    }
}

pub(super) fn diagnosis(diagnosis: &Diagnosis) -> String {
    pretty(diagnosis)
}

fn pretty(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("it has no keys but texts");
    printable_json(&text).into_owned() + "\n"
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = files::read(path, LARGEST_REPORT).map_err(|fault| fault.to_string())?;
    String::from_utf8(bytes).map_err(|_| {
        "it is no text; a JSON report is made from a history by `check HISTORY --json FILE`"
            .to_owned()
    })
}

pub(super) fn load_defects() -> Result<Vec<Defect>, Fault> {
    Ok(load::defects().map_err(load::LoadError::from)?)
}

/// The list of all defects.
pub(super) fn defects() -> Result<String, Fault> {
    let mut text = String::new();
    for defect in load_defects()? {
        let (breaks, by) = (defect.requirements.join(" "), defect.noticed_by.join(" "));
        let hook = fault_named(&defect.name);
        let relayable = if hook.is_some_and(|hook| hook.fault.is_relayable()) {
            "; also with --inject"
        } else {
            ""
        };
        let _ = writeln!(text, "{}\n    {}", defect.name, defect.description);
        let _ = writeln!(text, "    similar to {}", defect.similar_to);
        let _ = writeln!(text, "    violates {breaks}, noticed by {by}{relayable}");
    }
    Ok(text)
}

pub(super) fn matrix(
    options: &MatrixOptions,
    endpoints: Option<Endpoints>,
    cases: &[Case],
) -> Result<Exit, Fault> {
    /// The number of parallel trials on a real runtime: they mostly wait.
    const RELAYED: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = if endpoints.is_some() {
        RELAYED
    } else {
        processors
    };
    let known =
        ExpectationSource::open(options.expectations.as_ref(), cases).map_err(RunError::from)?;
    let options = MatrixOptions {
        endpoints,
        known,
        threads,
        ..options.clone()
    };
    let show = |ended, all| terminal::show_status(&[format!("{ended} of {all} trials have ended")]);
    let defects = load_defects()?;
    let tried = try_all(&options, cases, &defects, &mut terminal::Output, show);
    terminal::show_status(&[]);
    let tried = tried.map_err(Fault::usage)?;
    Ok(if tried.holds() {
        Exit::Conformant
    } else {
        Exit::NonConformant
    })
}
