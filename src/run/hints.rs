//! Suggestions for a filter that matches nothing.

use crate::plan::Facts;

/// The minimum similarity of a suggestion.
const MIN_SIMILARITY: f64 = 0.85;

/// The most similar valid filter, if any.
pub(super) fn suggest(filter: &str, all: &[Facts<'_>]) -> Option<String> {
    let filter = filter.to_ascii_lowercase();
    let mut requirements: Vec<&str> = all
        .iter()
        .flat_map(|facts| facts.requirements.iter().copied())
        .collect();
    requirements.sort_unstable();
    let tags = all.iter().flat_map(|facts| facts.tags).map(String::as_str);
    if let Some(tag) = filter.strip_prefix("tag:") {
        return closest(tag, tags).map(|tag| format!("`tag:{tag}`"));
    }
    if let Some(requirement) = filter.strip_prefix("req:") {
        let known = closest(requirement, requirements.into_iter());
        return known.map(|requirement| format!("`req:{requirement}`"));
    }
    let is_meant = |known: &&str| known.eq_ignore_ascii_case(&filter);
    if let Some(requirement) = requirements.into_iter().find(is_meant) {
        return Some(format!("`req:{requirement}`"));
    }
    if let Some(tag) = tags.clone().find(is_meant) {
        return Some(format!("`tag:{tag}`"));
    }
    let ids = all.iter().map(|facts| facts.id);
    let names = all.iter().map(|facts| facts.name);
    let areas = names.clone().filter_map(|name| name.split("::").next());
    let meant = filter.trim_end_matches(':');
    closest(meant, ids.chain(areas).chain(names)).map(|word| format!("`{word}`"))
}

/// The word that is most similar to a lower-case one, if any; the first of several.
fn closest<'a>(meant: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |word: &str| strsim::jaro_winkler(&word.to_ascii_lowercase(), meant);
    let words = words.map(|word| (similarity(word), word));
    let best = words.fold(None, |best: Option<(f64, &str)>, next| match best {
        Some(best) if best.0 >= next.0 => Some(best),
        _ => Some(next),
    });
    let best = best.filter(|(similarity, _)| *similarity > MIN_SIMILARITY);
    best.map(|(_, word)| word)
}
