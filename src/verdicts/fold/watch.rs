//! The part of the verdicts that concerns a watch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::known::WATCH;
use super::super::tallies::Tally;
use super::super::watched::{Measure, WatchNews, Watched};
use super::Verdicts;
use crate::history::{CaseHistory, CaseRun, Entry, Seq};

impl Verdicts {
    /// Processes the next entry of a watch, and judges the pods that are idle now.
    pub(super) fn watch(&mut self, entry: &Arc<Entry>) {
        let quiet = self.watched.as_mut().map(|watched| watched.push(entry));
        self.judge_pods(quiet.unwrap_or_default(), entry.seq);
    }

    pub(super) fn judge_pods(&mut self, histories: Vec<CaseHistory>, at: Seq) {
        let Some(watched) = &mut self.watched else {
            return;
        };
        for history in histories {
            let measure = Measure {
                profiles: &self.plan.profiles,
                known: &self.plan.known,
                filled: &self.found.filled(),
            };
            let found = watched.judge(&history, &measure);
            self.found.add_pod(at, found);
        }
        let tally = Tally {
            case: WATCH.into(),
            ended: at,
            containers: usize::try_from(watched.totals.containers).unwrap_or(usize::MAX),
            seen: BTreeMap::new(),
        };
        self.tallies.add(CaseRun(0), tally);
    }

    /// Whether a pod of a watch has changed lately, so that even relists without changes matter.
    pub fn is_following_pods(&self) -> bool {
        let watched = self.watched.as_ref();
        watched.is_some_and(|watched| watched.pods.is_following())
    }

    /// Removes the violations of a watch since the last call.
    pub fn take_news(&mut self) -> Vec<WatchNews> {
        let watched = self.watched.as_mut();
        watched.map(Watched::take_news).unwrap_or_default()
    }
}
