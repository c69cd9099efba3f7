//! Keys and meanings of all kinds.

use std::collections::BTreeSet;

use super::Kind;

#[test]
fn keys_are_in_kebab_case_and_unique() {
    let mut keys = BTreeSet::new();
    for kind in Kind::ALL {
        let words = kind.key().split('-');
        let plain = |word: &str| {
            let mut letters = word.bytes();
            !word.is_empty() && letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        };
        assert!(words.clone().all(plain), "{kind}");
        assert!(keys.insert(kind.key()), "{kind}");
        assert_eq!(Kind::from_key(kind.key()), Ok(*kind));
    }
}

#[test]
fn meanings_are_sentences() {
    for kind in Kind::ALL {
        let meaning = kind.meaning();
        let is_begun = meaning.starts_with(|it: char| it.is_uppercase() || it == '`');
        assert!(is_begun && meaning.ends_with('.'), "{kind}: {meaning}");
    }
}
