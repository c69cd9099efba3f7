//! The tracks and packets of a trace.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;

use super::schema::clock_snapshot::Clock;
use super::schema::counter_descriptor::Unit;
use super::schema::track_descriptor::ChildTracksOrdering;
use super::schema::track_event::Type;
use super::schema::{
    BuiltinClock, ClockSnapshot, CounterDescriptor, DebugAnnotation, TracePacket, TrackDescriptor,
    TrackEvent,
};
use crate::history::HostInstant;

/// The only writer of the trace.
const SEQUENCE: u32 = 1;

/// The names of a track and of its groups, the outermost first.
pub(super) type Path = Vec<String>;

/// A track, by its `uuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TrackId(u64);

/// A mark at one time of a track.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    pub(super) name: String,
    /// The viewer can filter by it.
    pub(super) category: &'static str,
    pub(super) notes: Vec<DebugAnnotation>,
    /// The arrows that begin, pass or end here.
    pub(super) flows: Vec<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Trace {
    tracks: Vec<TracePacket>,
    events: Vec<TracePacket>,
    /// The tracks by their paths. Tracks with the same path are numbered.
    known: BTreeMap<(Path, usize), TrackId>,
    /// Tracks on which a slice is open.
    busy: BTreeSet<TrackId>,
}

/// A value that the viewer lists beside a mark.
pub(super) fn note(name: impl Into<String>, value: impl Into<String>) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.into()),
        string_value: Some(value.into()),
        int_value: None,
    }
}

/// A numeric value that the viewer lists beside a mark.
pub(super) fn number(name: &str, value: i64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        int_value: Some(value),
        string_value: None,
    }
}

impl Trace {
    /// Lets the viewer show the time of day, by the wall-clock time at one point of the trace.
    pub(super) fn clocks(&mut self, at: HostInstant) {
        let clock = |clock: BuiltinClock, timestamp| Clock {
            clock_id: u32::try_from(clock as i32).ok(),
            timestamp: Some(timestamp),
        };
        let realtime = u64::try_from(at.realtime_ns).ok();
        let realtime = realtime.map(|now| clock(BuiltinClock::Realtime, now));
        let trace = clock(BuiltinClock::Boottime, at.monotonic_ns);
        self.tracks.push(TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: [trace].into_iter().chain(realtime).collect(),
                primary_trace_clock: Some(BuiltinClock::Boottime.into()),
            }),
            ..packet(at.monotonic_ns)
        });
    }

    /// Begins a slice on the first track of this path that is free.
    pub(super) fn begin(&mut self, path: &[String], at: u64, mark: Mark) -> TrackId {
        let mut nth = 0;
        let track = loop {
            let track = self.track((path, nth), None);
            if self.busy.insert(track) {
                break track;
            }
            nth += 1;
        };
        self.push(track, at, Type::SliceBegin, Some(mark), None);
        track
    }

    pub(super) fn end(&mut self, track: TrackId, at: u64, notes: Vec<DebugAnnotation>) {
        if self.busy.remove(&track) {
            let mark = Mark {
                notes,
                ..Mark::default()
            };
            self.push(track, at, Type::SliceEnd, Some(mark), None);
        }
    }

    pub(super) fn instant(&mut self, path: &[String], at: u64, mark: Mark) {
        let track = self.track((path, 0), None);
        self.push(track, at, Type::Instant, Some(mark), None);
    }

    /// A value of a track of numbers.
    pub(super) fn counter(&mut self, path: &[String], at: u64, unit: Unit, value: i64) {
        let track = self.track((path, 0), Some(unit));
        self.push(track, at, Type::Counter, None, Some(value));
    }

    /// Ends the open slices, and returns the file.
    pub(super) fn finish(mut self, at: u64) -> Vec<u8> {
        for track in std::mem::take(&mut self.busy) {
            let mark = Mark {
                notes: vec![note("end", "the history ends before this does")],
                ..Mark::default()
            };
            self.push(track, at, Type::SliceEnd, Some(mark), None);
        }
        // Simultaneous entries keep their order: a slice ends before the next begins.
        self.events.sort_by_key(|packet| packet.timestamp);
        let mut packet = self.tracks;
        packet.extend(self.events);
        super::schema::Trace { packet }.encode_to_vec()
    }

    fn push(
        &mut self,
        track: TrackId,
        at: u64,
        kind: Type,
        mark: Option<Mark>,
        counter_value: Option<i64>,
    ) {
        let Mark {
            name,
            category,
            notes,
            flows,
        } = mark.unwrap_or_default();
        let category = Some(category).filter(|category| !category.is_empty());
        self.events.push(TracePacket {
            track_event: Some(TrackEvent {
                r#type: Some(kind.into()),
                track_uuid: Some(track.0),
                categories: category.map(str::to_owned).into_iter().collect(),
                name: Some(name).filter(|name| !name.is_empty()),
                counter_value,
                flow_ids: flows,
                debug_annotations: notes,
            }),
            ..packet(at)
        });
    }

    /// The track of a path, described at its first use, and its groups.
    fn track(&mut self, (path, nth): (&[String], usize), unit: Option<Unit>) -> TrackId {
        if let Some(track) = self.known.get(&(path.to_vec(), nth)) {
            return *track;
        }
        let parent = match path.split_last() {
            Some((_, groups)) if !groups.is_empty() => Some(self.track((groups, 0), None)),
            _ => None,
        };
        let number = self.known.len() + 1;
        let track = TrackId(number as u64);
        self.known.insert((path.to_vec(), nth), track);
        self.tracks.push(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(track.0),
                parent_uuid: parent.map(|parent| parent.0),
                name: path.last().cloned(),
                counter: unit.map(|unit| CounterDescriptor {
                    unit: Some(unit.into()),
                }),
                child_ordering: Some(ChildTracksOrdering::Explicit.into()),
                sibling_order_rank: i32::try_from(number).ok(),
            }),
            timestamp: None,
            ..packet(0)
        });
        track
    }
}

fn packet(at: u64) -> TracePacket {
    TracePacket {
        timestamp: Some(at),
        trusted_packet_sequence_id: Some(SEQUENCE),
        ..TracePacket::default()
    }
}
