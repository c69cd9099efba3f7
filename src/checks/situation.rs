//! Whether a case's situation has arisen.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge::Claim;
use crate::history::{
    CaseHistory, ContainerId, EventKind, HostFact, HostInstant, Observed, Reply, Request, Seq,
};

/// A situation that a case provokes. Without it the case is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a situation such as `oom-kill`"
)]
pub enum Situation {
    /// The kernel's OOM killer killed a process.
    OomKill,
    /// A subscriber that does not read was more than this many events behind, without those that
    /// are under way to it, or calls stood still. So it had as many events to catch up with, or the
    /// runtime kept no more.
    Behind(u32),
    /// This many containers ran at the same time.
    Alive(u32),
}

/// What is under way to a subscriber that does not read, where no runtime can see it: the window of
/// its stream, 64 KiB in gRPC, and the buffers of a socket, 208 KiB at either end.
const UNDER_WAY_BYTES: u64 = 512 << 10;

/// A call that takes this long, while nothing else happens, waits for something.
const STANDSTILL: Duration = Duration::from_secs(1);

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
        Situation::Alive(wanted) => {
            let most = most_alive(history);
            (most < wanted as usize).then(|| {
                format!("at most {most} containers ran at the same time, where {wanted} are needed")
            })
        }
        Situation::Behind(wanted) => {
            let stalled = history.observed().filter(|it| it.observer().stalls);
            let most = stalled.map(|it| events_behind(history, it)).max();
            let most = most.unwrap_or_default();
            (most <= wanted as usize && !stood_still(history)).then(|| {
                format!(
                    "the subscriber that does not read was at most {most} events behind, where \
                     more than {wanted} are needed, and no call waited for it"
                )
            })
        }
    }
}

/// How many containers ran at the same time at most: their starts were called and succeeded, and
/// STOPPED had not come.
fn most_alive(history: &CaseHistory) -> usize {
    let mut changes: Vec<(Seq, isize)> = Vec::new();
    for call in history.calls() {
        if let (Request::StartContainer(id), Some(Ok(_))) = (call.request(), call.result()) {
            let mut subjects = history.subjects().iter();
            let started = subjects.find(|subject| subject.id == *id);
            let stopped = started.and_then(|it| it.first(EventKind::Stopped));
            changes.push((call.began().seq, 1));
            changes.extend(stopped.map(|seen| (seen.seq(), -1)));
        }
    }
    changes.sort_unstable();
    let alive = changes.iter().scan(0, |alive, (_, change)| {
        *alive += change;
        Some(*alive)
    });
    alive
        .max()
        .unwrap_or_default()
        .try_into()
        .unwrap_or_default()
}

/// How many events a subscription was behind at most, until it or the steps ended, without those
/// that may be under way.
fn events_behind(history: &CaseHistory, observed: &Observed) -> usize {
    let Some(live) = observed.proven().map(|proven| proven.seq) else {
        return 0;
    };
    let ended = observed.ended().map(|(ended, _)| ended.seq);
    let counts =
        |seq: Seq| seq > live && ended.is_none_or(|ended| seq < ended) && history.within_steps(seq);
    let made = events_made(history, counts);
    let events = observed.events().filter(|seen| counts(seen.seq()));
    let mut read = BTreeMap::new();
    for seen in events {
        let event = (seen.event().container.clone(), seen.event().kind);
        if made.contains_key(&event) {
            read.entry(event).or_insert(seen.seq());
        }
    }
    // It is furthest behind before it reads something, or at the end.
    let mut changes: Vec<(Seq, isize)> = made.values().map(|(since, _)| (*since, 1)).collect();
    changes.extend(read.values().map(|seq| (*seq, -1)));
    changes.sort_unstable();
    let mut behind = 0;
    let furthest = changes.iter().map(|(seq, change)| {
        behind += change;
        (behind, *seq)
    });
    let Some((_, at)) = furthest.max() else {
        return 0;
    };
    let is_unread = |event| read.get(event).is_none_or(|seq| *seq > at);
    let unread = made
        .iter()
        .filter(|(event, (since, _))| *since <= at && is_unread(event));
    let mut unread: Vec<(Seq, u64)> = unread.map(|(_, made)| *made).collect();
    unread.sort_unstable();
    let mut bytes = 0;
    let queued = unread.iter().filter(|(_, size)| {
        bytes += size;
        bytes > UNDER_WAY_BYTES || *size == 0
    });
    queued.count()
}

/// The events of a time by their container and kind: since when each exists, and its size, 0 if
/// that is not known. It exists from its arrival on the main stream or from the return of the call
/// that caused it, whichever is earlier: a runtime may hold up the main stream, too.
fn events_made(
    history: &CaseHistory,
    counts: impl Fn(Seq) -> bool,
) -> BTreeMap<(ContainerId, EventKind), (Seq, u64)> {
    let mut made = BTreeMap::new();
    let arrivals = history.subjects().iter().flat_map(|it| &it.arrivals);
    for seen in arrivals.filter(|seen| counts(seen.seq())) {
        let event = (seen.event().container.clone(), seen.event().kind);
        let arrived = (seen.seq(), seen.bytes().into());
        made.entry(event).or_insert(arrived);
    }
    for call in history.calls() {
        let (Some(Ok(reply)), Some(ended)) = (call.result(), call.ended()) else {
            continue;
        };
        let (id, kind) = match (call.request(), reply) {
            (Request::CreateContainer(_), Reply::Container(id)) => (id, EventKind::Created),
            (Request::StartContainer(id), _) => (id, EventKind::Started),
            (Request::RemoveContainer(id), _) => (id, EventKind::Deleted),
            _ => continue,
        };
        if counts(call.began().seq) && counts(ended.seq) {
            let event = made.entry((id.clone(), kind)).or_insert((ended.seq, 0));
            event.0 = event.0.min(ended.seq);
        }
    }
    made
}

/// Whether a call that changes a container waited for [`STANDSTILL`] or longer, until it returned
/// or was given up, without an event or the return of another such call meanwhile.
fn stood_still(history: &CaseHistory) -> bool {
    let changing = || {
        history.calls().filter(|call| {
            matches!(
                call.request(),
                Request::CreateContainer(_)
                    | Request::StartContainer(_)
                    | Request::StopContainer { .. }
                    | Request::RemoveContainer(_)
            ) && history.within_steps(call.began().seq)
        })
    };
    let arrivals = history.subjects().iter().flat_map(|it| &it.arrivals);
    let returned = changing().filter(|call| matches!(call.result(), Some(Ok(_))));
    let happened: BTreeMap<Seq, HostInstant> = arrivals
        .map(|seen| (seen.seq(), seen.at()))
        .chain(returned.filter_map(|call| call.ended().map(|ended| (ended.seq, ended.at))))
        .collect();
    changing().any(|call| {
        call.ended().is_some_and(|ended| {
            let last = happened.range(call.began().seq..ended.seq).next_back();
            let since = last.map_or(call.began().at, |(_, at)| *at);
            ended.at.since(since) >= STANDSTILL
        })
    })
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
        let script = "pod run; pod STARTED; c create; c CREATED; c start; c STARTED at=-10s; end";
        for mut entry in script::entries(script) {
            if entry.seq.0 >= 7 {
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

    /// Whether a case that needs two events in the queue proves something, after these statements.
    #[track_caller]
    fn behind(script: &str) -> Option<String> {
        let case = case("STR-11");
        let claim = Claim {
            provokes: Some(Situation::Behind(1)),
            ..case.claim()
        };
        let begun = "pod run; observe 7 as=b stalls proven";
        missing(&claim, &script::history(&format!("{begun}; {script}; end")))
    }

    #[test]
    fn a_subscriber_is_behind_by_what_it_has_not_read() {
        let one = "the subscriber that does not read was at most 1 events behind, where more than 1 \
                   are needed, and no call waited for it";
        let created = "c create; c CREATED; d create; d CREATED";
        assert_eq!(behind(created), None);
        let read_one = "c create; c CREATED; c CREATED on=7; d create; d CREATED";
        assert_eq!(behind(read_one).as_deref(), Some(one));
        // Later it reads on, or its stream ends.
        assert_eq!(
            behind(&format!("{created}; c CREATED on=7; d CREATED on=7")),
            None
        );
        assert_eq!(behind(&format!("{created}; observe 7 ends=8")), None);
        let ended = "c create; c CREATED; observe 7 ends=8; d create; d CREATED";
        assert_eq!(behind(ended).as_deref(), Some(one));
        // What the main stream does not bring either exists once its call has returned.
        assert_eq!(behind("c create; d create"), None);
    }

    #[test]
    fn what_is_under_way_to_a_subscriber_is_not_in_a_queue() {
        let sized = |bytes: u32| {
            behind(&format!(
                "c create; c CREATED bytes={bytes}; d create; d CREATED bytes=9"
            ))
        };
        assert!(sized(512 << 10).is_some());
        assert_eq!(sized((512 << 10) + 1), None);
    }

    #[test]
    fn a_call_that_waits_alone_shows_that_no_more_is_kept() {
        assert_eq!(behind("c create begins; pass 1s; c create returns"), None);
        let moved = "c create begins; pass 900ms; c CREATED; c CREATED on=7; pass 900ms; \
                     c create returns";
        assert!(behind(moved).is_some());
    }

    #[test]
    fn containers_are_alive_from_start_to_stopped() {
        let case = case("SCL-01");
        let claim = Claim {
            provokes: Some(Situation::Alive(2)),
            ..case.claim()
        };
        let two = |script: &str| {
            let script = format!("pod run; pod STARTED; {script}; end");
            missing(&claim, &script::history(&script))
        };
        let one = "at most 1 containers ran at the same time, where 2 are needed";
        let apart = "c create; c start; c STOPPED; d create; d start; d STOPPED";
        assert_eq!(two(apart).as_deref(), Some(one));
        let together = "c create; c start; d create; d start; c STOPPED; d STOPPED";
        assert_eq!(two(together), None);
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
