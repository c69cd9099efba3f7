//! `--list`: the selected cases.

use std::io::{self, Write};

use serde::Serialize;

use super::Format;
use crate::case::{Levels, Need, Tier};
use crate::plan::{Planned, label};

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    name: &'a str,
    title: &'a str,
    requirements: &'a [String],
    tier: Tier,
    tags: &'a [String],
    levels: Levels,
    needs: &'a [Need],
    exclusive: bool,
    sources: &'a [String],
}

/// One line a case; `json` is one array.
pub(super) fn write(planned: &[Planned], format: Format, out: &mut dyn Write) -> io::Result<()> {
    // Repetitions are one case.
    let cases = planned
        .iter()
        .filter(|planned| planned.repetition.unwrap_or(1) == 1);
    let mut cases: Vec<_> = cases.map(|planned| &planned.case).collect();
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    match format {
        Format::Pretty => {
            let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
            for case in cases {
                writeln!(out, "{}  {:width$}  {}", case.id, case.name, case.title)?;
            }
        }
        Format::Terse => {
            for case in cases {
                writeln!(out, "{}: test", label(&case.id, &case.name))?;
            }
        }
        Format::Json => {
            let lines: Vec<_> = cases
                .iter()
                .map(|case| Line {
                    id: &case.id,
                    name: &case.name,
                    title: &case.title,
                    requirements: &case.requirements,
                    tier: case.tier,
                    tags: &case.tags,
                    levels: case.levels,
                    needs: &case.needs,
                    exclusive: case.exclusive,
                    sources: &case.sources,
                })
                .collect();
            serde_json::to_writer_pretty(&mut *out, &lines)?;
            writeln!(out)?;
        }
    }
    out.flush()
}
