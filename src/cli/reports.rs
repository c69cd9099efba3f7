//! The commands `compare` and `schema`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Fault;
use crate::case;
use crate::escape::printable_json;
use crate::report::{Comparison, Incomparable, json};
use crate::run::Exit;
use crate::watch::Output;

/// The maximum size of a report.
const LARGEST_REPORT: u64 = 256 << 20;

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The earlier report
    before: PathBuf,
    /// The later one
    after: PathBuf,
    /// How to print; json is one object
    #[arg(long, value_enum, default_value_t = Output::Text)]
    format: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaArg {
    /// A case, as --cases reads it
    Case,
    /// A report, as --json writes it
    Report,
}

/// Compares two reports; returns the text to print and the exit code.
pub(super) fn compare(args: &CompareArgs) -> Result<(String, Exit), Fault> {
    let fault = |path: &Path, fault: &str| {
        let message = format!("error: compare the report {}: {fault}", path.display());
        Fault::new(Exit::Usage, message)
    };
    let texts =
        [&args.before, &args.after].map(|path| read(path).map_err(|cause| fault(path, &cause)));
    let [before, after] = texts;
    let compared = Comparison::of(&before?, &after?).map_err(|cause| match cause {
        Incomparable::Before(cause) => fault(&args.before, &cause),
        Incomparable::After(cause) => fault(&args.after, &cause),
    })?;
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

/// The JSON Schema of a file.
pub(super) fn schema(of: SchemaArg) -> String {
    match of {
        SchemaArg::Case => pretty(&case::schema()),
        SchemaArg::Report => pretty(&json::schema()),
    }
}

fn pretty(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("it has no keys but texts");
    printable_json(&text).into_owned() + "\n"
}

fn read(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|fault| fault.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(LARGEST_REPORT + 1).read_to_end(&mut bytes);
    read.map_err(|fault| fault.to_string())?;
    if bytes.len() as u64 > LARGEST_REPORT {
        return Err("it is larger than 256 MiB, which no report is".to_owned());
    }
    let no_text = |_| {
        "it is not a JSON report of this suite; `check HISTORY --json FILE` makes one from a \
         history"
            .to_owned()
    };
    String::from_utf8(bytes).map_err(no_text)
}
