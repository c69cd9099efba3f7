//! A page about one thing: its name, a sentence, and sections under headings.

use super::printable::{printable, wrap};

/// Columns that text is wrapped at.
const WIDTH: usize = 96;

/// A page that grows section by section. An empty section is left out.
#[derive(Clone, Debug)]
pub struct Sheet(String);

impl Sheet {
    /// A page with this title, and a sentence about its subject.
    #[must_use]
    pub fn new(name: &str, sentence: &str) -> Self {
        let mut sheet = Self(format!("{}\n", printable(name)));
        sheet.line("  ", sentence, 2);
        sheet
    }

    /// Running text.
    pub fn paragraph(&mut self, heading: &str, text: &str) {
        if !text.trim().is_empty() {
            self.heading(heading);
            self.line("  ", text, 2);
        }
    }

    /// A list.
    pub fn items(&mut self, heading: &str, items: &[impl AsRef<str>]) {
        if items.is_empty() {
            return;
        }
        self.heading(heading);
        for item in items {
            self.line("  - ", item.as_ref(), 4);
        }
    }

    /// Lines as they are.
    pub fn verbatim(&mut self, heading: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.heading(heading);
        for line in text.lines() {
            let line = printable(line);
            self.0.extend(["  ", &*line, "\n"]);
        }
    }

    /// The page.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }

    fn heading(&mut self, heading: &str) {
        self.0.extend(["\n", heading, "\n"]);
    }

    fn line(&mut self, start: &str, text: &str, indent: usize) {
        self.0.push_str(start);
        wrap(&mut self.0, text.trim(), WIDTH, indent);
        self.0.push('\n');
    }
}
