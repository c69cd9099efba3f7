//! What a case expects of what its steps caused.
//!
//! Each check is assessed for each sandbox or container of its name, as holding, broken, or still
//! to come. A driver waits while something is to come; the judge takes that for broken.

mod aftermath;
mod calls;
mod content;
mod filters;
mod gaps;
mod latency;
mod readings;
mod status;
mod subscriptions;
#[cfg(test)]
pub(super) mod tests;
mod time;
mod timing;
mod unproven;

use super::relist::relists_of;
use super::{entries_about, name_of};
use crate::case::{Case, Check, EventRef, Expectation, OrderCheck};
use crate::history::{CaseHistory, EventKind, SandboxId, Seq, Sighting, Subject, SubjectKind};
use crate::outcome::{Level, Mismatch, Violation};
pub(super) use calls::{is_about, makes};
pub use latency::latencies;
pub(super) use unproven::{held_up_at_the_end, unproven};

/// What a history says of one check on one subject.
enum Finding {
    Holds,
    /// Something that the check needs has not come yet.
    Pending {
        awaited: String,
        evidence: Vec<Seq>,
    },
    Broken {
        expected: String,
        actual: String,
        evidence: Vec<Seq>,
    },
    /// It would be broken, had the suite itself not been late: how, in a sentence.
    Unproven(String),
}

use Finding::{Broken, Holds, Pending, Unproven};

/// What the case's binding expectations still wait for, as a phrase: `STOPPED of c`.
#[must_use]
pub fn pending(case: &Case, history: &CaseHistory) -> Option<String> {
    let binding = case
        .expect
        .iter()
        // A rule never waits, and some are dear to ask.
        .filter(|expectation| !matches!(expectation.check, Check::Keeps(_)))
        .filter(|expectation| expectation.level == Level::Must);
    binding
        .flat_map(|expectation| findings(&expectation.check, history))
        .find_map(|(about, finding)| match finding {
            Pending { awaited, .. } => Some(format!("{awaited} of {}", about.label)),
            Holds | Broken { .. } | Unproven(_) => None,
        })
}

/// The broken expectations of a case whose steps are over.
pub(super) fn check(case: &Case, history: &CaseHistory) -> Vec<Violation> {
    case.expect
        .iter()
        .flat_map(|expectation| broken(case, expectation, history))
        .collect()
}

fn broken(case: &Case, expectation: &Expectation, history: &CaseHistory) -> Vec<Violation> {
    let Expectation { level, check } = expectation;
    let violation = |subject: String, expected, actual, evidence| Violation {
        rule: case.id.clone(),
        level: *level,
        sentence: case.title.clone(),
        subject,
        mismatch: Mismatch::in_words::<String, String>(expected, actual),
        evidence,
    };
    let mut names = names_in(check).into_iter();
    let findings = findings(check, history);
    let none = |name: &&str| match check {
        Check::Aftermath(_) => findings.is_empty(),
        _ => !is_there(history, name),
    };
    if let Some(name) = names.find(none) {
        let actual = "the case made none, so that nothing could be checked".to_owned();
        return vec![violation(
            name.to_owned(),
            format!("`{name}`"),
            actual,
            Vec::new(),
        )];
    }
    let is_unread = held_up_at_the_end(history).is_some();
    let broken = findings
        .into_iter()
        .filter_map(|(about, finding)| match finding {
            Holds | Unproven(_) => None,
            Pending { .. } if is_unread => None,
            Pending { awaited, evidence } => {
                let actual = "it has not come".to_owned();
                Some(violation(about.name, awaited, actual, evidence))
            }
            Broken {
                expected,
                actual,
                evidence,
            } => Some(violation(about.name, expected, actual, evidence)),
        });
    broken.collect()
}

/// The names that a check looks at.
fn names_in(check: &Check) -> Vec<&str> {
    let mut names = vec![name_in(check)];
    if let Check::Order(OrderCheck { then, .. }) = check {
        names.push(&then.of);
    }
    names
}

/// The name whose subjects a check assesses.
fn name_in(check: &Check) -> &str {
    match check {
        Check::Events(check) => &check.of,
        Check::Includes(check) => &check.of,
        Check::Never(check) | Check::Learnt(check) => &check.of,
        Check::Status(check) => &check.of,
        Check::Timing(check) => &check.of,
        Check::Order(check) => &check.first.of,
        Check::Shown(check) => &check.of,
        Check::SandboxState(check) => &check.of,
        Check::Latency(check) => &check.of,
        Check::MessageSize(check) => &check.of,
        Check::Keeps(check) => &check.of,
        Check::Aftermath(check) => &check.of,
        Check::NoRepeats(name)
        | Check::Filtered(name)
        | Check::Addresses(name)
        | Check::SandboxStatus(name)
        | Check::OwnStatus(name)
        | Check::Announced(name)
        | Check::Answered(name)
        | Check::Final(name)
        | Check::Explained(name)
        | Check::SameStatus(name)
        | Check::AllContainers(name)
        | Check::AsAskedFor(name)
        | Check::Stamped(name)
        | Check::Times(name)
        | Check::Unchanged(name) => &name.of,
        Check::SameEvents(check)
        | Check::SameReplay(check)
        | Check::StaysOpen(check)
        | Check::NothingOlder(check) => &check.of,
        Check::Headers(check) => &check.of,
        Check::Ended(check) => &check.of,
        Check::Replay(check) => &check.of,
    }
}

/// Whom a finding is about, in short and in full.
struct About {
    label: String,
    name: String,
}

/// Whether the case has made something of this name.
fn is_there(history: &CaseHistory, name: &str) -> bool {
    let mut observed = history.observed();
    history.named(name).next().is_some()
        || observed.any(|observed| observed.observer().binding == name)
}

fn findings(check: &Check, history: &CaseHistory) -> Vec<(About, Finding)> {
    if let Check::Aftermath(check) = check {
        let findings = aftermath::findings(check, history).into_iter();
        let about = |label: String| About {
            name: label.clone(),
            label,
        };
        return findings
            .map(|(label, finding)| (about(label), finding))
            .collect();
    }
    let name = name_in(check);
    let subjects = history.named(name).map(|subject| {
        let about = About {
            label: subject.label(),
            name: name_of(subject),
        };
        (about, assess(check, history, subject))
    });
    let observed = history.observed();
    let observed = observed.filter(|observed| observed.observer().binding == name);
    let observed = observed.map(|observed| {
        let about = About {
            label: name.to_owned(),
            name: format!("{name}, stream {}", observed.id()),
        };
        (about, subscriptions::assess(check, history, observed))
    });
    subjects.chain(observed).collect()
}

fn assess(check: &Check, history: &CaseHistory, subject: &Subject) -> Finding {
    let events = Events { history, subject };
    match check {
        Check::Events(check) => events.are_exactly(&check.exactly),
        Check::Includes(check) => events.include(&check.in_order),
        Check::Never(check) => events.lack(check.event),
        Check::NoRepeats(_) => events.do_not_repeat(),
        Check::Status(check) => events.have_status(check),
        Check::SandboxStatus(_) => events.each(sandbox_status),
        Check::OwnStatus(_) => events.each(own_status),
        Check::Timing(check) => events.come_in_time(check),
        Check::Order(OrderCheck { first, then }) => events.come_before(first, then),
        Check::Announced(_) => events.announce_the_relist(),
        Check::Learnt(event) => events.are_learnt(event.event),
        Check::Replay(check) => events.are_replayed(&check.all),
        Check::Unchanged(_) => gaps::unchanged(history, subject),
        Check::SameEvents(_)
        | Check::SameReplay(_)
        | Check::StaysOpen(_)
        | Check::NothingOlder(_)
        | Check::Headers(_)
        | Check::Ended(_) => Holds,
        Check::Filtered(_) => events.are_filtered(),
        Check::Addresses(_) => events.tell_the_addresses(),
        Check::Shown(check) => events.are_shown(check),
        Check::Answered(_) => events.are_answered(),
        Check::Final(_) => events.are_final(),
        Check::Explained(_) => events.explain_the_end(),
        Check::SameStatus(_) => events.show_the_status(),
        Check::AllContainers(_) => events.show_all_containers(),
        Check::AsAskedFor(_) => events.each(content::as_asked_for),
        Check::SandboxState(check) => events.have_sandbox_state(check),
        Check::Stamped(_) => events.are_stamped(),
        Check::Times(_) => events.have_times_within_calls(),
        Check::Latency(check) => events.arrive_soon(check),
        Check::MessageSize(check) => events.are_small(check),
        Check::Keeps(check) => events.keep(check),
        Check::Aftermath(_) => unreachable!("`findings` looks at the calls for it"),
    }
}

/// The events about one subject that came before the teardown.
struct Events<'a> {
    history: &'a CaseHistory,
    subject: &'a Subject,
}

impl<'a> Events<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Sighting> {
        let history = self.history;
        self.subject
            .sightings
            .iter()
            .filter(move |seen| history.within_steps(seen.seq()))
    }

    /// What happened. A replay to a new subscriber tells of nothing new.
    fn kinds(&self) -> Vec<EventKind> {
        let told: Vec<_> = self.all().collect();
        let is_replay = |later: &Sighting, earlier: &&Sighting| {
            let (again, first) = (later.event(), earlier.event());
            earlier.subscription() != later.subscription()
                && (again.kind, again.created_at) == (first.kind, first.created_at)
        };
        let news = told.iter().enumerate().filter(|(place, later)| {
            !told[..*place]
                .iter()
                .any(|earlier| is_replay(later, earlier))
        });
        news.map(|(_, sighting)| sighting.event().kind).collect()
    }

    fn first(&self, kind: EventKind) -> Option<&'a Sighting> {
        self.all().find(|sighting| sighting.event().kind == kind)
    }

    fn awaited(&self, kind: EventKind) -> Finding {
        let evidence = entries_about(self.history, self.subject);
        Pending {
            awaited: kind.to_string(),
            evidence,
        }
    }

    fn broken(&self, expected: impl Into<String>, actual: impl Into<String>) -> Finding {
        let evidence = self.all().map(Sighting::seq).collect();
        Broken {
            expected: expected.into(),
            actual: actual.into(),
            evidence,
        }
    }

    fn are_exactly(&self, exactly: &[EventKind]) -> Finding {
        let kinds = self.kinds();
        if kinds == exactly {
            Holds
        } else if exactly.starts_with(&kinds) {
            self.awaited(exactly[kinds.len()])
        } else {
            self.broken(listed(exactly), listed(&kinds))
        }
    }

    fn include(&self, in_order: &[EventKind]) -> Finding {
        let kinds = self.kinds();
        if let Some(missing) = in_order.iter().find(|kind| !kinds.contains(kind)) {
            return self.awaited(*missing);
        }
        let mut rest = kinds.iter();
        let in_place = in_order.iter().all(|kind| rest.any(|seen| seen == kind));
        if in_place {
            Holds
        } else {
            self.broken(
                format!("{}, in this order", listed(in_order)),
                listed(&kinds),
            )
        }
    }

    fn lack(&self, kind: EventKind) -> Finding {
        match self.first(kind) {
            None => Holds,
            Some(_) => self.broken(format!("no {kind}"), listed(&self.kinds())),
        }
    }

    fn do_not_repeat(&self) -> Finding {
        let kinds = self.kinds();
        let repeated = kinds
            .iter()
            .enumerate()
            .find(|(place, kind)| kinds[..*place].contains(kind));
        match repeated {
            None => Holds,
            Some((_, kind)) => self.broken(format!("{kind} once"), listed(&kinds)),
        }
    }

    fn each(&self, check: fn(&Subject, &Sighting) -> Option<(String, String)>) -> Finding {
        let broken = self.all().find_map(|sighting| {
            let (expected, actual) = check(self.subject, sighting)?;
            Some(Broken {
                expected,
                actual,
                evidence: vec![sighting.seq()],
            })
        });
        broken.unwrap_or(Holds)
    }

    fn come_before(&self, first: &EventRef, then: &EventRef) -> Finding {
        let Some(sighting) = self.first(first.event) else {
            return self.awaited(first.event);
        };
        for subject in self.history.named(&then.of) {
            let others = Events {
                history: self.history,
                subject,
            };
            let Some(other) = others.first(then.event) else {
                let awaited = format!("{} of {} after that", then.event, subject.label());
                return Pending {
                    awaited,
                    evidence: vec![sighting.seq()],
                };
            };
            if other.seq() < sighting.seq() {
                let expected = format!("{} before {} of {}", first.event, then.event, then.of);
                let actual = "it came later".to_owned();
                return Broken {
                    expected,
                    actual,
                    evidence: vec![other.seq(), sighting.seq()],
                };
            }
        }
        Holds
    }

    fn announce_the_relist(&self) -> Finding {
        let missed = relists_of(self.history, self.subject).find_map(|relist| {
            let (shown, needed) = relist.announcement()?;
            self.first(needed)
                .is_none()
                .then_some((relist, shown, needed))
        });
        let Some((relist, shown, needed)) = missed else {
            return Holds;
        };
        let mut evidence = entries_about(self.history, self.subject);
        evidence.extend([relist.began.seq, relist.ended.seq]);
        evidence.sort_unstable();
        evidence.dedup();
        Pending {
            awaited: format!("{needed}, for the relist {shown}"),
            evidence,
        }
    }
}

fn sandbox_status(subject: &Subject, sighting: &Sighting) -> Option<(String, String)> {
    let event = sighting.event();
    let (own, uid) = match &subject.kind {
        SubjectKind::Sandbox(spec) => (SandboxId::from(subject.id.as_str()), &spec.uid),
        SubjectKind::Container(spec) => (spec.sandbox.clone(), &spec.sandbox_spec.uid),
        SubjectKind::Stray => return None,
    };
    let actual = match (&event.sandbox, event.pod_uid()) {
        (None, _) => "none".to_owned(),
        (Some(_), None) => "one without metadata".to_owned(),
        (Some(status), Some(told)) if told == uid => {
            return (status.id != own).then(|| {
                let expected = format!("the status of the sandbox {own} in {}", event.kind);
                (expected, format!("that of {}", status.id))
            });
        }
        (Some(_), Some(told)) => format!("the UID `{told}`"),
    };
    Some((
        format!("a sandbox status with the UID `{uid}` in {}", event.kind),
        actual,
    ))
}

fn own_status(_: &Subject, sighting: &Sighting) -> Option<(String, String)> {
    let event = sighting.event();
    let times = event
        .containers
        .iter()
        .filter(|status| status.id == event.container)
        .count();
    let wanted = usize::from(event.kind != EventKind::Deleted);
    (times != wanted).then(|| {
        let expected = format!("{wanted} status of the container in {}", event.kind);
        (
            expected,
            format!("{times}, among {} statuses", event.containers.len()),
        )
    })
}

fn listed(kinds: &[EventKind]) -> String {
    if kinds.is_empty() {
        return "no event".to_owned();
    }
    kinds
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
