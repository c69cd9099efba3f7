//! Checks the viewer's requirements, for a history with every kind of entry, for recorded ones and
//! for arbitrary ones. `tests/perfetto` reads traces with Perfetto's own description of the format.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, proptest};
use prost::Message;

use super::perfetto;
use super::schema::track_event::Type;
use super::schema::{DebugAnnotation, Trace, TrackDescriptor, TrackEvent};
use crate::golden::assert_file;
use crate::history::{Body, Entry, Seq, codec};
use crate::report::fixture::{AWKWARD, entries, failed};

/// The packets of a trace, by type.
struct Read {
    tracks: BTreeMap<u64, TrackDescriptor>,
    events: Vec<(u64, TrackEvent)>,
}

impl Read {
    fn new(bytes: &[u8]) -> Self {
        let trace = Trace::decode(bytes).expect("it is a trace");
        let (mut tracks, mut events) = (BTreeMap::new(), Vec::new());
        for packet in trace.packet {
            assert_eq!(packet.trusted_packet_sequence_id, Some(1));
            if let Some(track) = packet.track_descriptor {
                let parent = track.parent_uuid;
                let is_known = parent.is_none_or(|parent| tracks.contains_key(&parent));
                assert!(is_known, "a group is described first: {track:?}");
                let before = tracks.insert(track.uuid(), track);
                assert_eq!(before, None, "each track is described once");
            }
            if let Some(event) = packet.track_event {
                events.push((packet.timestamp.expect("an event has a time"), event));
            }
        }
        Self { tracks, events }
    }

    /// The names of a track and its groups.
    fn path(&self, uuid: u64) -> String {
        let track = &self.tracks[&uuid];
        let parent = track.parent_uuid.map(|parent| self.path(parent) + " > ");
        parent.unwrap_or_default() + track.name()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let tracks = self.tracks.values().map(TrackDescriptor::name);
        let events = self.events.iter().flat_map(|(_, event)| {
            let notes = event.debug_annotations.iter();
            let notes = notes.flat_map(|note| [note.name(), note.string_value()]);
            notes.chain([event.name()])
        });
        tracks.chain(events)
    }
}

/// Asserts the viewer's requirements.
#[track_caller]
fn check(bytes: &[u8]) -> Read {
    let read = Read::new(bytes);
    let mut tracks = BTreeMap::<u64, (u64, usize)>::new();
    let mut flows = BTreeMap::<u64, Vec<&str>>::new();
    for (at, event) in &read.events {
        let track = &read.tracks[&event.track_uuid()];
        let (before, open) = tracks.entry(event.track_uuid()).or_default();
        assert!(*before <= *at, "time goes back on {track:?}: {event:?}");
        *before = *at;
        match event.r#type() {
            Type::SliceBegin => *open += 1,
            Type::SliceEnd => *open = open.checked_sub(1).expect("what ends has begun"),
            Type::Instant => {}
            Type::Counter => assert!(event.counter_value.is_some(), "{event:?}"),
            Type::Unspecified => panic!("{event:?}"),
        }
        assert!(*open < 2, "slices overlap on {track:?}: {event:?}");
        let is_counter = event.r#type() == Type::Counter;
        assert_eq!(track.counter.is_some(), is_counter, "{track:?}: {event:?}");
        let category = event.categories.first().map_or("", String::as_str);
        for flow in &event.flow_ids {
            flows.entry(*flow).or_default().push(category);
        }
        if category == "violation" {
            let has = |name: &str| {
                let mut notes = event.debug_annotations.iter();
                notes.any(|note| note.name() == name && !note.string_value().is_empty())
            };
            assert!(has("expected") && has("actual"), "{event:?}");
        }
    }
    assert!(tracks.values().all(|(_, open)| *open == 0), "{tracks:?}");
    for (flow, ends) in flows {
        let connects = [&["call", "event"][..], &["event", "list"]];
        let connects = connects.contains(&&ends[..]) || ends == ["call", "event", "list"];
        assert!(connects, "flow {flow}: {ends:?}");
    }
    let unprintable = read.texts().find(|text| text.chars().any(char::is_control));
    assert_eq!(unprintable, None);
    read
}

fn lines(read: &Read) -> String {
    let mut text = String::new();
    let first = read.events.first().map_or(0, |(at, _)| *at);
    for (at, event) in &read.events {
        let ms = (at - first) / 1_000_000;
        let path = read.path(event.track_uuid());
        let what = match event.r#type() {
            Type::SliceBegin => format!("begin {}", event.name()),
            Type::SliceEnd => "end".to_owned(),
            Type::Counter => format!("= {}", event.counter_value()),
            Type::Instant | Type::Unspecified => event.name().to_owned(),
        };
        let flows = event.flow_ids.iter().map(|flow| format!(" ~{flow}"));
        let flows: String = flows.collect();
        let _ = writeln!(text, "{ms} ms  {path}  {what}{flows}");
        for note in &event.debug_annotations {
            let _ = writeln!(text, "    {}: {}", note.name(), value(note));
        }
    }
    text
}

fn value(note: &DebugAnnotation) -> String {
    match (note.int_value, &note.string_value) {
        (Some(number), _) => number.to_string(),
        (None, text) => text.clone().unwrap_or_default(),
    }
}

#[test]
fn every_kind_of_entry_has_its_place() {
    let read = check(&perfetto(&entries(), &[failed()]));
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reports/perfetto.txt");
    assert_file(fixture, &lines(&read));
}

#[test]
fn recorded_histories_make_sound_traces() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/histories");
    let mut flows = 0;
    for runtime in ["containerd-2.1", "crio-1.36", "crio-1.36-crun", "runs"] {
        for file in fs::read_dir(folder.join(runtime)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|kind| kind != "binpb") {
                continue;
            }
            let decoded = codec::decode_file(&fs::read(&path).unwrap());
            let entries: Vec<_> = decoded.entries.into_iter().map(Arc::new).collect();
            let read = check(&perfetto(&entries, &[]));
            let events = read.events.iter();
            flows += events.filter(|(_, it)| !it.flow_ids.is_empty()).count();
        }
    }
    assert!(flows > 1_000, "{flows}");
}

#[test]
fn what_has_not_ended_ends_with_the_history() {
    let entries = entries();
    for length in 0..entries.len() {
        check(&perfetto(&entries[..length], &[failed()]));
    }
}

#[test]
fn foreign_text_does_no_harm_in_a_trace() {
    let mut entries = entries();
    for entry in &mut entries {
        if let Body::CaseBegan { id, .. } = &mut Arc::make_mut(entry).body {
            *id = AWKWARD.to_owned();
        }
    }
    check(&perfetto(&entries, &[failed()]));
}

proptest! {
    #[test]
    fn any_history_makes_a_sound_trace(entries in vec(anything::<Entry>(), 0..12)) {
        let numbered = (0..).zip(entries);
        let entries = numbered.map(|(seq, entry)| Arc::new(Entry { seq: Seq(seq), ..entry }));
        check(&perfetto(&entries.collect::<Vec<_>>(), &[failed()]));
    }
}

/// Any value that some bytes decode to.
fn anything<T: for<'a> Arbitrary<'a> + Debug>() -> impl Strategy<Value = T> {
    let bytes = vec(any::<u8>(), 100..2_000);
    bytes.prop_filter_map("too few bytes", |bytes| {
        Unstructured::new(&bytes).arbitrary().ok()
    })
}
