//! `message-size`: the size of the messages of events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds};
use super::word::{Finding, Word};
use crate::outcome::{Fact, Kind, Mismatch};

/// The largest size of the messages of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a size such as `{of: c, at-most-kib: 4096}`"
)]
pub struct MessageSizeCheck {
    /// The sandboxes or containers.
    pub of: String,
    /// The largest size of an event's message, in KiB.
    pub at_most_kib: u32,
}

impl Word for MessageSizeCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::TooLarge]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let limit = u64::from(self.at_most_kib) << 10;
        let large = events.all().find(|seen| u64::from(seen.bytes()) > limit);
        large.map_or(Holds, |seen| Broken {
            mismatch: Mismatch::new(
                Kind::TooLarge,
                [Fact::Count(i64::try_from(limit).unwrap_or(i64::MAX))],
                [
                    Fact::Event(seen.event().kind),
                    Fact::Count(seen.bytes().into()),
                ],
            ),
            evidence: vec![seen.seq()],
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn a_message_is_too_large() {
        let sized = |bytes, expect| {
            let script = format!("pod run; c create; c CREATED bytes={bytes}; end");
            check("message-size: {of: c, at-most-kib: 4}", &script, expect);
        };
        sized(4096, expect!["holds"]);
        sized(
            4097,
            expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected a message of CREATED with at most 4096 bytes: 4097 bytes
    "#]],
        );
    }
}
