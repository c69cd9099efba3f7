//! Selects the cases of a run and orders them. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::case::{Case, Tier};
use crate::outcome::{Levels, Profile};

// Doc comments of fields are the help of options.
/// The selection of cases to run or to judge.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]
pub struct Selection {
    /// Cases to run [default: all of the tier]: an id, or a part of an id or name, such as ORD-01
    /// or order::
    ///
    /// Also a glob for the whole id or name, such as 'ORD-*'; tag:WORD; req:ID for the cases of a
    /// requirement; or the only invariants to judge by, such as INV-15. Several filters, separated
    /// by blanks or commas, select the cases that any of them matches.
    #[arg(id = "filter", value_name = "FILTER", value_delimiter = ',')]
    pub filters: Vec<String>,
    /// The largest tier to run; each tier includes the smaller ones [default: extended; for `check`
    /// all recorded cases]
    #[arg(long, value_enum, help_heading = "Selection")]
    pub tier: Option<Tier>,
    /// Profiles to judge for; a rule that is no MUST in one of them is advice
    #[arg(id = "profile", long, value_name = "PROFILE", value_enum)]
    #[arg(value_delimiter = ',', help_heading = "Verdict")]
    pub profiles: Vec<ProfileChoice>,
    /// Match filters against whole ids or names only
    #[arg(long, hide_short_help = true, help_heading = "Selection")]
    pub exact: bool,
    /// Exclude cases and invariants that match; may be repeated
    #[arg(
        long,
        value_name = "FILTER",
        help_heading = "Selection",
        value_delimiter = ','
    )]
    pub skip: Vec<String>,
    /// Only cases with these ids; all if absent.
    #[arg(skip)]
    pub only: Option<BTreeSet<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileChoice {
    One(Profile),
    All,
}

impl ValueEnum for ProfileChoice {
    fn value_variants<'a>() -> &'a [Self] {
        const {
            &[
                Self::One(Profile::ALL[0]),
                Self::One(Profile::ALL[1]),
                Self::One(Profile::ALL[2]),
                Self::All,
            ]
        }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = "All profiles, which is the default; for `check`, instead of those of the run";
        match self {
            Self::One(profile) => profile.to_possible_value(),
            Self::All => Some(PossibleValue::new("all").help(help)),
        }
    }
}

/// The properties of a case or an invariant for a selection. An absent property excludes nothing.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    pub id: &'a str,
    pub name: &'a str,
    /// The ids of the requirements that it checks.
    pub requirements: Vec<&'a str>,
    pub tags: &'a [String],
    /// The smallest tier that includes it.
    pub tier: Option<Tier>,
    /// The requirement level for each profile.
    pub levels: Option<Levels>,
}

/// One planned execution of a case.
#[derive(Clone, Debug)]
pub struct Planned {
    pub case: Arc<Case>,
    /// From 1; `None` unless cases are repeated.
    pub repetition: Option<u32>,
}

impl Selection {
    pub fn selects(&self, facts: &Facts<'_>) -> bool {
        let mut filters = self.filters.iter().filter(|text| !names_an_invariant(text));
        let wanted =
            self.names_no_case() || filters.any(|filter| facts.matches_filter(filter, self.exact));
        let only = self.only.as_ref();
        let small_enough = match (self.tier, facts.tier) {
            (Some(largest), Some(tier)) => tier <= largest,
            _ => true,
        };
        wanted
            && small_enough
            && only.is_none_or(|only| only.contains(facts.id))
            && !self.excludes(facts)
    }

    /// Whether a case or an invariant is excluded by `--skip` or by the selected profiles.
    pub fn excludes(&self, facts: &Facts<'_>) -> bool {
        let concerns_none = facts
            .levels
            .is_some_and(|levels| levels.highest_of(&self.judged()).is_none());
        concerns_none || facts.matches_any(&self.skip, self.exact)
    }

    /// Whether an invariant is selected: all are, unless filters name some.
    pub fn selects_invariant(&self, invariant: &Facts<'_>) -> bool {
        let mut filters = self.filters.iter().filter(|text| names_an_invariant(text));
        let wanted = !self.names_invariants()
            || filters.any(|filter| invariant.matches_filter(filter, self.exact));
        wanted && !self.excludes(invariant)
    }

    /// Whether no filter names cases: there is none, or all name invariants.
    pub fn names_no_case(&self) -> bool {
        self.filters.iter().all(|filter| names_an_invariant(filter))
    }

    pub fn names_invariants(&self) -> bool {
        self.filters.iter().any(|filter| names_an_invariant(filter))
    }

    /// Whether only part of the tier's cases are selected.
    pub fn is_partial(&self) -> bool {
        !self.filters.is_empty() || !self.skip.is_empty() || self.only.is_some()
    }

    /// The selected profiles: all, unless some are named.
    pub fn judged(&self) -> Vec<Profile> {
        let chosen = |profile: &Profile| {
            let mut choices = self.profiles.iter();
            self.profiles.is_empty()
                || choices.any(|choice| match choice {
                    ProfileChoice::One(one) => one == profile,
                    ProfileChoice::All => true,
                })
        };
        Profile::ALL.into_iter().filter(chosen).collect()
    }

    /// The selected cases with their repetitions, in starting order: first those that may run in
    /// parallel, then exclusive ones, then those that restart the runtime, and last those that set
    /// the host's clock, since later timestamps could still be wrong.
    pub fn plan(&self, cases: Vec<Case>, repeat: u32) -> Vec<Planned> {
        let mut wanted: Vec<Arc<Case>> = cases
            .into_iter()
            .filter(|case| self.selects(&Facts::from_case(case)))
            .map(Arc::new)
            .collect();
        wanted.sort_by(|a, b| (a.exclusive, &a.id).cmp(&(b.exclusive, &b.id)));
        let repetitions = 1..=repeat.max(1);
        let number = |repetition| (repeat > 1).then_some(repetition);
        let round = |repetition| {
            wanted
                .iter()
                .map(move |case| (case.clone(), number(repetition)))
        };
        let mut planned: Vec<Planned> = repetitions
            .flat_map(round)
            .map(|(case, repetition)| Planned { case, repetition })
            .collect();
        planned.sort_by_key(|Planned { case, .. }| {
            (case.exclusive, case.sets_clock(), case.restarts_runtime())
        });
        planned
    }
}

impl<'a> Facts<'a> {
    pub fn from_case(case: &'a Case) -> Self {
        Self {
            id: &case.id,
            name: &case.name,
            requirements: case.requirements.iter().map(String::as_str).collect(),
            tags: &case.tags,
            tier: Some(case.tier),
            levels: Some(case.levels),
        }
    }

    fn matches_any(&self, filters: &[String], exact: bool) -> bool {
        filters
            .iter()
            .any(|filter| self.matches_filter(filter, exact))
    }

    /// Whether a filter matches: `tag:WORD` a tag, `req:ID` a requirement, a glob with `*` or `?`
    /// the whole id or name, and anything else a part of them or, if `exact`, the whole. Ignores
    /// case.
    pub fn matches_filter(&self, filter: &str, exact: bool) -> bool {
        let lower = str::to_ascii_lowercase;
        let (id, name, filter) = (&lower(self.id), &lower(self.name), &lower(filter));
        if let Some(tag) = filter.strip_prefix("tag:") {
            self.tags
                .iter()
                .any(|known| known.eq_ignore_ascii_case(tag))
        } else if let Some(requirement) = filter.strip_prefix("req:") {
            let mut requirements = self.requirements.iter();
            requirements.any(|known| known.eq_ignore_ascii_case(requirement))
        } else if exact {
            filter == id || filter == name || *filter == label(id, name)
        } else if filter.contains(['*', '?']) {
            matches_glob(filter, id) || matches_glob(filter, name)
        } else {
            label(id, name).contains(filter.as_str())
        }
    }
}

/// Whether a filter names invariants, and so selects no cases.
pub fn names_an_invariant(filter: &str) -> bool {
    let filter = filter.to_ascii_lowercase();
    filter.starts_with("inv-") || filter == "inv" || filter.starts_with("invariant")
}

/// The label of a case, which filters match: `ORD-01 order::created-started-stopped-deleted`.
pub fn label(id: &str, name: &str) -> String {
    format!("{id} {name}")
}

/// Whether the whole text matches a glob with `*` for any text and `?` for one character.
fn matches_glob(pattern: &str, text: &str) -> bool {
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
    use super::*;

    const TAGS: &[String] = &[];

    fn facts() -> Facts<'static> {
        Facts {
            id: "ORD-02",
            name: "order::instant-exit",
            requirements: vec!["R9", "C1"],
            tags: TAGS,
            tier: Some(Tier::Extended),
            levels: Some(Levels {
                cache: Some(crate::outcome::Level::Must),
                ..Levels::default()
            }),
        }
    }

    #[track_caller]
    fn check(selection: &Selection, taken: bool) {
        assert_eq!(selection.selects(&facts()), taken, "{selection:?}");
    }

    fn filter(filter: &str) -> Selection {
        Selection {
            filters: vec![filter.to_owned()],
            ..Selection::default()
        }
    }

    #[test]
    fn a_filter_is_a_part_a_pattern_a_tag_or_a_requirement() {
        for taking in [
            "ORD-02", "02", "order::", "ORD-*", "ORD-0?", "order::*", "*exit", "req:R9", "req:c1",
            "ord-02", "Order::", "ord-*",
        ] {
            check(&filter(taking), true);
        }
        for other in ["ORD-03", "RD-*", "ORD-?", "order", "req:R", "req:R99"] {
            check(&filter(other), other == "order");
        }
        let tags = ["slow".to_owned()];
        let tagged = Facts {
            tags: &tags,
            ..facts()
        };
        assert!(
            tagged.matches_filter("tag:slow", false) && tagged.matches_filter("tag:slow", true)
        );
        assert!(
            !tagged.matches_filter("tag:slo", false) && !facts().matches_filter("tag:slow", false)
        );
    }

    #[test]
    fn filters_of_invariants_select_no_case_and_others_no_invariant() {
        let invariant = Facts {
            id: "INV-01",
            name: "invariant::events-in-order",
            ..Facts::default()
        };
        for (filters, case, judged) in [
            (&["INV-01"][..], true, true),
            (&["inv"], true, true),
            (&["INV-0*"], true, true),
            (&["INV-02"], true, false),
            (&["order"], true, true),
            (&["stop"], false, true),
            (&["order", "INV-02"], true, false),
            (&["stop", "invariant::events"], false, true),
        ] {
            let selection = Selection {
                filters: filters.iter().map(ToString::to_string).collect(),
                ..Selection::default()
            };
            check(&selection, case);
            assert_eq!(
                selection.selects_invariant(&invariant),
                judged,
                "{filters:?}"
            );
        }
    }

    #[test]
    fn exact_filters_take_no_pattern() {
        for (text, taken) in [("ORD-02", true), ("ORD-*", false), ("req:R9", true)] {
            let exact = Selection {
                exact: true,
                ..filter(text)
            };
            check(&exact, taken);
        }
    }

    #[test]
    fn a_tier_includes_the_smaller_ones() {
        for (tier, taken) in [
            (Tier::Core, false),
            (Tier::Extended, true),
            (Tier::Full, true),
        ] {
            let of_tier = Selection {
                tier: Some(tier),
                ..Selection::default()
            };
            check(&of_tier, taken);
        }
    }

    #[test]
    fn what_concerns_no_judged_profile_is_left_out() {
        for (profiles, taken) in [
            (vec![], true),
            (vec![Profile::Cache, Profile::Hint], true),
            (vec![Profile::Hint], false),
        ] {
            let judged = Selection {
                profiles: profiles.into_iter().map(ProfileChoice::One).collect(),
                ..Selection::default()
            };
            check(&judged, taken);
            assert_eq!(judged.excludes(&facts()), !taken);
        }
    }

    #[test]
    fn only_and_skip_narrow_what_filters_take() {
        let only = |id: &str| Selection {
            only: Some([id.to_owned()].into()),
            ..filter("ORD")
        };
        check(&only("ORD-02"), true);
        check(&only("ORD-01"), false);
        let skipping = Selection {
            skip: vec!["req:R9".to_owned()],
            ..filter("ORD")
        };
        check(&skipping, false);
    }

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
            assert!(matches_glob(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a", "ab"),
            ("?", ""),
            ("a*d", "abc"),
            ("a?", "a"),
            ("a*b*c", "aabb"),
        ] {
            assert!(!matches_glob(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_more_than_their_time() {
        assert!(!matches_glob(&"a*".repeat(50), &"a".repeat(40)));
        assert!(!matches_glob(
            &format!("{}b", "a*".repeat(30)),
            &"a".repeat(2_000)
        ));
    }
}
