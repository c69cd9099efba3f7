//! JSON documents one after another, with other lines between and around them, as `kubectl logs`
//! prints the output of many pods.
//!
//! A document begins in a line that begins with `{`, and ends with the brace that closes it. Each
//! line may have the prefix of `kubectl logs --prefix`, `[pod/NAME/CONTAINER] `; the lines of
//! several pods may alternate. Only the text of documents that have begun is retained.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

/// A document, and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The name of the pod that printed it, if its lines have it.
    pub pod: Option<String>,
    /// The number of its first line, from 1.
    pub line: usize,
    pub text: String,
}

/// The reason why the rest of the documents cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BrokenInput {
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    #[error("a document and its line {line} are larger than {} MiB", .limit >> 20)]
    TooLarge { line: usize, limit: usize },
    #[error(
        "line {0} is no text; a JSON report is made from a history by `check HISTORY --json FILE`"
    )]
    NotText(usize),
    #[error(
        "the document that begins in line {begins} breaks off before line {ends}: fetch that log or \
         report again, or remove these lines"
    )]
    BreaksOff { begins: usize, ends: usize },
}

/// The documents of an input, one by one.
#[derive(Debug)]
pub struct Documents<R> {
    input: R,
    /// The maximum size in bytes of a line, and of all documents that have begun.
    limit: usize,
    line: usize,
    /// The beginning of the first line.
    beginning: String,
    /// The rest of the current line, after a document.
    rest: String,
    /// The documents that have begun, by the prefix of their lines.
    open: BTreeMap<String, Open>,
}

#[derive(Debug, Default)]
struct Open {
    line: usize,
    text: String,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The number of lines that begin with `"format"`, which only the beginning of a report has.
    formats: usize,
}

impl<R: BufRead> Documents<R> {
    pub fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            line: 0,
            beginning: String::new(),
            rest: String::new(),
            open: BTreeMap::new(),
        }
    }

    /// The beginning of the first line, from which an input without documents is recognized.
    pub fn beginning(&self) -> &str {
        &self.beginning
    }

    /// The next document; `None` at the end of the input.
    pub fn read(&mut self) -> Result<Option<Found>, BrokenInput> {
        loop {
            let line = std::mem::take(&mut self.rest);
            if !line.is_empty() {
                if let Some(found) = self.push(&line)? {
                    return Ok(Some(found));
                }
                continue;
            }
            let (number, limit) = (self.line + 1, self.limit);
            let mut bytes = Vec::new();
            let mut line = (&mut self.input).take(limit as u64 + 1);
            if line.read_until(b'\n', &mut bytes)? == 0 {
                let open = self.open.values().map(|it| it.line).min();
                return match open {
                    Some(begins) => Err(BrokenInput::BreaksOff {
                        begins,
                        ends: number,
                    }),
                    None => Ok(None),
                };
            }
            self.line = number;
            let retained: usize = self.open.values().map(|it| it.text.len()).sum();
            if retained + bytes.len() > limit {
                let line = number;
                return Err(BrokenInput::TooLarge { line, limit });
            }
            self.rest = match String::from_utf8(bytes) {
                Ok(line) => line,
                Err(_) if number > 1 && self.open.is_empty() => continue,
                Err(_) => return Err(BrokenInput::NotText(number)),
            };
            if number == 1 {
                self.beginning = self.rest.chars().take(100).collect();
            }
        }
    }

    /// Adds a line, or the rest of one, to its document.
    fn push(&mut self, line: &str) -> Result<Option<Found>, BrokenInput> {
        let (prefix, mut text) = prefixed(line);
        if !self.open.contains_key(prefix) {
            text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            if !text.starts_with('{') {
                return Ok(None);
            }
            let open = Open {
                line: self.line,
                ..Open::default()
            };
            self.open.insert(prefix.to_owned(), open);
        }
        let open = self.open.get_mut(prefix).expect("it is there or inserted");
        // Standard error is among the lines of a log.
        if open.depth > 0 && text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(None);
        }
        let key = text.trim_start().trim_start_matches('{').trim_start();
        open.formats += usize::from(key.starts_with("\"format\":"));
        let end = open.scan(text);
        if open.in_string || open.formats > 1 {
            return Err(BrokenInput::BreaksOff {
                begins: open.line,
                ends: self.line + usize::from(open.in_string),
            });
        }
        let Some(end) = end else {
            open.text.push_str(text);
            return Ok(None);
        };
        let mut open = self.open.remove(prefix).expect("it was found");
        open.text.push_str(&text[..end]);
        let pod = prefix.split('/').nth(1).map(str::to_owned);
        text[end..].trim_start().clone_into(&mut self.rest);
        Ok(Some(Found {
            pod,
            line: open.line,
            text: open.text,
        }))
    }
}

impl Open {
    /// The end of the document, if it is in this line.
    fn scan(&mut self, line: &str) -> Option<usize> {
        for (at, byte) in line.bytes().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => self.depth += 1,
                b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// The prefix of a line of `kubectl logs --prefix` without its brackets, and the rest of the line.
fn prefixed(line: &str) -> (&str, &str) {
    let inner = line.strip_prefix('[').filter(|it| it.starts_with("pod/"));
    inner
        .and_then(|inner| inner.split_once("] "))
        .unwrap_or(("", line))
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Checks the documents of an input, each as `pod line text`, and the error that ends them.
    #[track_caller]
    fn check(input: &str, expected: &Expect) {
        let mut documents = Documents::new(input.as_bytes(), 100);
        let mut lines = Vec::new();
        let fault = loop {
            match documents.read() {
                Ok(Some(Found { pod, line, text })) => {
                    let pod = pod.unwrap_or_else(|| "-".to_owned());
                    lines.push(format!("{pod} {line} {}", text.replace('\n', "⏎")));
                }
                Ok(None) => break None,
                Err(fault) => break Some(fault.to_string()),
            }
        };
        lines.extend(fault);
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn documents_are_found_between_other_lines() {
        let input =
            "begun\n{\"a\": \"}\\\"{\"}\n\n  note {}\n{\n  \"b\": {}\nJSON report: -\n}\nend\n";
        check(
            input,
            &expect![[r#"
                - 2 {"a": "}\"{"}
                - 5 {⏎  "b": {}⏎}"#]],
        );
        check(
            "{}{}\n\u{feff}{} ",
            &expect![[r#"
                - 1 {}
                - 1 {}
                - 2 {}"#]],
        );
        check("", &expect![""]);
    }

    #[test]
    fn lines_of_pods_may_alternate() {
        let input =
            "[pod/a-1/watch] {\n[pod/b-2/watch] {\n[pod/a-1/watch] }\n[pod/b-2/watch] \"c\": 1}\n";
        check(
            input,
            &expect![[r#"
                a-1 1 {⏎}
                b-2 2 {⏎"c": 1}"#]],
        );
    }

    #[test]
    fn a_document_that_breaks_off_is_named_with_its_lines() {
        let whole = "{\n  \"format\": 1\n}\n";
        let ends = "fetch that log or report again, or remove these lines";
        for (begun, place) in [
            (
                "{\n  \"format\": 1,\n",
                "begins in line 4 breaks off before line 7",
            ),
            (
                "{\"format\": 1,\n",
                "begins in line 4 breaks off before line 6",
            ),
        ] {
            let input = format!("{whole}{begun}{whole}");
            let mut documents = Documents::new(input.as_bytes(), 100);
            documents.read().expect("the first is whole");
            let fault = documents.read().expect_err("the second is not").to_string();
            assert_eq!(fault, format!("the document that {place}: {ends}"));
        }
        check(
            "{\"a\": \"b\n{}\n",
            &expect![
                "the document that begins in line 1 breaks off before line 2: fetch that log or report again, or remove these lines"
            ],
        );
        check(
            "x\n{\n",
            &expect![
                "the document that begins in line 2 breaks off before line 3: fetch that log or report again, or remove these lines"
            ],
        );
    }

    #[test]
    fn lines_and_open_documents_are_limited() {
        let long = "x".repeat(101);
        check(
            &long,
            &expect!["a document and its line 1 are larger than 0 MiB"],
        );
        let lines = "[pod/a/c] {\n".to_owned() + &"[pod/b/c] {\n 1,\n".repeat(60);
        let mut documents = Documents::new(lines.as_bytes(), 100);
        assert!(matches!(
            documents.read(),
            Err(BrokenInput::TooLarge { .. })
        ));
    }
}
