//! Pages of HTML for people: a run with its failures as sequence diagrams, many reports side by
//! side, and figures as charts.
//!
//! A page is one self-contained file: it includes its style and its script, loads nothing, and can
//! be read without the script, which only filters. Its Content-Security-Policy permits that style
//! and that script by their hashes and nothing else. Foreign text is made printable, truncated, and
//! escaped by `maud`, which only this module uses.

mod about;
mod cases;
mod chart;
mod diagram;
mod failure;
mod figures;
mod grid;
mod histogram;
mod matrix;
mod page;
mod requirements;
mod shell;
mod sources;
#[cfg(test)]
mod tests;
mod verdict;

pub use chart::{Chart, ChartRow, Scale};
pub use figures::{Figures, FiguresSection, figures};
pub use matrix::matrix;
pub use page::page;
