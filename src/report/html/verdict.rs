//! A verdict as a badge: a sign, a word and a colour.

use maud::{Markup, html};

use crate::outcome::{Conformance, Level, Verdict};

pub(super) fn badge(verdict: Verdict) -> Markup {
    html! { span .badge .(class(verdict)) { (sign(verdict)) " " (verdict) } }
}

/// The badge of a profile's verdict, with this text.
pub(super) fn conformance(verdict: Conformance, words: &str) -> Markup {
    let like = match verdict {
        Conformance::Conformant => Verdict::Pass,
        Conformance::NonConformant => Verdict::Fail,
        Conformance::KnownFailures => Verdict::Known,
        Conformance::Error => Verdict::Error,
        Conformance::Partial => Verdict::Inconclusive,
        Conformance::NotJudged => Verdict::Skip,
    };
    html! { span .badge .(class(like)) { (sign(like)) " " (words) } }
}

/// The CSS class for its colour.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Known => "known",
        Verdict::UnexpectedPass | Verdict::Error => "error",
        Verdict::Skip => "skip",
        Verdict::Inconclusive => "open",
    }
}

/// A sign that distinguishes it without colour.
pub(super) fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✓",
        Verdict::Fail => "✗",
        Verdict::Known => "≈",
        Verdict::UnexpectedPass => "★",
        Verdict::Error => "!",
        Verdict::Skip => "–",
        Verdict::Inconclusive => "?",
    }
}

/// The requirement level in upper case, as in the CRI.
pub(super) fn level(level: Level) -> &'static str {
    match level {
        Level::Must => "MUST",
        Level::Should => "SHOULD",
        Level::May => "MAY",
    }
}
