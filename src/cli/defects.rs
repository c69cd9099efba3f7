//! The commands `defects` and `matrix`.

use std::fmt::Write as _;
use std::num::NonZeroUsize;

use super::Fault;
use crate::case::{Case, Defect, load};
use crate::matrix::{MatrixOptions, matrix as try_all};
use crate::model::fault_named;
use crate::run::{self, Endpoints, Exit, RunError};
use crate::terminal;

pub(super) fn load_defects() -> Result<Vec<Defect>, Fault> {
    let defects = load::defects().map_err(load::LoadError::from);
    Ok(defects.map_err(RunError::from)?)
}

pub(super) fn list() -> Result<String, Fault> {
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
    let known = options
        .expectations
        .as_deref()
        .map(|path| run::read_expectations(path, cases))
        .transpose()?;
    let options = MatrixOptions {
        endpoints,
        known,
        threads,
        ..options.clone()
    };
    let tried = try_all(&options, cases, &load_defects()?, &mut terminal::Output)
        .map_err(|fault| Fault::new(Exit::Usage, format!("error: {fault}")))?;
    Ok(if tried.holds() {
        Exit::Conformant
    } else {
        Exit::NonConformant
    })
}
