//! Globs with `*` for any text and `?` for one character.

/// Whether the whole text matches the glob.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // Where to go on if the latest `*` shall stand for one character more.
    let mut again = None;
    loop {
        let rest = text.clone();
        match (pattern.next(), text.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                text = rest;
                again = Some((pattern.clone(), text.clone()));
                continue;
            }
            (Some('?'), Some(_)) => continue,
            (Some(wanted), Some(found)) if wanted == found => continue,
            _ => {}
        }
        let Some((after_star, mut from)) = again.take() else {
            return false;
        };
        if from.next().is_none() {
            return false;
        }
        (pattern, text) = (after_star.clone(), from.clone());
        again = Some((after_star, from));
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abc"),
            ("a*c", "abcc"),
            ("a*b*c", "aabbcc"),
            ("a?c", "aäc"),
            ("**c", "abc"),
            ("*bc*", "abcbcd"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a", "ab"),
            ("?", ""),
            ("a*d", "abc"),
            ("a?", "a"),
            ("a*b*c", "aabb"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_more_than_their_time() {
        assert!(!matches(&"a*".repeat(50), &"a".repeat(40)));
        assert!(!matches(
            &format!("{}b", "a*".repeat(30)),
            &"a".repeat(2_000)
        ));
    }
}
