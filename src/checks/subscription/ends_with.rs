//! `ends-with` and `ends-after`: with which code and how early the runtime ends a subscription.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::word::Finding::{self, Broken, Holds};
use crate::history::{CaseHistory, Observed, StatusCode, StreamEnd};
use crate::outcome::{Fact, Facts, Kind, Mismatch};

/// A gRPC code by its name, such as `UNAVAILABLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Code(pub StatusCode);

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let code = StatusCode::named(&name).map(Self);
        code.ok_or_else(|| format!("`{name}` is no gRPC code such as `UNAVAILABLE`"))
    }
}

impl From<Code> for String {
    fn from(Code(code): Code) -> Self {
        code.to_string()
    }
}

pub(super) const KINDS: &[Kind] = &[Kind::StreamOpen, Kind::WrongEnd];

/// The runtime ends the subscription with one of these codes, no earlier than `least` after the
/// request.
pub(super) fn assess(
    history: &CaseHistory,
    observed: &Observed,
    allowed: &[Code],
    least: Duration,
) -> Finding {
    let opened = observed.opened();
    let codes: Vec<String> = allowed.iter().map(|Code(code)| code.to_string()).collect();
    let ended = observed.ended();
    let ended = ended.filter(|(ended, _)| history.within_steps(ended.seq));
    let Some((ended, end)) = ended else {
        return Broken {
            mismatch: Mismatch::new(Kind::StreamOpen, [Fact::End(codes.join(" or "))], []),
            evidence: vec![opened.seq],
        };
    };
    let after = ended.at.since(opened.at);
    let code = match end {
        StreamEnd::Failed(fault) => Some(fault.code),
        StreamEnd::Closed => Some(StatusCode::OK),
        StreamEnd::Cancelled => None,
    };
    if after >= least && allowed.iter().any(|Code(wanted)| Some(*wanted) == code) {
        return Holds;
    }
    let least = (!least.is_zero()).then_some(Fact::Within(least));
    let expected = [Fact::End(codes.join(" or "))].into_iter().chain(least);
    let actual = [Fact::End(how_it_ended(end)), Fact::Pause(after)];
    Broken {
        mismatch: Mismatch::new(Kind::WrongEnd, expected.collect::<Facts>(), actual),
        evidence: vec![opened.seq, ended.seq],
    }
}

/// How a stream ended, as the end of a sentence.
pub(super) fn how_it_ended(end: &StreamEnd) -> String {
    match end {
        StreamEnd::Cancelled => "it was given up".to_owned(),
        StreamEnd::Closed => "the runtime ended it with OK".to_owned(),
        StreamEnd::Failed(fault) => format!("it ended with {}", fault.code),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn without_a_least_time_any_end_with_the_code_is_right() {
        let ended = "subscription: {of: b, ends-with: [UNAVAILABLE, OK]}";
        check(
            ended,
            "observe 7 as=b; observe 7 ends=0; end",
            expect!["holds"],
        );
        check(
            ended,
            "observe 7 as=b; observe 7 ends=4; end",
            expect![[r#"
                ORD-01 at #1 #2: b, stream 7: expected an end with UNAVAILABLE or OK: it ended with DEADLINE_EXCEEDED after 1ms
            "#]],
        );
    }

    #[test]
    fn the_runtime_ends_a_subscription_with_the_code_and_not_too_early() {
        let ended = "subscription: {of: b, ends-with: [DEADLINE_EXCEEDED], ends-after: 3s}";
        check(
            ended,
            "observe 7 as=b; pass 3s; observe 7 ends=4; end",
            expect!["holds"],
        );
        check(
            ended,
            "observe 7 as=b; pass 2s; observe 7 ends=4; end",
            expect![[r#"
            ORD-01 at #1 #2: b, stream 7: expected an end with DEADLINE_EXCEEDED, not before 3s have passed: it ended with DEADLINE_EXCEEDED after 2.001s
        "#]],
        );
        check(
            ended,
            "observe 7 as=b; pass 3s; observe 7 ends=0; end",
            expect![[r#"
            ORD-01 at #1 #2: b, stream 7: expected an end with DEADLINE_EXCEEDED, not before 3s have passed: the runtime ended it with OK after 3.001s
        "#]],
        );
        check(
            ended,
            "observe 7 as=b; pass 3s; end",
            expect![[r#"
        ORD-01 at #1: b, stream 7: expected an end with DEADLINE_EXCEEDED: the stream stayed open
    "#]],
        );
    }
}
