//! Failures grouped by cause: one kind of finding that they share.

use std::collections::{BTreeMap, BTreeSet};

use super::printable::{printable, wrapped};
use super::summary::counted;
use super::text::{Text, failure_at, failure_in_short};
use crate::outcome::{Kind, Outcome, Verdict};

/// The maximum number of lines that show failures in full. The first failure is always shown.
const IN_FULL: usize = 40;

/// The maximum number of causes of which those that are known of the runtime are shown, too.
const FEW: usize = 3;

/// The maximum number of ids in a list.
const IDS: usize = 250;

/// Outcomes with one cause, the clearest first.
pub(super) struct Group<'a> {
    /// `None` where no rule is broken: of undecided cases and unexpected passes.
    pub(super) kind: Option<Kind>,
    pub(super) outcomes: Vec<&'a Outcome>,
}

impl Group<'_> {
    /// The guarantees that its findings break.
    pub(super) fn broken(&self) -> Vec<&'static str> {
        let broken = self.outcomes.iter().flat_map(|outcome| {
            let violations = outcome.violations.iter();
            violations.map(|violation| outcome.breaks(violation).name())
        });
        let broken: BTreeSet<&str> = broken.collect();
        broken.into_iter().collect()
    }

    pub(super) fn ids(&self) -> BTreeSet<&str> {
        self.outcomes.iter().map(|outcome| &*outcome.id).collect()
    }
}

/// The groups of these outcomes, the largest first.
pub(super) fn by_cause<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Vec<Group<'a>> {
    let mut outcomes: Vec<&Outcome> = outcomes.collect();
    // Cases end in any order.
    outcomes.sort_by_key(|outcome| (&outcome.id, outcome.repetition));
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    for outcome in &outcomes {
        for kind in kinds(outcome) {
            *counts.entry(kind).or_default() += 1;
        }
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for outcome in outcomes {
        let reason = (outcome.verdict, &outcome.reason);
        let kind = kinds(outcome).into_iter().rev();
        let kind = kind.max_by_key(|kind| counts[kind]);
        let shares = |group: &&mut Group<'_>| {
            let first = group.outcomes[0];
            group.kind == kind && (kind.is_some() || (first.verdict, &first.reason) == reason)
        };
        match groups.iter_mut().find(shares) {
            Some(group) => group.outcomes.push(outcome),
            None => groups.push(Group {
                kind,
                outcomes: vec![outcome],
            }),
        }
    }
    for group in &mut groups {
        let kind = group.kind;
        let others = |outcome: &&Outcome| kinds(outcome).iter().any(|it| Some(*it) != kind);
        let clearest = |outcome: &&Outcome| {
            (
                outcome.is_invariant(),
                others(outcome),
                outcome.violations.len(),
                outcome.evidence.len(),
            )
        };
        group.outcomes.sort_by_key(clearest);
    }
    groups.sort_by_key(|group| {
        let is_of_rule = group.outcomes[0].is_invariant();
        (std::cmp::Reverse(group.outcomes.len()), is_of_rule)
    });
    groups
}

/// The kinds of all findings.
fn kinds(outcome: &Outcome) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for violation in &outcome.violations {
        let kind = violation.mismatch.kind;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The ids of outcomes, sorted, each once.
pub(super) fn ids(outcomes: &[&Outcome]) -> String {
    let ids: BTreeSet<_> = outcomes.iter().map(|outcome| &*outcome.id).collect();
    let shown: Vec<_> = ids.iter().take(IDS).map(|id| printable(id)).collect();
    match ids.len().saturating_sub(IDS) {
        0 => shown.join(" "),
        more => format!("{} and {more} more", shown.join(" ")),
    }
}

/// The failure that shows the commonest cause best, of those that are not known of the runtime.
pub fn clearest(outcomes: &[Outcome]) -> Option<&Outcome> {
    let failed = |it: &&Outcome| it.verdict == Verdict::Fail && it.hint.is_none();
    let groups = by_cause(outcomes.iter().filter(failed));
    groups.first().map(|group| group.outcomes[0])
}

/// Failed and undecided outcomes in full: all of them, or else one of each cause, as many as fit
/// into forty lines; of more than a few causes only those that are not known of the runtime.
/// Wrapped for a terminal with these columns.
pub fn failures(outcomes: &[Outcome], all: bool, columns: usize) -> String {
    let in_full = |outcome: &Outcome, same: &str, details: &str| {
        let mut text = Text::new(columns);
        text.out.push('\n');
        let Outcome { id, .. } = outcome;
        text.line(&format!("---- {id} {}{same} ----", outcome.label()), 5);
        text.out + details
    };
    if all {
        let all = outcomes.iter();
        return all
            .map(|it| in_full(it, "", &failure_at(it, columns)))
            .collect();
    }
    let mut text = String::new();
    let groups = by_cause(outcomes.iter());
    let (mut omitted, mut known) = (0, 0);
    for group in &groups {
        let is_known = group.outcomes.iter().all(|outcome| outcome.hint.is_some());
        if is_known && groups.len() > FEW {
            known += 1;
            continue;
        }
        let same = match (group.outcomes.len(), group.kind) {
            (1, _) => String::new(),
            (count, Some(kind)) => format!(", one of {count} with {kind}"),
            (count, None) => format!(", one of {count} for the same reason"),
        };
        let first = group.outcomes[0];
        let block = in_full(first, &same, &failure_in_short(first, columns));
        if text.is_empty() || text.lines().count() + block.lines().count() <= IN_FULL {
            text.push_str(&block);
        } else {
            omitted += 1;
        }
    }
    let omitted = (omitted > 0).then(|| counted(omitted, "other cause", "other causes"));
    let known = (known > 0).then(|| counted(known, "known cause", "known causes"));
    let known = known.map(|known| known + " of this runtime");
    let below: Vec<String> = omitted.into_iter().chain(known).collect();
    if !below.is_empty() {
        let note = format!(
            "listed below: {}; --verbose shows each failure",
            below.join(" and ")
        );
        text.extend(["\n", &wrapped(&note, columns), "\n"]);
    }
    text
}

/// Whether an outcome has details that a line does not show.
pub fn has_details(outcome: &Outcome) -> bool {
    match outcome.verdict {
        Verdict::Fail | Verdict::UnexpectedPass => true,
        Verdict::Error => !outcome.evidence.is_empty(),
        Verdict::Pass | Verdict::Known | Verdict::Skip | Verdict::Inconclusive => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{by_cause, failures, ids};
    use crate::history::{EventKind, Seq};
    use crate::outcome::{Fact, Kind, Mismatch, Outcome, Verdict, Violation};
    use crate::report::fixture::{failed, outcome, violation};

    /// A failed outcome with findings of these kinds.
    fn with(id: &str, kinds: &[Kind]) -> Outcome {
        let found = |kind: &Kind| Violation {
            subject: "STOPPED of c".to_owned(),
            mismatch: Mismatch::new(
                *kind,
                [
                    Fact::Of("STOPPED of c".to_owned()),
                    Fact::Event(EventKind::Stopped),
                ],
                [Fact::Text("it".to_owned())],
            ),
            ..violation("it")
        };
        Outcome {
            violations: kinds.iter().map(found).collect(),
            ..outcome(id, "order::it", Verdict::Fail)
        }
    }

    fn grouped(outcomes: &[Outcome]) -> Vec<(Option<Kind>, String)> {
        let groups = by_cause(outcomes.iter());
        groups
            .iter()
            .map(|it| (it.kind, ids(&it.outcomes)))
            .collect()
    }

    #[test]
    fn an_outcome_belongs_to_the_kind_that_most_share() {
        let outcomes = [
            with("INV-11", &[Kind::MissingStopped]),
            with("ORD-01", &[Kind::RefutedWait, Kind::MissingStopped]),
            with("ORD-02", &[Kind::MissingStopped]),
            with("ORD-03", &[Kind::RefutedWait]),
        ];
        assert_eq!(
            grouped(&outcomes),
            [
                (
                    Some(Kind::MissingStopped),
                    "INV-11 ORD-01 ORD-02".to_owned()
                ),
                (Some(Kind::RefutedWait), "ORD-03".to_owned()),
            ]
        );
        // A case that fails of this alone proves it best.
        let first = |outcomes: &[Outcome]| by_cause(outcomes.iter())[0].outcomes[0].id.to_string();
        assert_eq!(first(&outcomes), "ORD-02");
    }

    #[test]
    fn the_order_in_which_cases_end_changes_nothing() {
        let numbered = |repetition| Outcome {
            repetition: Some(repetition),
            ..with("ORD-01", &[Kind::RefutedWait])
        };
        let other = with("ORD-02", &[Kind::MissingStopped]);
        let mut outcomes = [numbered(1), numbered(2), other.clone(), other];
        let text = failures(&outcomes, false, 100);
        outcomes.reverse();
        assert_eq!(failures(&outcomes, false, 100), text);
        assert!(
            text.contains("---- ORD-01 order::it#1, one of 2 "),
            "{text}"
        );
    }

    #[test]
    fn what_is_undecided_for_one_reason_has_one_cause() {
        let undecided = |id: &str, reason: &str| Outcome {
            reason: Some(reason.to_owned()),
            ..outcome(id, "order::it", Verdict::Error)
        };
        let outcomes = [
            undecided("ORD-01", "lost"),
            undecided("ORD-02", "late"),
            undecided("ORD-03", "lost"),
        ];
        let expected = [
            (None, "ORD-01 ORD-03".to_owned()),
            (None, "ORD-02".to_owned()),
        ];
        assert_eq!(grouped(&outcomes), expected);
    }

    #[test]
    fn one_failure_of_each_cause_is_shown_as_long_as_they_fit() {
        let text = failures(&vec![failed(); 100], false, 100);
        assert_eq!(text.matches("---- ORD-01").count(), 1, "{text}");
        assert!(
            text.contains(", one of 100 with refuted-wait ----\n"),
            "{text}"
        );
        assert_eq!(
            failures(&vec![failed(); 100], true, 100)
                .matches("---- ORD-01")
                .count(),
            100
        );
        let long = |id: &str, kind| Outcome {
            why: "word ".repeat(1_000).into(),
            ..with(id, &[kind])
        };
        let outcomes = [
            long("ORD-01", Kind::RefutedWait),
            with("ORD-02", &[Kind::MissingStopped]),
        ];
        let text = failures(&outcomes, false, 100);
        assert!(text.contains("---- ORD-01 order::it ----"), "{text}");
        assert!(text.ends_with("listed below: 1 other cause; --verbose shows each failure\n"));
        assert_eq!(failures(&[], false, 100), "");
    }

    #[test]
    fn of_many_causes_those_known_of_the_runtime_are_not_shown_in_full() {
        let kinds = [
            Kind::RefutedWait,
            Kind::MissingStarted,
            Kind::MissingDeleted,
            Kind::MissingStopped,
        ];
        let known = |kind| Outcome {
            hint: Some("a race".to_owned()),
            ..with("ORD-01", &[kind])
        };
        let mut outcomes = kinds.map(known);
        let note = |causes| {
            format!("\nlisted below: {causes} of this runtime; --verbose shows each failure\n")
        };
        assert_eq!(failures(&outcomes, false, 100), note("4 known causes"));
        let few = failures(&outcomes[1..], false, 100);
        assert!(few.starts_with("\n---- ORD-01 "), "{few}");
        outcomes[3] = with("ORD-02", &[Kind::MissingStopped]);
        let text = failures(&outcomes, false, 100);
        let is_short =
            text.starts_with("\n---- ORD-02 ") && text.ends_with(&note("3 known causes"));
        assert!(is_short, "{text}");
    }

    #[test]
    fn violations_of_one_kind_are_shown_once() {
        let mut outcome = with("ORD-01", &[Kind::RefutedWait; 9]);
        for (nth, violation) in (0..).zip(&mut outcome.violations) {
            violation.evidence = vec![Seq(nth)];
            violation.subject = nth.to_string();
        }
        outcome
            .violations
            .extend(with("ORD-01", &[Kind::MissingStopped]).violations);
        let text = failures(&[outcome], false, 100);
        assert_eq!(text.matches("finding").count(), 2, "{text}");
        assert!(
            text.ends_with("… 8 more, which the written reports show\n"),
            "{text}"
        );
    }
}
