//! Words and keys that case files had before, and what to write in their place.

/// An old word or key, the one that takes its place, and what to write.
struct Renamed {
    old: &'static str,
    new: &'static str,
    advice: &'static str,
}

const fn renamed(old: &'static str, new: &'static str) -> Renamed {
    Renamed {
        old,
        new,
        advice: "",
    }
}

const fn replaced(old: &'static str, new: &'static str, advice: &'static str) -> Renamed {
    Renamed { old, new, advice }
}

const RENAMED: &[Renamed] = &[
    // Steps.
    renamed("each-handler", "for-each-handler"),
    renamed("filters", "list-with-filters"),
    renamed("gone", "process-exited"),
    renamed("meanwhile", "poll-during"),
    renamed("prompt", "calls-return-within"),
    renamed("quiet", "stays-silent"),
    replaced("aside", "call", "call: {method: ContainerStats, of: c}"),
    replaced("image", "call", "call: {method: ImageStatus}"),
    replaced(
        "unknown",
        "call",
        "call: {method: StopContainer, unknown-id: true}",
    ),
    replaced("version", "call", "call: {method: Version}"),
    // Keys of steps.
    renamed("again", "attempt-of"),
    renamed("again", "read-again-after"),
    renamed("deadline", "abandon-after"),
    renamed("may-fail", "may-be-refused"),
    renamed("within", "time"),
    replaced("fails", "expect", "expect: failure"),
    replaced("races", "expect", "expect: either"),
    // Checks.
    renamed("as-asked-for", "matches-spec"),
    renamed("keeps", "invariant"),
    renamed("learnt", "eventually-known"),
    renamed("stamped", "created-at-valid"),
    renamed("times", "status-times"),
    renamed("told", "consistent"),
    renamed("undone", "rolled-back"),
    renamed("untold", "absent"),
    replaced(
        "ended",
        "subscription",
        "subscription: {of: b, ends-with: [UNAVAILABLE]}",
    ),
    replaced(
        "headers",
        "subscription",
        "subscription: {of: b, headers-within: 1s}",
    ),
    replaced(
        "nothing-older",
        "subscription",
        "subscription: {of: b, replay: none}",
    ),
    replaced(
        "same-events",
        "subscription",
        "subscription: {of: b, events: same-as-main-stream}",
    ),
    replaced(
        "same-replay",
        "subscription",
        "subscription: {of: b, replay: same-as-main-stream}",
    ),
    replaced(
        "stays-open",
        "subscription",
        "subscription: {of: b, stays: open}",
    ),
    // Workloads.
    renamed("child-eat", "allocate-in-child"),
    renamed("dump", "dump-core"),
    renamed("eat", "allocate"),
    renamed("eat-on-term", "allocate-on-term"),
    renamed("heed", "until-signal"),
    renamed("ignore", "ignore-term"),
    renamed("leave", "orphan-child"),
    renamed("missing", "missing-program"),
    renamed("no-program", "not-executable"),
    renamed("obey", "until-term"),
];

/// What to write in place of a word that was known before, where these words are known now.
pub(super) fn advice(word: &str, known: &[&str]) -> Option<String> {
    let renamed = RENAMED
        .iter()
        .find(|renamed| renamed.old == word && known.contains(&renamed.new))?;
    Some(match renamed.advice {
        "" => format!("it is called `{}` now", renamed.new),
        advice => format!("write `{advice}` now"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_word_is_named_where_its_new_one_is_known() {
        let now = |word, known: &[&str]| advice(word, known);
        assert_eq!(
            now("obey", &["exit", "until-term"]).as_deref(),
            Some("it is called `until-term` now")
        );
        assert_eq!(
            now("again", &["as", "attempt-of"]).as_deref(),
            Some("it is called `attempt-of` now")
        );
        assert_eq!(
            now("races", &["container", "expect"]).as_deref(),
            Some("write `expect: either` now")
        );
        assert_eq!(
            now("headers", &["events", "subscription"]).as_deref(),
            Some("write `subscription: {of: b, headers-within: 1s}` now")
        );
        assert_eq!(now("obey", &["sandbox", "create"]), None);
        assert_eq!(now("exit", &["exit"]), None);
    }
}
