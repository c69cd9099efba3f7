//! The words of doc comments: those of the field, see CONTRIBUTING.md.

use std::collections::BTreeMap;

use super::none;
use super::source::{Source, sources, words};

/// The maximum number of lines with "what" in a module, per 1,000 lines of doc comments.
const WHAT_PER_1000: usize = 15;

/// Phrases that doc comments do not use.
const DIALECT: &[&str] = &[
    "anybody",
    "came to",
    "comes to",
    "for ever",
    "goes on",
    "is told",
    "nobody",
    "of others",
    "somebody",
    "stand for",
    "stands for",
    "whatever",
    "whoever",
];

/// The doc comments of the code, one line each, with the module that counts them.
fn doc_lines() -> Vec<(Source, Vec<(usize, String)>)> {
    let sources = sources(&["src", "tests", "benches", "fuzz/src", "fuzz/fuzz_targets"]);
    let with_docs = sources.into_iter().map(|source| {
        let numbered = source.text.lines().zip(1..);
        let docs = numbered.filter_map(|(line, number)| {
            let line = line.trim();
            let doc = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
            Some((number, doc.to_owned()))
        });
        let docs = docs.collect();
        (source, docs)
    });
    with_docs.collect()
}

/// The words of a text in lower case, each after a space.
fn plain(text: &str) -> String {
    let text = text.to_lowercase();
    words(&text).flat_map(|(_, word)| [" ", word]).collect()
}

/// `oracle` for `src/oracle/rules.rs`, `tests` for all tests.
fn module(source: &Source) -> &str {
    let module = source.module();
    let below = module.strip_prefix("src/").unwrap_or(module);
    below.split('/').next().unwrap_or(below)
}

#[test]
fn doc_comments_name_their_subjects() {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (source, docs) in doc_lines() {
        let has_what = |doc: &str| plain(doc).split(' ').any(|word| word == "what");
        let (lines, with_what) = counts.entry(module(&source).to_owned()).or_default();
        *lines += docs.len();
        *with_what += docs.iter().filter(|(_, doc)| has_what(doc)).count();
    }
    let findings = counts.iter().filter_map(|(module, (lines, with_what))| {
        let limit = (lines * WHAT_PER_1000).div_ceil(1_000);
        (*with_what > limit).then(|| format!("{module}: {with_what} of {lines} lines, not {limit}"))
    });
    none(
        "A doc comment begins with a noun or a verb: \"what\" has no noun.",
        &findings.collect::<Vec<_>>(),
    );
}

#[test]
fn doc_comments_use_the_words_of_the_field() {
    let mut findings = Vec::new();
    for (source, docs) in doc_lines() {
        for (place, (number, doc)) in docs.iter().enumerate() {
            let next = docs.get(place + 1).filter(|(next, _)| *next == number + 1);
            let own = plain(doc);
            let text = format!("{own}{} ", plain(next.map_or("", |(_, next)| next)));
            let used = DIALECT.iter().filter(|phrase| {
                let place = text.find(&format!(" {phrase} "));
                place.is_some_and(|place| place < own.len())
            });
            findings.extend(used.map(|phrase| format!("{}:{number}: {phrase}", source.path)));
        }
    }
    none("CONTRIBUTING.md has the words to use instead.", &findings);
}
