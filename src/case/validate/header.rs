//! What a case says of itself: id, title, sources and place.

use super::findings::Findings;
use crate::case::diagnose::did_you_mean;
use crate::case::file::{CaseFile, Place};
use crate::case::{Need, requirement};

/// The catalogue's areas: what ids begin with, and the folder for it.
const AREAS: &[(&str, &str)] = &[
    ("FEA", "feature"),
    ("STR", "stream"),
    ("ORD", "order"),
    ("CMP", "completeness"),
    ("SNP", "snapshot"),
    ("REL", "relist"),
    ("TIM", "time"),
    ("REC", "reconnect"),
    ("RST", "restart"),
    ("SHM", "monitor"),
    ("OOM", "oom"),
    ("EXT", "exit"),
    ("STP", "stop"),
    ("SBX", "sandbox"),
    ("MUL", "several"),
    ("FLR", "failure"),
    ("NEG", "negative"),
    ("CKP", "checkpoint"),
    ("SCL", "scale"),
    ("LEK", "leak"),
    ("EXP", "explore"),
];

/// The needs that a case states; all others follow from its steps and from what it provokes.
const STATED: [Need; 3] = [Need::Broadcast, Need::NoEvents, Need::Timestamp];

pub(super) fn check(file: &CaseFile, place: Place<'_>, found: &mut Findings) {
    check_id(&file.id, place, found);
    check_texts(file, found);
    check_labels(file, found);
    if file.silent && !file.exclusive {
        found
            .object_to("silent", "other cases would ask the runtime meanwhile")
            .advise("add `exclusive: true`");
    }
}

fn check_id(id: &str, place: Place<'_>, found: &mut Findings) {
    if !is_kebab(place.name) {
        found
            .object_to("id", format!("a case cannot be named `{}`", place.name))
            .advise("name the file with small letters, digits and hyphens");
    }
    if !is_id(id) {
        found
            .object_to("id", format!("`{id}` is no id"))
            .advise("an id is an area, a hyphen and two digits, such as `ORD-01`");
        return;
    }
    let prefix = &id[..3];
    match AREAS.iter().find(|(known, _)| *known == prefix) {
        Some((_, folder)) if *folder == place.area => {}
        Some((_, folder)) => found
            .object_to(
                "id",
                format!("`{id}` is no id for a case in `{}`", place.area),
            )
            .advise(format!("put the file into a folder `{folder}`")),
        // A folder of another name is an area of the user.
        None if !AREAS.iter().any(|(_, folder)| *folder == place.area) => {}
        None => {
            let known = AREAS.iter().map(|(prefix, _)| *prefix);
            let help = did_you_mean(prefix, known.clone()).unwrap_or_else(|| {
                format!("the areas are {}", known.collect::<Vec<_>>().join(", "))
            });
            found
                .object_to("id", format!("there is no area `{prefix}`"))
                .advise(format!(
                    "{help}; a folder of another name is an area of yours"
                ));
        }
    }
}

fn check_texts(file: &CaseFile, found: &mut Findings) {
    if !file.title.ends_with('.') || file.title.trim().contains('\n') {
        found
            .object_to("title", "a title is one sentence, which ends with a period")
            .advise("say what a conformant runtime does");
    }
    if file.why.trim().is_empty() {
        found
            .object_to("why", "nothing says why this matters")
            .advise("say who is harmed by a runtime that fails here, and how");
    }
    if file.sources.is_empty() {
        found
            .object_to("sources", "nothing says where the requirement comes from")
            .advise("name the part of the CRI or the KEP, or the bug that it was learnt from");
    }
    for (index, source) in file.sources.iter().enumerate() {
        if source.trim().is_empty() {
            found.object_to_element("sources", index, "this source names nothing");
        }
    }
}

fn check_labels(file: &CaseFile, found: &mut Findings) {
    if file.levels.highest().is_none() {
        found
            .object_to("levels", "nothing says whom the case binds")
            .advise("name a profile and how binding it is there, such as `{cache: must}`");
    }
    for (index, id) in file.requirements.iter().enumerate() {
        if !requirement::is_id(id) {
            found.object_to_element("requirements", index, "this is no id such as `R9`");
        }
    }
    for (index, need) in file.needs.iter().enumerate() {
        if !STATED.contains(need) {
            found
                .object_to_element("needs", index, "this need follows from the steps")
                .advise("leave it out");
        }
    }
    for (index, tag) in file.tags.iter().enumerate() {
        if !is_kebab(tag) {
            let problem = "a tag is small letters, digits and hyphens";
            found.object_to_element("tags", index, problem);
        }
    }
}

/// Three capital letters, a hyphen, two digits, and perhaps a small letter.
fn is_id(id: &str) -> bool {
    let ([area @ .., b'-', tens, ones] | [area @ .., b'-', tens, ones, b'a'..=b'z']) =
        id.as_bytes()
    else {
        return false;
    };
    area.len() == 3
        && area.iter().all(u8::is_ascii_uppercase)
        && [tens, ones].iter().all(|digit| digit.is_ascii_digit())
}

/// Words of small letters and digits with hyphens between them.
pub(super) fn is_kebab(name: &str) -> bool {
    let is_word = |word: &str| {
        let mut bytes = word.bytes();
        !word.is_empty() && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.split('-').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_three_letters_two_digits_and_perhaps_one_letter() {
        for id in ["ORD-01", "OOM-99", "ORD-01a"] {
            assert!(is_id(id), "{id}");
        }
        for id in [
            "", "ORD", "ORD-1", "ORD-001", "ord-01", "ORDE-01", "ORD-01A", "ORD-0a", "ÖRD-01",
        ] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    fn a_name_is_words_with_hyphens() {
        for name in ["c", "pod-1", "exit-without-a-call"] {
            assert!(is_kebab(name), "{name}");
        }
        for name in ["", "-", "a--b", "a-", "A", "a_b", "ä"] {
            assert!(!is_kebab(name), "{name}");
        }
    }
}
