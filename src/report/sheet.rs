//! A page about one subject: its name, a sentence, and sections under headings; as text for a
//! terminal, and as Markdown with links to other pages.

use super::markdown;
use super::printable::{printable, wrap};

/// The columns at which text is wrapped.
const WIDTH: usize = 96;

/// A page of sections. An empty section is omitted.
#[derive(Clone, Debug)]
pub struct Sheet {
    name: String,
    sentence: String,
    sections: Vec<(String, Content)>,
}

#[derive(Clone, Debug)]
enum Content {
    Paragraph(String),
    Items(Vec<String>),
    Verbatim(String),
}

impl Sheet {
    pub fn new(name: &str, sentence: &str) -> Self {
        Self {
            name: name.to_owned(),
            sentence: sentence.to_owned(),
            sections: Vec::new(),
        }
    }

    pub fn paragraph(&mut self, heading: &str, text: &str) {
        if !text.trim().is_empty() {
            self.section(heading, Content::Paragraph(text.to_owned()));
        }
    }

    /// A list. In Markdown, an item that begins with the name of another page links to it.
    pub fn items(&mut self, heading: &str, items: &[impl AsRef<str>]) {
        if !items.is_empty() {
            let items = items.iter().map(|item| item.as_ref().to_owned());
            self.section(heading, Content::Items(items.collect()));
        }
    }

    pub fn verbatim(&mut self, heading: &str, text: &str) {
        if !text.trim().is_empty() {
            self.section(heading, Content::Verbatim(text.to_owned()));
        }
    }

    pub fn into_text(self) -> String {
        let mut text = format!("{}\n", printable(&self.name));
        line(&mut text, "  ", &self.sentence, 2);
        for (heading, content) in &self.sections {
            text.extend(["\n", heading, "\n"]);
            match content {
                Content::Paragraph(paragraph) => line(&mut text, "  ", paragraph, 2),
                Content::Items(items) => {
                    for item in items {
                        line(&mut text, "  - ", item, 4);
                    }
                }
                Content::Verbatim(lines) => {
                    for line in lines.lines() {
                        text.extend(["  ", &*printable(line), "\n"]);
                    }
                }
            }
        }
        text
    }

    /// The page as Markdown; `is_page` returns whether a page of this name exists beside it.
    pub fn into_markdown(self, is_page: impl Fn(&str) -> bool) -> String {
        let shown = |text: &str| markdown::linked(text);
        let mut page = format!("# {}\n\n{}\n", shown(&self.name), shown(&self.sentence));
        for (heading, content) in &self.sections {
            page.extend(["\n## ", &*capitalized(heading), "\n\n"]);
            match content {
                Content::Paragraph(paragraph) => page.extend([&*shown(paragraph), "\n"]),
                Content::Items(items) => {
                    for item in items {
                        let end = item.find([' ', ':']).unwrap_or(item.len());
                        let (first, rest) = item.split_at(end);
                        if is_page(first) {
                            page.extend(["* [", first, "](", first, ".md)", &shown(rest), "\n"]);
                        } else {
                            page.extend(["* ", &*shown(item), "\n"]);
                        }
                    }
                }
                Content::Verbatim(lines) => page.push_str(&markdown::fenced(lines)),
            }
        }
        page
    }

    fn section(&mut self, heading: &str, content: Content) {
        self.sections.push((heading.to_owned(), content));
    }
}

fn line(into: &mut String, start: &str, text: &str, indent: usize) {
    into.push_str(start);
    wrap(into, text.trim(), WIDTH, indent);
    into.push('\n');
}

fn capitalized(heading: &str) -> String {
    let mut letters = heading.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_is_text_and_markdown() {
        let mut sheet = Sheet::new("A-01 area::name", "It <b>holds</b>.");
        sheet.items("requirements", &["R1 A first one.", "R2 another", "r1: x"]);
        sheet.items("sources", &["https://example.org/a_b, o/r#12 (why)"]);
        sheet.items("nothing", &[] as &[&str]);
        sheet.verbatim("definition", "steps: ```\n");
        assert_eq!(
            sheet.clone().into_text(),
            "A-01 area::name\n  It <b>holds</b>.\n\nrequirements\n  - R1 A first one.\n  \
             - R2 another\n  - r1: x\n\nsources\n  - https://example.org/a_b, o/r#12 (why)\n\n\
             definition\n  steps: ```\n"
        );
        assert_eq!(
            sheet.into_markdown(|name| name == "R1"),
            "# A-01 area::name\n\nIt \\<b\\>holds\\</b\\>.\n\n## Requirements\n\n\
             * [R1](R1.md) A first one.\n* R2 another\n* r1: x\n\n## Sources\n\n\
             * <https://example.org/a_b>, [o/r#12](https://github.com/o/r/issues/12) (why)\n\n\
             ## Definition\n\n````\nsteps: ```\n````\n"
        );
    }
}
