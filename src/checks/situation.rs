//! Whether a case's situation has arisen.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge::Claim;
use crate::history::{CaseHistory, HostFact};

/// A situation that a case provokes. Without it the case is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a situation such as `oom-kill`"
)]
pub enum Situation {
    /// The kernel's OOM killer killed a process.
    OomKill,
}

/// The reason why the case proves nothing, if its situation did not arise.
pub(super) fn missing(claim: &Claim<'_>, history: &CaseHistory) -> Option<String> {
    let unwanted = !claim.sets_clock;
    if let Some(set_by_ns) = history.clock_set_by().filter(|_| unwanted) {
        let set_by = Duration::from_nanos(set_by_ns.unsigned_abs());
        return Some(format!(
            "the host's wall clock was set meanwhile, by {set_by:?}: times cannot be compared"
        ));
    }
    match claim.provokes? {
        Situation::OomKill => {
            let kills: Vec<u64> = history
                .facts()
                .filter_map(|fact| match fact {
                    HostFact::OomKills(kills) => Some(*kills),
                    _ => None,
                })
                .collect();
            match kills[..] {
                [first, .., last] => (last <= first).then(|| {
                    format!("the kernel's count of OOM kills stayed at {first}: nothing was killed")
                }),
                [] | [_] => Some("the kernel's count of OOM kills was not read".to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::case::{Case, load};
    use crate::checks::judge;
    use crate::history::{Body, CaseRun, Entry};
    use crate::oracle::{Index, invariants, script};

    /// `created_at` of STARTED is 10 s before that of CREATED; the wall clock is wrong by this from
    /// the call of the start on.
    fn started_in_the_past(wrong_by_ns: i64) -> CaseHistory {
        let mut history = CaseHistory::new(CaseRun(1));
        let script = "pod run; c create; c CREATED; c start; c STARTED at=-10s; end";
        for mut entry in script::entries(script) {
            if entry.seq.0 >= 6 {
                entry.at.realtime_ns += wrong_by_ns;
            }
            history.push(&Arc::new(entry));
        }
        history
    }

    fn broken(history: &CaseHistory) -> Vec<String> {
        let broken = invariants(&Index::new(history)).into_iter();
        broken.map(|violation| violation.rule).collect()
    }

    fn case(id: &str) -> Case {
        let cases = load::embedded().expect("the cases are valid");
        cases
            .into_iter()
            .find(|case| case.id == id)
            .expect("it is there")
    }

    #[test]
    fn a_lost_oom_kill_is_proven_by_the_kernels_count() {
        let history = script::history(
            "pod run; kills 12; hog create; hog CREATED; hog start; hog STARTED; hog STOPPED \
             exit=137; kills 15; end",
        );
        let is_count = |entry: &&Arc<Entry>| matches!(entry.body, Body::Fact { .. });
        let counts = history
            .entries()
            .iter()
            .filter(is_count)
            .map(|entry| entry.seq);
        let judgement = judge(&case("OOM-01").claim(), &Index::new(&history));
        assert_eq!(judgement.undecided, None);
        let [lost] = &judgement.violations[..] else {
            panic!("{judgement:#?}");
        };
        assert!(lost.actual().contains("137"), "{lost:#?}");
        for count in counts {
            assert!(lost.evidence.contains(&count), "{lost:#?}");
        }
        assert!(lost.evidence.is_sorted(), "{lost:#?}");
    }

    #[test]
    fn times_convict_nobody_while_the_clock_is_set() {
        let violated = broken(&started_in_the_past(0));
        assert!(violated.iter().any(|rule| rule == "INV-05"), "{violated:?}");
        assert_eq!(broken(&started_in_the_past(-999_000_000)), violated);
        assert!(broken(&started_in_the_past(-10_000_000_000)).is_empty());
        assert!(broken(&started_in_the_past(10_000_000_000)).is_empty());
    }

    #[test]
    fn a_case_is_inconclusive_if_another_program_sets_the_clock() {
        let (other, own) = (case("ORD-07"), case("TIM-07"));
        assert_eq!(missing(&other.claim(), &started_in_the_past(0)), None);
        let set = started_in_the_past(-10_000_000_000);
        let why = "the host's wall clock was set meanwhile, by 10s: times cannot be compared";
        assert_eq!(missing(&other.claim(), &set).as_deref(), Some(why));
        assert_eq!(missing(&own.claim(), &set), None);
    }
}
