//! Suggestions for a filter that matches nothing.

use std::collections::BTreeSet;

use crate::plan::Facts;

/// The minimum similarity of a suggestion.
const MIN_SIMILARITY: f64 = 0.85;

/// The most similar valid filter, if there is a similar one.
pub(super) fn suggest(filter: &str, all: &[Facts<'_>]) -> Option<String> {
    let requirements: BTreeSet<&str> = all
        .iter()
        .flat_map(|facts| facts.requirements.iter().copied())
        .collect();
    let mut known = requirements.iter();
    if let Some(requirement) = known.find(|known| known.eq_ignore_ascii_case(filter)) {
        return Some(format!("`req:{requirement}`"));
    }
    let mut tags = all.iter().flat_map(|facts| facts.tags);
    if let Some(tag) = tags.find(|tag| tag.eq_ignore_ascii_case(filter)) {
        return Some(format!("`tag:{tag}`"));
    }
    let ids = all.iter().map(|facts| facts.id);
    let names = all.iter().map(|facts| facts.name);
    let areas = names.clone().filter_map(|name| name.split("::").next());
    let meant = filter.trim_end_matches(':').to_ascii_lowercase();
    let similarity = |word: &str| strsim::jaro_winkler(&word.to_ascii_lowercase(), &meant);
    let words = ids
        .chain(areas)
        .chain(names)
        .map(|word| (similarity(word), word));
    // The first one of several that are equally similar.
    let best = words.fold(None, |best: Option<(f64, &str)>, next| match best {
        Some(best) if best.0 >= next.0 => Some(best),
        _ => Some(next),
    });
    let best = best.filter(|(similarity, _)| *similarity > MIN_SIMILARITY);
    best.map(|(_, word)| format!("`{word}`"))
}
