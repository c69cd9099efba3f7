//! Pages of HTML for people: a run with its failures as sequence diagrams, many reports side by
//! side, and figures as charts.
//!
//! A page is one self-contained file: it includes its style and its script, loads nothing, and can
//! be read without the script, which only filters. Its Content-Security-Policy permits that style
//! and that script by their hashes and nothing else. Foreign text is made printable, truncated, and
//! escaped by `maud`, which only this module uses.

mod cases;
mod diagram;
mod failure;
mod figures;
mod histogram;
mod matrix;
mod page;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

pub use figures::{Chart, ChartRow, Figures, FiguresSection, Scale, figures};
pub use matrix::matrix;
pub use page::page;

const STYLE: &str = include_str!("html/style.css");

const SCRIPT: &str = include_str!("html/script.js");

fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string() + "\n"
}

/// Permits the style and the script, and nothing else.
fn policy() -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}
