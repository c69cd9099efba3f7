//! Rust sources for the rules: their code without comments and the content of strings, and the
//! strings without the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Source {
    /// Its path in the repository, such as `src/oracle.rs`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The code: comments and the content of literals are blank.
    pub(crate) code: String,
    /// The content of literals: all else is blank.
    pub(crate) strings: String,
    /// Whether it is compiled only for tests.
    pub(crate) is_test: bool,
}

/// The sources in these directories of the repository.
pub(crate) fn sources(folders: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in folders {
        walk(&root.join(folder), &mut paths);
    }
    paths.sort();
    let mut sources: Vec<Source> = paths.iter().map(|path| Source::read(root, path)).collect();
    let test_modules: BTreeSet<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in &mut sources {
        let module = source.module();
        let within = |test: &String| module == *test || module.starts_with(&format!("{test}/"));
        source.is_test = source.path.starts_with("tests/") || test_modules.iter().any(within);
    }
    sources
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

impl Source {
    fn read(root: &Path, path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a source is UTF-8");
        let path = path.strip_prefix(root).expect("it is below").display();
        let (code, strings) = Lexer::split(&text);
        Self {
            path: path.to_string(),
            text,
            code,
            strings,
            is_test: false,
        }
    }

    /// `src/oracle` for `src/oracle.rs`.
    pub(crate) fn module(&self) -> &str {
        self.path.trim_end_matches(".rs")
    }

    /// `oracle` for all files below `src/oracle`; `None` for the crate's root and its re-exports
    /// for tests.
    pub(crate) fn top(&self) -> Option<&str> {
        let below = self.module().strip_prefix("src/")?;
        let top = below.split('/').next()?;
        (!["lib", "main", "testing"].contains(&top)).then_some(top)
    }

    /// The modules that this file declares only for tests.
    fn test_modules(&self) -> Vec<String> {
        let names = self.for_tests().filter_map(|(_, declared)| {
            let name = declared.strip_suffix(';')?.split("mod ").nth(1)?;
            Some(name.to_owned())
        });
        let parent = match self.module() {
            "src/lib" => "src",
            module => module,
        };
        names.map(|name| format!("{parent}/{name}")).collect()
    }

    /// Items compiled only for tests: the position of the attribute, and the first line.
    fn for_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let attributes = self.code.match_indices("#[cfg(test)]");
        attributes.filter_map(|(place, _)| {
            let lines = self.code[place..].lines().skip(1);
            let mut declared = lines.filter(|line| line.contains("mod "));
            Some((place, declared.next()?))
        })
    }

    /// The part of a text of this file, its code or its strings, without items for tests.
    pub(crate) fn product<'a>(&self, of: &'a str) -> &'a str {
        if self.is_test {
            return "";
        }
        let inline = self
            .for_tests()
            .find(|(_, declared)| declared.ends_with('{'));
        &of[..inline.map_or(of.len(), |(place, _)| place)]
    }

    /// The functions: first line, and number of lines.
    pub(crate) fn functions(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (place, _) in words(&self.code).filter(|(_, word)| *word == "fn") {
            let rest = &self.code[place..];
            let Some(open) = rest
                .find(['{', ';'])
                .filter(|at| rest[*at..].starts_with('{'))
            else {
                continue;
            };
            let body = &rest[..open + group(&rest[open..]).len()];
            let line = self.code[..place].lines().count();
            found.push((line, body.lines().count()));
        }
        found
    }
}

/// The names after `root::` in the code, one for each path: of `crate::{a::b, c}`, `a` and `c`.
pub(crate) fn behind(root: &str, code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let roots = words(code).filter(|(_, word)| *word == root);
    for (place, _) in roots {
        let Some(rest) = code[place + root.len()..].strip_prefix("::") else {
            continue;
        };
        if rest.starts_with('{') {
            let inner = group(rest).trim_start_matches('{');
            found.extend(first_names(inner));
        } else if let Some((0, name)) = words(rest).next() {
            found.insert(name.to_owned());
        }
    }
    found
}

/// All words of some code, with their positions.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + code[at..].find(is_part)?;
        let length = code[start..].find(|letter| !is_part(letter));
        at = length.map_or(code.len(), |length| start + length);
        Some((start, &code[start..at]))
    })
}

/// The text from a brace to its closing one.
fn group(code: &str) -> &str {
    let mut depth = 0;
    for (place, letter) in code.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => return &code[..=place],
            '}' => depth -= 1,
            _ => {}
        }
    }
    code
}

/// The first name of each path in a group of them.
fn first_names(inner: &str) -> Vec<String> {
    let mut depth = 0;
    let parts = inner.split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    let names = parts.filter_map(|part| words(part).next());
    names.map(|(_, name)| name.to_owned()).collect()
}

/// Separates code from comments and literals.
struct Lexer {
    code: String,
    strings: String,
}

impl Lexer {
    fn split(text: &str) -> (String, String) {
        let mut lexer = Self {
            code: String::new(),
            strings: String::new(),
        };
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let raw = raw_string(rest);
            let (length, is_string) = if rest.starts_with("//") {
                (rest.find('\n').unwrap_or(rest.len()), false)
            } else if let Some(length) = raw.filter(|_| !lexer.in_word()) {
                (length, true)
            } else if letter == '"' {
                (quoted(rest), true)
            } else if letter == '\'' && is_char(rest) {
                (quoted(rest), false)
            } else {
                lexer.code.push(letter);
                lexer.strings.push_str(blank(letter));
                rest = &rest[letter.len_utf8()..];
                continue;
            };
            lexer.literal(&rest[..length], is_string);
            rest = &rest[length..];
        }
        (lexer.code, lexer.strings)
    }

    fn in_word(&self) -> bool {
        let last = self.code.chars().next_back();
        last.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    }

    /// Keeps both texts as long as the file, in bytes and in lines.
    fn literal(&mut self, text: &str, is_string: bool) {
        for letter in text.chars() {
            let blank = blank(letter);
            self.code.push_str(blank);
            if is_string {
                self.strings.push(letter);
            } else {
                self.strings.push_str(blank);
            }
        }
    }
}

fn blank(letter: char) -> &'static str {
    match letter {
        '\n' => "\n",
        _ => &"    "[..letter.len_utf8()],
    }
}

fn is_char(text: &str) -> bool {
    text.starts_with("'\\") || text.chars().nth(2) == Some('\'')
}

/// The length of a literal that ends with its first character.
fn quoted(text: &str) -> usize {
    let mark = text.chars().next();
    let mut letters = text.char_indices().skip(1);
    while let Some((place, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if Some(letter) == mark {
            return place + 1;
        }
    }
    text.len()
}

/// The length of the raw string at the beginning of a text.
fn raw_string(text: &str) -> Option<usize> {
    let marks = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = marks.len() - marks.trim_start_matches('#').len();
    let content = marks[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = content.find(&end)? + end.len();
    Some(text.len() - content.len() + length)
}
