//! Sources of requirements, with links to those on the web.

use maud::{Markup, html};

use crate::escape::printable;
use crate::report::printable::cut;

/// The maximum length of a source, in characters.
const SOURCE: usize = 2_000;

/// Repositories that a source names without their owners.
const OWNERS: [(&str, &str); 3] = [
    ("kubernetes", "kubernetes"),
    ("containerd", "containerd"),
    ("cri-o", "cri-o"),
];

/// A source, in which addresses, issues such as `cri-o/cri-o#7164`, KEPs and files of Kubernetes
/// are links.
pub(super) fn linked(text: &str) -> Markup {
    let text = cut(text, SOURCE);
    let parts: Vec<&str> = text.split_inclusive(' ').collect();
    let before = [""].into_iter().chain(parts.iter().copied());
    html! {
        @for (part, before) in parts.iter().zip(before) { (word(part, before)) }
    }
}

/// A word with the punctuation and the space around it.
fn word(part: &str, before: &str) -> Markup {
    let is_around = |letter: char| "()[],;:. \"'".contains(letter);
    let name = part.trim_matches(is_around);
    let Some(address) = address(name, before.trim()) else {
        return html! { (part) };
    };
    let (start, end) = part.split_once(name).unwrap_or_default();
    html! { (start) a href=(address) { (name) } (end) }
}

/// The address of a source in a word; `None` if it has none.
fn address(word: &str, before: &str) -> Option<String> {
    if word.starts_with("https://") {
        return Some(printable(word).into_owned());
    }
    if let Some(number) = word.strip_prefix("KEP-").filter(|it| is_number(it)) {
        return Some(format!(
            "https://github.com/kubernetes/enhancements/issues/{number}"
        ));
    }
    if before == "kubernetes" && word.starts_with("pkg/") && is_path(word) {
        return Some(format!(
            "https://github.com/kubernetes/kubernetes/blob/master/{word}"
        ));
    }
    let (repository, number) = word.split_once('#')?;
    let (owner, name) = match repository.split_once('/') {
        Some(both) => both,
        None => *OWNERS.iter().find(|(_, name)| *name == repository)?,
    };
    let is_issue = is_number(number) && is_name(owner) && is_name(name);
    is_issue.then(|| format!("https://github.com/{owner}/{name}/issues/{number}"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_path(text: &str) -> bool {
    text.strip_suffix(".go").is_some() && text.split('/').all(|part| is_name(part) && part != "..")
}

#[cfg(test)]
mod tests {
    use super::linked;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(linked(text).into_string(), expected);
    }

    #[test]
    fn what_is_on_the_web_is_a_link() {
        check(
            "cri-o/cri-o#9738 (twice)",
            "<a href=\"https://github.com/cri-o/cri-o/issues/9738\">cri-o/cri-o#9738</a> (twice)",
        );
        check(
            "as kubernetes#114371;",
            "as <a href=\"https://github.com/kubernetes/kubernetes/issues/114371\">\
             kubernetes#114371</a>;",
        );
        check(
            "KEP-3386, Monitoring",
            "<a href=\"https://github.com/kubernetes/enhancements/issues/3386\">KEP-3386</a>, \
             Monitoring",
        );
        check(
            "kubernetes pkg/kubelet/pleg/evented.go, watchEventsChannel",
            "kubernetes <a href=\"https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet\
             /pleg/evented.go\">pkg/kubelet/pleg/evented.go</a>, watchEventsChannel",
        );
        check(
            "(https://example.com/a#L1-L2)",
            "(<a href=\"https://example.com/a#L1-L2\">https://example.com/a#L1-L2</a>)",
        );
    }

    #[test]
    fn all_else_is_text() {
        for text in [
            "c#4",
            "CRI api.proto, StopContainer",
            "http://example.com",
            "javascript:alert(1)",
            "KEP-x",
            "a/b#1x",
            "kubernetes pkg/../x.go",
        ] {
            check(text, text);
        }
        check("<b>https://x", "&lt;b&gt;https://x");
        check(
            "https://x\"onclick=\"a",
            "<a href=\"https://x&quot;onclick=&quot;a\">https://x&quot;onclick=&quot;a</a>",
        );
    }
}
