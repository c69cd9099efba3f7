//! The verdict of a gate, rule by rule, as a table.

use std::fmt::{self, Write};

use crate::report::{Markdown, cut};

/// Whether a rule, or all of them, are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    Pass,
    /// The reports do not decide it: they have no such verdict, or too few repetitions.
    CannotTell,
    Fail,
}

/// The result of one policy rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub rule: String,
    pub ruling: Ruling,
    pub required: String,
    pub found: String,
}

/// The results of all rules of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The rules, in the order of the policy.
    pub rows: Vec<Row>,
}

/// The maximum length of a finding, in characters.
const FOUND: usize = 400;

impl Gate {
    pub fn ruling(&self) -> Ruling {
        let rulings = self.rows.iter().map(|row| row.ruling);
        rulings.max().unwrap_or(Ruling::CannotTell)
    }

    /// A line for each rule, and the verdict.
    pub fn text(&self) -> String {
        let widest = |width: fn(&Row) -> usize| self.rows.iter().map(width).max().unwrap_or(0);
        let rule = widest(|row| row.rule.chars().count());
        let required = widest(|row| row.required.chars().count());
        let mut text = String::new();
        for row in &self.rows {
            let (ruling, found) = (row.ruling.to_string(), cut(&row.found, FOUND));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{ruling:<11}  {:<rule$}  {:<required$}  {found}",
                row.rule, row.required
            );
        }
        let _ = writeln!(text, "gate: {}", self.ruling());
        text
    }

    pub fn markdown(&self) -> String {
        let mut page = Markdown::default();
        page.heading(3, &format!("Gate: {}", self.ruling()));
        let rows = self.rows.iter().map(|row| {
            let ruling = row.ruling.to_string();
            let (rule, required) = (row.rule.clone(), row.required.clone());
            vec![ruling, rule, required, row.found.clone()]
        });
        page.table(&["verdict", "rule", "required", "found"], rows);
        page.into_text()
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::CannotTell => "cannot tell",
            Self::Fail => "fail",
        })
    }
}
