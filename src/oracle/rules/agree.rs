//! INV-28 and INV-29: all that is said of a container or a sandbox agrees, field by field. Both
//! rules have one body: INV-28 judges the answers of calls, which every kubelet reads, and INV-29
//! the snapshots of events.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::history::{Call, ContainerState, EventArrival, EventKind, Request, SubjectKind};
use crate::limits;
use crate::oracle::clocks::{SLACK_NS, TICK_NS, span};
use crate::oracle::fields::{FIELDS, Field, Message, NO_ENTRIES, Since, Value};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST, MUST_SHOULD};
use crate::oracle::name_of;
use crate::oracle::objects::{Object, Source, Statement, is_answer, starts};
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

const KINDS: &[Kind] = &[
    Kind::DiffersFromSpec,
    Kind::FieldChanged,
    Kind::FieldUnset,
    Kind::FieldTooEarly,
    Kind::TimeBeforeCall,
    Kind::TimeAfterCall,
    Kind::TimesOutOfOrder,
    Kind::ZeroTimeOfGo,
];

pub(in crate::oracle) const ANSWERS: Invariant = Invariant {
    id: "INV-28",
    name: "invariant::answers-agree",
    sentence: "Each list and status has the fields of its object as they were requested, set when its state \
               demands it, within the calls that cause them, and as all other answers have them, and shows no \
               exit code 0 of a failure.",
    source: "CRI api.proto, ContainerStatus, Container, PodSandboxStatus and PodSandbox; kubelet \
             toKubeContainerStatus",
    requirements: &["R16", "R17", "R28", "C7", "C8"],
    kinds: KINDS,
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_MUST,
    check: |rule, index| violations(rule, index, false),
};

pub(in crate::oracle) const SNAPSHOTS: Invariant = Invariant {
    id: "INV-29",
    name: "invariant::snapshots-agree",
    sentence: "Each snapshot of an event has the fields of its objects as they were requested, set when their \
               state demands it, within the calls that cause them, and as lists, statuses and \
               other snapshots have them, and shows no exit code 0 of a failure.",
    source: "CRI api.proto, ContainerEventResponse; kubelet evented.go, GeneratePodStatus; cri-o#9663, \
             containerd#12260",
    requirements: &["R13", "R16", "R17", "C7", "C8", "C9"],
    kinds: KINDS,
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check: |rule, index| violations(rule, index, true),
};

/// The maximum delay of `started_at` after the return of `StartContainer`: a runtime can get it
/// from its shim.
const START_SLACK_NS: i64 = 50_000_000;

/// Go's zero time converted to nanoseconds since 1970, which overflows 64 bits: a moment of the
/// year 1754.
const ZERO_TIME_OF_GO_NS: i64 = -6_795_364_578_871_345_152;

/// A difference of this size is one of units, which another rule reports.
const HOUR_NS: u64 = 3_600 * 1_000_000_000;

/// The violations by snapshots of events, or by answers; the first of each kind and field.
fn violations(rule: &Invariant, index: &Index<'_>, of_events: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    let kills = index.history.kills();
    // A monitor on a loaded node is as late as an event may be.
    let slack = index.history.scaled(limits::SAVED_RELIST);
    let slack_ns = i64::try_from(slack.as_nanos()).unwrap_or(i64::MAX);
    for object in index.objects().iter() {
        let mut reported = BTreeSet::new();
        let killed = kills.get(object.subject.id.as_str()).map(|at| Bound {
            ns: at.realtime_ns.saturating_add(slack_ns),
            cause: Some("the kill of its process"),
        });
        for (mismatch, statements) in judge(object, killed, of_events) {
            let field = mismatch
                .actual
                .iter()
                .find(|fact| matches!(fact, Fact::Field(_)));
            if reported.insert((mismatch.kind, field.cloned())) {
                let evidence = statements
                    .iter()
                    .flat_map(|statement| statement.source.evidence());
                let evidence = evidence.collect::<BTreeSet<_>>().into_iter().collect();
                found.push(rule.violation(name_of(object.subject), mismatch, evidence));
            }
        }
    }
    found
}

type Found<'a> = (Mismatch, Vec<Statement<'a>>);

fn judge<'a>(object: &Object<'a>, killed: Option<Bound>, of_events: bool) -> Vec<Found<'a>> {
    let judged = |statement: &&Statement<'a>| statement.is_of_event() == of_events;
    let mut found = Vec::new();
    for statement in object.statements.iter().filter(judged) {
        if is_of_other(object, statement) {
            continue;
        }
        found.extend(other_id(object, statement).map(|mismatch| (mismatch, vec![*statement])));
        let own = FIELDS
            .iter()
            .filter_map(|field| wrong(object, field, statement));
        let own = own.chain(times(object, killed, statement));
        let own = own.chain(false_success(object, statement));
        found.extend(own.map(|mismatch| (mismatch, vec![*statement])));
    }
    for field in FIELDS {
        found.extend(changed(object, field, of_events));
    }
    found
}

/// Another id than that of the object: an event's sandbox is that of its container, and a status
/// is of what was asked for.
fn other_id(object: &Object<'_>, statement: &Statement<'_>) -> Option<Mismatch> {
    let id = object.subject.id.as_str();
    let value = |id: &str| Fact::FieldValue(format!("`{id}`"));
    let field = Fact::Field("id".to_owned());
    (statement.id() != id).then(|| {
        let actual = [field, value(statement.id()), statement.source.fact()];
        Mismatch::new(Kind::DiffersFromSpec, [value(id)], actual)
    })
}

/// Whether an event shows another sandbox than that of its container, which another rule reports.
fn is_of_other(object: &Object<'_>, statement: &Statement<'_>) -> bool {
    let SubjectKind::Sandbox(spec) = &object.subject.kind else {
        return false;
    };
    let Message::Sandbox(status) = statement.message else {
        return false;
    };
    let metadata = status.metadata.as_ref();
    statement.is_of_event() && metadata.is_none_or(|metadata| metadata.uid != spec.uid)
}

/// Whether a field must have its value in a statement; `None` if it may or may not.
fn is_due(object: &Object<'_>, field: &Field, statement: &Statement<'_>) -> Option<bool> {
    let progress = statement.progress();
    match (field.since, progress?) {
        (Since::Creation, _) | (Since::Start | Since::Running, 1) | (Since::Exit, 2) => Some(true),
        (Since::Start, 2) => object.start.map(|_| true),
        (Since::Running, _) => None,
        (Since::Start | Since::Exit, _) => Some(false),
    }
}

/// Whether a snapshot is of a container in its own STARTED.
fn is_own_started(arrival: &EventArrival, statement: &Statement<'_>) -> bool {
    let event = arrival.event();
    event.kind == EventKind::Started && event.container.as_str() == statement.id()
}

/// The value of the request, and of the updates that returned before the statement was made; the
/// entries of other ones are open.
fn given<'a>(object: &Object<'a>, field: &Field, statement: &Statement<'a>) -> Option<Value<'a>> {
    let given = object.made().and_then(|made| (field.made)(made));
    let earlier = object
        .updates
        .iter()
        .filter(|update| field.is_updated && update.began().seq < statement.seq());
    // A snapshot may be older than its event's arrival, but not than the start that it reports.
    let made = match statement.source {
        Source::Call(..) => Some(statement.began()),
        Source::Event(arrival) => object
            .start
            .filter(|_| is_own_started(arrival, statement))
            .map(|start| start.began().seq),
    };
    let is_done = |update: &Call| {
        let is_success = matches!(update.result(), Some(Ok(_)));
        let ended = update.ended().filter(|_| is_success);
        ended.is_some_and(|ended| Some(ended.seq) < made)
    };
    earlier.fold(given, |given, update| match update.request() {
        Request::UpdateContainerResources { resources, .. } => {
            let given = given.unwrap_or(NO_ENTRIES);
            Some(given.updated(resources, is_done(update)))
        }
        _ => given,
    })
}

/// A field that is not as it was requested, not set although its state demands it, or set before.
fn wrong(object: &Object<'_>, field: &Field, statement: &Statement<'_>) -> Option<Mismatch> {
    let value = (field.read)(statement.message)?;
    // containerd 2.x has forgotten when it made a sandbox in its own DELETED; nothing reads it.
    let is_removed = statement.own_event_of_sandbox() == Some(EventKind::Deleted);
    if is_removed && field.name == "created_at" {
        return None;
    }
    let due = is_due(object, field, statement);
    let name = || Fact::Field(field.name.to_owned());
    let shown = || Fact::FieldValue(value.to_string());
    let found = |kind, shown: Option<Fact>| {
        let state = Fact::State(statement.state());
        let facts = [name(), statement.source.fact(), state]
            .into_iter()
            .chain(shown);
        Some(Mismatch::new(kind, [], facts.collect::<Facts>()))
    };
    let given = given(object, field, statement);
    let is_needed = field.is_needed && given.as_ref().is_none_or(Value::is_set);
    if value == Value::Number(ZERO_TIME_OF_GO_NS) {
        found(Kind::ZeroTimeOfGo, None)
    } else if due == Some(true) && is_needed && !value.is_set() {
        found(Kind::FieldUnset, None)
    } else if due == Some(false) && value.is_set() && field.is_unset_before() {
        found(Kind::FieldTooEarly, Some(shown()))
    } else {
        let given = given?;
        let is_given = due != Some(true) || value.has(&given, field.name);
        (!is_given).then(|| {
            let expected = [Fact::FieldValue(given.to_string())];
            let actual = [name(), statement.source.fact(), shown()];
            Mismatch::new(Kind::DiffersFromSpec, expected, actual)
        })
    }
}

/// The exit code 0 of a container that was not started, or whose process never ends with it. Any
/// other code may be right: the runtime may not know how it ended.
fn false_success(object: &Object<'_>, statement: &Statement<'_>) -> Option<Mismatch> {
    let (SubjectKind::Container(spec), Message::Status(status)) =
        (&object.subject.kind, statement.message)
    else {
        return None;
    };
    let is_success = status.state == ContainerState::Exited && status.exit_code == 0;
    let never_succeeds = spec.declared_exit.is_some_and(|code| code != 0);
    let has_failed = if object.start.is_some() {
        never_succeeds || spec.ends_by_kill_alone()
    } else {
        object
            .calls
            .iter()
            .any(|call| starts(call) && was_refused(call))
    };
    (is_success && has_failed).then(|| {
        let shown = Fact::FieldValue("0".to_owned());
        let field = Fact::Field("exit_code".to_owned());
        let expected = [Fact::FieldValue("other than 0".to_owned())];
        Mismatch::new(
            Kind::DiffersFromSpec,
            expected,
            [field, statement.source.fact(), shown],
        )
    })
}

fn was_refused(call: &Call) -> bool {
    matches!(call.result(), Some(Err(fault)) if is_answer(fault))
}

/// The first statement in which a field has another value than in the first status, or in the first
/// snapshot or list if there is none.
fn changed<'a>(object: &Object<'a>, field: &Field, of_events: bool) -> Option<Found<'a>> {
    // What was requested is compared with the request.
    let is_made = object
        .made()
        .is_some_and(|made| (field.made)(made).is_some());
    // The updates of a foreign pod's containers, such as a resize, are not recorded.
    let is_updated = !object.updates.is_empty() || object.creation.is_none();
    if is_made || field.is_updated && is_updated {
        return None;
    }
    let settled = |statement: &&Statement<'a>| {
        let Some(value) = (field.read)(statement.message) else {
            return false;
        };
        let is_set = value.is_set() && value != Value::Number(ZERO_TIME_OF_GO_NS);
        let is_compared = match is_due(object, field, statement) {
            Some(is_due) => is_due && (is_set || !field.is_needed),
            None => is_set && field.since == Since::Start,
        };
        is_compared && !is_of_other(object, statement)
    };
    let all: Vec<&Statement<'a>> = object.statements.iter().filter(settled).collect();
    // Of statuses, and of items of lists.
    let first = [false, true].map(|is_item| {
        let same_sort = |other: &&&Statement<'a>| field.is_alike || other.is_item() == is_item;
        let rank = |other: &&&Statement<'a>| (other.is_item(), other.is_of_event());
        all.iter().filter(same_sort).min_by_key(rank).copied()
    });
    let mut judged = all
        .iter()
        .filter(|statement| statement.is_of_event() == of_events);
    judged.find_map(|statement| {
        let first = first[usize::from(statement.is_item())]?;
        let (expected, actual) = (
            (field.read)(first.message)?,
            (field.read)(statement.message)?,
        );
        (expected != actual).then(|| {
            let values = [expected.to_string(), actual.to_string()];
            difference(field.name, first, statement, values)
        })
    })
}

fn difference<'a>(
    field: &str,
    first: &Statement<'a>,
    second: &Statement<'a>,
    [expected, actual]: [String; 2],
) -> Found<'a> {
    let by = Fact::Because(first.source.fact().text());
    let field = Fact::Field(field.to_owned());
    let mismatch = Mismatch::new(
        Kind::FieldChanged,
        [Fact::FieldValue(expected), by],
        [field, second.source.fact(), Fact::FieldValue(actual)],
    );
    (mismatch, vec![*first, *second])
}

/// The times of a statement that are outside of the calls that set them, or in the wrong order.
fn times<'a>(
    object: &Object<'a>,
    killed: Option<Bound>,
    statement: &Statement<'a>,
) -> Vec<Mismatch> {
    let said = if object.creation.is_some() {
        TICK_NS
    } else {
        SLACK_NS
    };
    let said = Bound {
        ns: statement.source.entry().at.realtime_ns.saturating_add(said),
        cause: None,
    };
    let (creation, start) = (object.creation, object.start);
    let after = |call: Option<&'a Call>, slack_ns| {
        let call = call?;
        Some(Bound {
            ns: call.ended()?.at.realtime_ns + slack_ns,
            cause: Some(call.request().method()),
        })
    };
    let before = |call: Option<&'a Call>| {
        let call = call?;
        Some(Bound {
            ns: call.began().at.realtime_ns - TICK_NS,
            cause: Some(call.request().method()),
        })
    };
    let bounds = [
        ("created_at", before(creation), after(creation, TICK_NS)),
        ("started_at", before(start), after(start, START_SLACK_NS)),
        ("finished_at", before(start), killed),
    ];
    let times: Vec<_> = bounds
        .into_iter()
        .filter_map(|(name, earliest, latest)| {
            let field = FIELDS.iter().find(|field| field.name == name)?;
            let due = is_due(object, field, statement) != Some(false);
            match (field.read)(statement.message)? {
                Value::Number(ns) if due && ns != 0 && ns != ZERO_TIME_OF_GO_NS => {
                    Some((name, ns, earliest, latest.unwrap_or(said)))
                }
                _ => None,
            }
        })
        .collect();
    let outside = times.iter().filter_map(|(name, ns, earliest, latest)| {
        let early = earliest.as_ref().filter(|earliest| *ns < earliest.ns);
        let (kind, bound) = match early {
            Some(earliest) => (Kind::TimeBeforeCall, earliest),
            None if *ns > latest.ns => (Kind::TimeAfterCall, latest),
            None => return None,
        };
        let off = Duration::from_nanos(ns.abs_diff(bound.ns));
        let by = bound.cause.map(str::to_owned);
        let by = Fact::Cause(by.unwrap_or_else(|| statement.source.fact().text()));
        let actual = [
            Fact::Field((*name).to_owned()),
            statement.source.fact(),
            Fact::Pause(off),
        ];
        Some(Mismatch::new(kind, [by], actual))
    });
    let outside: Vec<_> = outside.collect();
    let order = in_order(&times, statement).filter(|_| outside.is_empty());
    outside.into_iter().chain(order).collect()
}

/// A bound of a time, with a tolerance.
#[derive(Clone, Copy)]
struct Bound {
    ns: i64,
    /// What sets it, in words; `None` of the arrival of the statement itself.
    cause: Option<&'static str>,
}

type Time = (&'static str, i64, Option<Bound>, Bound);

/// The first time that is later than the next one; CREATED is made after the creation, STARTED
/// after the start, and STOPPED after the exit.
fn in_order(times: &[Time], statement: &Statement<'_>) -> Option<Mismatch> {
    let mut times: Vec<_> = times.iter().map(|(name, ns, ..)| (*name, *ns)).collect();
    if let (Source::Event(arrival), Message::Status(status)) = (statement.source, statement.message)
        && arrival.event().container == status.id
    {
        let event = arrival.event();
        let made = event.created_at.0;
        // A container can have exited before its STARTED is made. A time far from now is not in
        // nanoseconds, which another rule reports.
        let is_last = match (event.kind, times.last()) {
            (EventKind::Created, Some(("created_at", at)))
            | (EventKind::Started, Some(("started_at", at)))
            | (EventKind::Stopped, Some(("finished_at", at))) => at.abs_diff(made) < HOUR_NS,
            _ => false,
        };
        times.extend(is_last.then_some(("the event's created_at", made)));
    }
    let mut pairs = times.windows(2);
    pairs.find_map(|pair| {
        let [(before, earlier), (after, later)] = [pair[0], pair[1]];
        (later.saturating_add(TICK_NS) < earlier).then(|| {
            let field = [
                Fact::Field(before.to_owned()),
                Fact::AfterField(after.to_owned()),
            ];
            let facts: Facts = field.into_iter().chain([statement.source.fact()]).collect();
            Mismatch::new(
                Kind::TimesOutOfOrder,
                [Fact::Pause(span(later, earlier))],
                facts,
            )
        })
    })
}
