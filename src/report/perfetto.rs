//! A history as a trace for <https://ui.perfetto.dev>, in the format of `proto/perfetto.proto`.
//!
//! Each case is a group of tracks, in it each sandbox, in it each container. A call is a slice from
//! its beginning to its return, an event an instant of its subscription, a violation an instant
//! with the expected and the actual state. Arrows go from the call that caused an event to the
//! event, and on to the first list that shows the same change. The lag of events is drawn as
//! numbers. `#42` is the entry of this number, as `show` prints it.
//!
//! Every slice that begins ends, and the slices of one track never overlap: calls that do have
//! several tracks of the same name, which the viewer draws as one.

mod places;

#[expect(
    clippy::pedantic,
    unreachable_pub,
    reason = "generated from the documented proto/perfetto.proto"
)]
mod schema {
    include!(concat!(env!("OUT_DIR"), "/perfetto.protos.rs"));
}
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use places::{Links, Places};
use schema::DebugAnnotation;
use schema::counter_descriptor::Unit;
use trace::{Mark, Path, Trace, TrackId, note, number};

use crate::history::{
    Body, CallFault, CallId, CaseRun, Entry, Event, HostFact, HostInstant, Observer, Seq,
    StreamEnd, SubscriptionId,
};
use crate::outcome::{Outcome, Violation};
use crate::report::printable::{cut, nanos};
use crate::report::timeline::{Timeline, asks_only};

/// The trace file of a history, with the violations in the outcomes of its run. The entries are in
/// order.
pub fn perfetto(entries: &[Arc<Entry>], outcomes: &[Outcome]) -> Vec<u8> {
    let mut drawing = Drawing::new(entries);
    for entry in entries {
        drawing.draw(entry);
    }
    for outcome in outcomes {
        drawing.judged(outcome);
    }
    drawing.finish()
}

/// The maximum length of a text, in characters.
const TEXT: usize = 2_000;

/// Draws a history entry by entry.
#[derive(Debug)]
struct Drawing<'a> {
    entries: &'a [Arc<Entry>],
    timeline: Timeline<'a>,
    places: Places<'a>,
    links: Links,
    trace: Trace,
    /// The time of the last entry, which never decreases.
    now: u64,
    calls: BTreeMap<CallId, (TrackId, u64)>,
    cases: BTreeMap<CaseRun, TrackId>,
    streams: BTreeMap<SubscriptionId, (TrackId, Path)>,
    /// The end of the suite's last delay.
    held_up: u64,
}

impl<'a> Drawing<'a> {
    fn new(entries: &'a [Arc<Entry>]) -> Self {
        let places = Places::new(entries);
        let mut trace = Trace::default();
        let start = entries.first().map_or(HostInstant::default(), |it| it.at);
        trace.clocks(start);
        Self {
            entries,
            timeline: Timeline::new(start, entries.iter().map(AsRef::as_ref)),
            links: Links::new(entries, &places),
            places,
            trace,
            now: start.monotonic_ns,
            calls: BTreeMap::new(),
            cases: BTreeMap::new(),
            streams: BTreeMap::new(),
            held_up: start.monotonic_ns,
        }
    }

    fn draw(&mut self, entry: &'a Entry) {
        self.now = self.now.max(entry.at.monotonic_ns);
        let text = self.text(entry);
        match &entry.body {
            Body::CaseBegan { .. }
            | Body::CaseEnded { .. }
            | Body::StepsEnded { .. }
            | Body::Unjudged { .. } => self.case(&entry.body, text),
            Body::CallBegan { call, .. } => self.call_began(*call, text),
            Body::CallEnded { call, result, .. } => {
                self.call_ended(*call, result.as_ref().err(), text);
            }
            Body::SubscriptionOpened {
                subscription,
                observer,
            } => self.stream_opened(*subscription, observer.as_ref(), text),
            Body::SubscriptionAnswered { subscription } => {
                self.stream_mark(*subscription, "answered", text);
            }
            Body::SubscriptionProven { subscription } => {
                self.stream_mark(*subscription, "proven live", text);
            }
            Body::SubscriptionEnded { subscription, end } => {
                self.stream_ended(*subscription, end, text);
            }
            Body::Event {
                subscription,
                event,
                ..
            } => self.event(entry, *subscription, event, text),
            Body::Waited { case, met, .. } => {
                let name = if *met { "came" } else { "did NOT come" };
                let path = within(self.places.of_case(Some(*case)), "waits");
                self.mark(&path, Mark::new("wait", name, text));
            }
            Body::Fact { case, fact } => {
                let kernel = within(self.places.of_case(Some(*case)), "kernel");
                let (name, count) = match fact {
                    HostFact::ProcessGone { .. } => {
                        return self.mark(&kernel, Mark::new("fact", "a process is gone", text));
                    }
                    HostFact::Killed { .. } => {
                        return self.mark(&kernel, Mark::new("fact", "a process is killed", text));
                    }
                    HostFact::OomKills(count) => ("OOM kills of the host since boot", *count),
                    HostFact::Held { resource, count } => (resource.text(), *count),
                };
                let path = within(kernel, name);
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                self.trace.counter(&path, self.now, Unit::Count, count);
            }
            Body::HeldUp { by } => self.held_up(*by, text),
            Body::RunBegan(_) => self.run_mark("the run begins", text),
            Body::RunPlanned(_) => self.run_mark("the run is planned", text),
            Body::CasesEnded => self.run_mark("all cases are over", text),
            Body::RunEnded(_) => self.run_mark("the run ends", text),
        }
    }

    /// Draws the violations of an outcome, each at the last entry of its evidence.
    fn judged(&mut self, outcome: &Outcome) {
        for violation in outcome.violations.iter().chain(&outcome.advice) {
            let mut evidence = violation.evidence.iter().rev();
            let proof = evidence.find_map(|seq| self.entry(*seq));
            let at = proof.map_or(self.now, |entry| entry.at.monotonic_ns);
            let place = proof.map_or_else(|| self.places.of_case(None), |it| self.place(it));
            let path = within(place, "violations");
            self.trace.instant(&path, at, violated(outcome, violation));
        }
    }

    fn finish(self) -> Vec<u8> {
        self.trace.finish(self.now)
    }

    /// Draws the beginning or the end of a case, or a fact about it as a whole.
    fn case(&mut self, body: &Body, text: DebugAnnotation) {
        match body {
            Body::CaseBegan { case, id, .. } => {
                let path = self.places.of_case(Some(*case));
                let mark = Mark::new("case", cut(id, TEXT), text);
                let track = self.trace.begin(&path, self.now, mark);
                self.cases.insert(*case, track);
            }
            Body::CaseEnded { case } => {
                if let Some(track) = self.cases.remove(case) {
                    self.trace.end(track, self.now, vec![text]);
                }
            }
            Body::StepsEnded { case, .. } => {
                let path = self.places.of_case(Some(*case));
                self.mark(&path, Mark::new("case", "the steps are over", text));
            }
            Body::Unjudged { case, .. } => {
                let path = self.places.of_case(Some(*case));
                self.mark(&path, Mark::new("case", "not judged", text));
            }
            _ => {}
        }
    }

    fn held_up(&mut self, by: Duration, text: DebugAnnotation) {
        let began = self.now.saturating_sub(nanos(by)).max(self.held_up);
        let path = within(self.places.of_case(None), "faults");
        let mark = Mark::new("fault", "the suite was held up", text);
        let track = self.trace.begin(&path, began, mark);
        self.trace.end(track, self.now, Vec::new());
        self.held_up = self.now;
    }

    fn mark(&mut self, path: &[String], mark: Mark) {
        self.trace.instant(path, self.now, mark);
    }

    fn call_began(&mut self, call: CallId, text: DebugAnnotation) {
        let Some(request) = self.places.request(call) else {
            return;
        };
        let (kind, category) = if asks_only(request) {
            ("lists", "list")
        } else {
            ("calls", "call")
        };
        let path = within(self.places.of_call(call), kind);
        let mark = Mark {
            flows: self.links.of_call(call),
            ..Mark::new(category, request.method(), text)
        };
        let track = self.trace.begin(&path, self.now, mark);
        self.calls.insert(call, (track, self.now));
    }

    fn call_ended(&mut self, call: CallId, fault: Option<&CallFault>, text: DebugAnnotation) {
        if let Some((track, _)) = self.calls.get(&call) {
            self.trace.end(*track, self.now, vec![text.clone()]);
        }
        if let Some(fault) = fault {
            let method = self.places.request(call).map_or("call", |it| it.method());
            let name = format!("{method}: {}", fault.code);
            let path = within(self.places.of_call(call), "faults");
            self.mark(&path, Mark::new("fault", name, text));
        }
    }

    fn event(
        &mut self,
        entry: &Entry,
        stream: SubscriptionId,
        event: &Event,
        text: DebugAnnotation,
    ) {
        let path = self.places.of_event(event);
        let group: Path = path.iter().take(1).cloned().collect();
        let created_at = event.created_at.0;
        let lag = (created_at != 0).then(|| entry.at.realtime_ns.saturating_sub(created_at));
        let cause = self.links.cause(entry.seq);
        let began = cause.and_then(|call| self.calls.get(&call));
        let after = began.map(|(_, began)| self.now.saturating_sub(*began));
        let after = after.and_then(|after| i64::try_from(after).ok());
        let mut notes = vec![text];
        for (name, value) in [("since created_at", lag), ("since its call", after)] {
            let Some(value) = value else { continue };
            notes.push(number(&format!("ns {name}"), value));
            let track = format!("lag {name}, stream {stream}");
            let path = within(group.clone(), &track);
            self.trace.counter(&path, self.now, Unit::TimeNs, value);
        }
        let mark = Mark {
            name: event.kind.to_string(),
            category: "event",
            notes,
            flows: self.links.of_event(entry.seq),
        };
        let path = within(path, &format!("events, stream {stream}"));
        self.trace.instant(&path, self.now, mark);
    }

    fn stream_opened(
        &mut self,
        stream: SubscriptionId,
        observer: Option<&Observer>,
        text: DebugAnnotation,
    ) {
        let case = observer.and_then(|observer| observer.case);
        let name = format!("stream {stream}");
        let path = within(within(self.places.of_case(case), "streams"), &name);
        let mark = Mark::new("stream", name, text);
        let track = self.trace.begin(&path, self.now, mark);
        self.streams.insert(stream, (track, path));
    }

    fn stream_mark(&mut self, stream: SubscriptionId, name: &str, text: DebugAnnotation) {
        if let Some((_, path)) = self.streams.get(&stream) {
            let mark = Mark::new("stream", name, text);
            self.trace.instant(path, self.now, mark);
        }
    }

    fn stream_ended(&mut self, stream: SubscriptionId, end: &StreamEnd, text: DebugAnnotation) {
        let Some((track, path)) = self.streams.remove(&stream) else {
            return;
        };
        self.trace.end(track, self.now, vec![text.clone()]);
        if !matches!(end, StreamEnd::Cancelled) {
            let case: Path = path.into_iter().take(1).collect();
            let mark = Mark::new("fault", format!("stream {stream} ended"), text);
            self.trace.instant(&within(case, "faults"), self.now, mark);
        }
    }

    fn run_mark(&mut self, name: &str, text: DebugAnnotation) {
        let path = self.places.of_case(None);
        self.mark(&path, Mark::new("run", name, text));
    }

    /// The group of an entry's subject.
    fn place(&self, entry: &Entry) -> Path {
        match &entry.body {
            Body::Event { event, .. } => self.places.of_event(event),
            Body::CallBegan { call, .. } | Body::CallEnded { call, .. } => {
                self.places.of_call(*call)
            }
            Body::CaseBegan { case, .. }
            | Body::StepsEnded { case, .. }
            | Body::CaseEnded { case }
            | Body::Waited { case, .. }
            | Body::Fact { case, .. }
            | Body::Unjudged { case, .. } => self.places.of_case(Some(*case)),
            _ => self.places.of_case(None),
        }
    }

    fn entry(&self, seq: Seq) -> Option<&'a Entry> {
        let place = self.entries.binary_search_by_key(&seq, |entry| entry.seq);
        place.ok().map(|place| &*self.entries[place])
    }

    /// The entry's line of the timeline, named by its number.
    fn text(&self, entry: &Entry) -> DebugAnnotation {
        let (_, text) = self.timeline.describe(entry);
        note(format!("#{}", entry.seq), text)
    }
}

impl Mark {
    fn new(category: &'static str, name: impl Into<String>, text: DebugAnnotation) -> Self {
        Self {
            name: name.into(),
            category,
            notes: vec![text],
            flows: Vec::new(),
        }
    }
}

fn violated(outcome: &Outcome, violation: &Violation) -> Mark {
    let evidence = violation.evidence.iter().map(|seq| format!("#{seq}"));
    let evidence: Vec<_> = evidence.collect();
    let notes = [
        ("case", &*outcome.id),
        ("rule", &violation.rule),
        ("broke", outcome.breaks(violation).name()),
        ("claim", &violation.sentence),
        ("finding", violation.mismatch.kind.key()),
        ("subject", &violation.subject),
        ("expected", &violation.expected()),
        ("actual", &violation.actual()),
        ("evidence", &evidence.join(" ")),
    ];
    let notes = notes.iter().filter(|(_, value)| !value.is_empty());
    let notes = notes.map(|(name, value)| note(*name, cut(value, TEXT)));
    Mark {
        name: format!(
            "{} {} broken",
            cut(&violation.rule, TEXT),
            violation.level.keyword()
        ),
        category: "violation",
        notes: notes.collect(),
        flows: Vec::new(),
    }
}

fn within(mut group: Path, name: &str) -> Path {
    group.push(name.to_owned());
    group
}
