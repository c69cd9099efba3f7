//! What the suite says of itself: the defects that it must notice, and that it does.

use std::fmt::Write as _;
use std::num::NonZeroUsize;

use super::Fault;
use crate::case::{Case, Defect, load};
use crate::matrix::{MatrixOptions, matrix as try_all};
use crate::model::fault_named;
use crate::run::{self, Exit, RunError, Target};
use crate::terminal;

/// The defects that the suite must notice.
pub(super) fn defects() -> Result<Vec<Defect>, Fault> {
    let defects = load::defects().map_err(load::LoadError::from);
    Ok(defects.map_err(RunError::from)?)
}

/// All defects, as a text.
pub(super) fn listed() -> Result<String, Fault> {
    let mut text = String::new();
    for defect in defects()? {
        let (breaks, by) = (defect.requirements.join(" "), defect.noticed_by.join(" "));
        let hook = fault_named(&defect.name);
        let on_the_way = if hook.is_some_and(|hook| hook.fault.is_on_the_way()) {
            "; --inject, too"
        } else {
            ""
        };
        let _ = writeln!(text, "{}\n    {}", defect.name, defect.description);
        let _ = writeln!(text, "    like {}", defect.similar_to);
        let _ = writeln!(text, "    breaks {breaks}, noticed by {by}{on_the_way}");
    }
    Ok(text)
}

/// Tries all of them and says how that went.
pub(super) fn matrix(
    options: &MatrixOptions,
    target: Option<Target>,
    cases: &[Case],
) -> Result<Exit, Fault> {
    /// A real runtime takes its time, and we wait for it.
    const RELAYED: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = if target.is_some() {
        RELAYED
    } else {
        processors
    };
    let known = options.expectations.as_deref();
    let known = known
        .map(|path| run::read_expectations(path, cases))
        .transpose()?;
    let options = MatrixOptions {
        target,
        known,
        threads,
        ..options.clone()
    };
    let tried = try_all(&options, cases, &defects()?, &mut terminal::Output);
    let tried = tried.map_err(|fault| Fault::new(Exit::Usage, format!("error: {fault}")))?;
    Ok(if tried.holds() {
        Exit::Conformant
    } else {
        Exit::NonConformant
    })
}
