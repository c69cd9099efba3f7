//! A Markdown page as GitHub and GitLab show it: headings, paragraphs and tables; and a page about
//! one subject, as text for a terminal, too.
//!
//! One invariant: text is shown verbatim. Nothing in it becomes a link, a tag, a mention or the end
//! of a table's cell, except addresses such as `https://…`, which become links to themselves.

use super::printable::{cut, printable};
use super::text::Text;

/// The maximum length of a text in a cell or a paragraph, in characters.
const TEXT: usize = 400;

/// The maximum number of rows of a table.
const ROWS: usize = 500;

#[derive(Clone, Debug, Default)]
pub struct Markdown(String);

/// A page about one subject: its name, a sentence, and sections under headings. An empty section is
/// omitted.
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

impl Markdown {
    /// A heading; `level` is 1 for that of a whole document.
    pub fn heading(&mut self, level: usize, text: &str) {
        let marks = "#".repeat(level);
        self.0.extend([&*marks, " ", &shown(text), "\n\n"]);
    }

    pub fn paragraph(&mut self, text: &str) {
        self.0.extend([&*shown(text), "\n\n"]);
    }

    pub fn items(&mut self, items: impl IntoIterator<Item = impl AsRef<str>>) {
        for item in items {
            self.0.extend(["* ", &*shown(item.as_ref()), "\n"]);
        }
        self.0.push('\n');
    }

    /// A list of links to other pages: titles, and the names of the pages.
    pub fn links<'a>(&mut self, links: impl IntoIterator<Item = (&'a str, &'a str)>) {
        for (title, page) in links {
            self.0.extend(["* [", &*shown(title), "](", page, ".md)\n"]);
        }
        self.0.push('\n');
    }

    /// A table; line breaks in a cell are kept.
    pub fn table(
        &mut self,
        header: &[impl AsRef<str>],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        self.row(header);
        self.0.extend(["|", &"---|".repeat(header.len()), "\n"]);
        let mut more = 0_usize;
        for (place, row) in rows.into_iter().enumerate() {
            if place < ROWS {
                self.row(&row);
            } else {
                more += 1;
            }
        }
        self.0.push('\n');
        if more > 0 {
            self.paragraph(&format!("… {more} more rows"));
        }
    }

    /// The content added by `fill`, collapsed by default.
    pub fn folded(&mut self, title: &str, fill: impl FnOnce(&mut Self)) {
        let open = "<details><summary>";
        self.0.extend([open, &*shown(title), "</summary>\n\n"]);
        fill(self);
        self.0.push_str("</details>\n\n");
    }

    pub fn into_text(self) -> String {
        let mut text = self.0;
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    fn row(&mut self, cells: &[impl AsRef<str>]) {
        self.0.push('|');
        for cell in cells {
            let lines: Vec<_> = cell.as_ref().split('\n').map(shown).collect();
            self.0.extend([" ", &*lines.join("<br>"), " |"]);
        }
        self.0.push('\n');
    }
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

    /// The page as text for a terminal with these columns.
    pub fn into_text(self, columns: usize) -> String {
        let mut text = Text::new(columns);
        let line = |text: &mut Text, start: &str, words: &str, indent| {
            text.out.push_str(start);
            text.line(words.trim(), indent);
        };
        line(&mut text, "", &self.name, 0);
        line(&mut text, "  ", &self.sentence, 2);
        for (heading, content) in &self.sections {
            line(&mut text, "\n", heading, 0);
            match content {
                Content::Paragraph(paragraph) => line(&mut text, "  ", paragraph, 2),
                Content::Items(items) => items
                    .iter()
                    .for_each(|item| line(&mut text, "  - ", item, 4)),
                Content::Verbatim(lines) => {
                    let lines = lines.lines().map(printable);
                    lines.for_each(|line| text.out.extend(["  ", &*line, "\n"]));
                }
            }
        }
        text.out
    }

    /// The page as Markdown; `is_page` returns whether a page of this name exists beside it.
    pub fn into_markdown(self, is_page: impl Fn(&str) -> bool) -> String {
        let shown = |text: &str| linked(text);
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
                Content::Verbatim(lines) => page.push_str(&fenced(lines)),
            }
        }
        page
    }

    fn section(&mut self, heading: &str, content: Content) {
        self.sections.push((heading.to_owned(), content));
    }
}

/// The suite's own text, escaped, with addresses and names of issues such as `owner/name#12` as
/// links.
fn linked(text: &str) -> String {
    let is_around = |letter: char| "(),;".contains(letter) || letter.is_whitespace();
    let words = text.split_inclusive(is_around).map(|part| {
        let word = part.trim_end_matches(is_around);
        let end = &part[word.len()..];
        match address(word) {
            Some(address) if address == word => format!("<{word}>{end}"),
            Some(address) => format!("[{word}]({address}){end}"),
            None => escaped(part),
        }
    });
    words.collect()
}

/// The address of a word, if it has one.
fn address(word: &str) -> Option<String> {
    if word.starts_with("https://") {
        return Some(word.to_owned());
    }
    let (repository, number) = word.split_once('#')?;
    let is_name = |name: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        !name.is_empty() && name.chars().all(is_letter)
    };
    let (owner, name) = repository.split_once('/')?;
    let is_issue = is_name(owner) && is_name(name) && number.parse::<u32>().is_ok();
    is_issue.then(|| format!("https://github.com/{repository}/issues/{number}"))
}

/// Verbatim lines of any content.
fn fenced(lines: &str) -> String {
    let runs = lines.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", lines.trim_end())
}

/// The text, truncated and escaped.
fn shown(text: &str) -> String {
    escaped(&cut(text, TEXT))
}

/// The text with all Markdown characters escaped.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        // Between letters it emphasizes nothing, and belongs to many an address.
        let is_within = |beside: char| beside.is_alphanumeric();
        let within = is_within(before) && letters.peek().copied().is_some_and(is_within);
        match letter {
            '_' if within => {}
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '$' => {
                safe.push('\\');
            }
            _ => {}
        }
        safe.push(letter);
        if letter == '@' {
            // Or the user of this name would be notified.
            safe.push_str("<!-- -->");
        }
        before = letter;
    }
    // At the beginning of a line these make it a heading, a list or a rule.
    if safe.starts_with(['#', '+', '-', '=']) {
        safe.insert(0, '\\');
    }
    safe
}

fn capitalized(heading: &str) -> String {
    let mut letters = heading.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::AWKWARD;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn what_has_a_meaning_in_markdown_is_escaped() {
        check("a|b", r"a\|b");
        check(
            "<img src=x> **b** `c` [d](e) &amp; ~f~ $g$ h\\",
            r"\<img src=x\> \*\*b\*\* \`c\` \[d\](e) \&amp; \~f\~ \$g\$ h\\",
        );
        check("# no heading", r"\# no heading");
        check("- no list", r"\- no list");
        check("image@sha256", "image@<!-- -->sha256");
    }

    #[test]
    fn what_has_none_stays() {
        check(
            "order::created, 3 of 20: c#4",
            "order::created, 3 of 20: c#4",
        );
        let link = "https://github.com/o/r/blob/v2.1.9/core/container_events.go#L35-L43";
        check(link, link);
        check("_a_ a_", r"\_a\_ a\_");
    }

    #[test]
    fn a_cell_holds_whatever_it_is_given() {
        let mut page = Markdown::default();
        page.table(
            &["one", "two"],
            [vec![AWKWARD.to_owned(), "a\n|b".to_owned()]],
        );
        let text = page.into_text();
        let rows: Vec<_> = text.lines().collect();
        assert_eq!(rows.len(), 3, "{text}");
        assert_eq!(rows[..2], ["| one | two |", "|---|---|"]);
        assert!(rows[2].ends_with(r"| a<br>\|b |"), "{text}");
        assert!(rows[2].contains(r"\<b\>\&amp;"), "{text}");
    }

    #[test]
    fn a_page_stays_readable_whatever_there_is() {
        let mut page = Markdown::default();
        let rows = (0..10_000).map(|_| vec!["word ".repeat(10_000)]);
        page.table(&["text"], rows);
        let text = page.into_text();
        assert!(text.len() < 512 << 10);
        assert!(text.ends_with("\n… 9500 more rows\n"));
    }

    #[test]
    fn a_sheet_is_text_and_markdown() {
        let mut sheet = Sheet::new("A-01 area::name", "It <b>holds</b>.");
        sheet.items("requirements", &["R1 A first one.", "R2 another", "r1: x"]);
        sheet.items("sources", &["https://example.org/a_b, o/r#12 (why)"]);
        sheet.items("nothing", &[] as &[&str]);
        sheet.verbatim("definition", "steps: ```\n");
        assert_eq!(
            sheet.clone().into_text(100),
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
