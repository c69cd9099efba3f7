//! Each entry that is written can be read, and damage loses no more than the entries that it hits.

use std::fmt::Debug;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use prost::Message as _;

use super::{
    DecodeFault, FORMAT_VERSION, FrameWriter, MESSAGE_LIMIT, StreamDecoder, decode, decode_file,
    encode,
};
use crate::history::messages::encode_event;
use crate::history::{
    Body, CaseRun, ContainerSpec, Entry, Event, EventKind, Flaw, HostInstant, Request, RunInfo,
    RuntimeNanos, Seq, SubscriptionId, Took,
};

/// The rules of `proto/history.proto`.
#[expect(
    clippy::pedantic,
    unreachable_pub,
    reason = "generated from a documented file"
)]
mod proto {
    include!(concat!(
        env!("OUT_DIR"),
        "/cri_event_conformance.history.v1.rs"
    ));
}

/// Any value that some bytes make.
fn anything<T: for<'a> Arbitrary<'a> + Debug>() -> impl Strategy<Value = T> {
    let bytes = vec(any::<u8>(), 100..2_000);
    bytes.prop_filter_map("too few bytes", |bytes| {
        Unstructured::new(&bytes).arbitrary().ok()
    })
}

/// Any history whose messages are known.
fn history() -> impl Strategy<Value = Vec<Entry>> {
    (anything(), vec(anything(), 0..8)).prop_map(|(info, rest): (RunInfo, Vec<Entry>)| {
        let mut bytes = Vec::new();
        encode(&began(info), &mut bytes);
        for entry in rest {
            encode(&entry, &mut bytes);
        }
        let decoded = decode(&bytes);
        assert_eq!(decoded.fault, None);
        decoded.entries
    })
}

/// The entry without the bytes of its message, so that it is written from what was read in them.
fn without_message(mut entry: Entry) -> Entry {
    match &mut entry.body {
        Body::CallBegan { message, .. }
        | Body::CallEnded { message, .. }
        | Body::Event { message, .. } => *message = Bytes::new(),
        _ => {}
    }
    entry
}

/// Removes the fields that a message cannot hold: a name in the pod that equals the binding, and a
/// mount over the program of a container that has none.
fn canonical(entry: &mut Entry) {
    if let Body::CallBegan {
        request: Request::CreateContainer(spec),
        ..
    } = &mut entry.body
    {
        let spec = Arc::make_mut(spec);
        if spec.command.is_empty() && spec.flaw == Some(Flaw::Mount) {
            spec.flaw = None;
        }
        if spec.flaw == Some(Flaw::Checkpoint) {
            spec.image += ContainerSpec::DAMAGED;
        }
        spec.name = spec.name.take().filter(|name| *name != spec.binding);
    }
}

fn began(info: RunInfo) -> Entry {
    numbered(0, Body::RunBegan(info.into()))
}

fn numbered(seq: u64, body: Body) -> Entry {
    Entry {
        seq: Seq(seq),
        at: HostInstant {
            monotonic_ns: seq * 1_000,
            realtime_ns: -7,
        },
        body,
    }
}

/// A small history and the offset at which each of its entries ends.
fn small() -> (Vec<Entry>, Vec<u8>, Vec<usize>) {
    let case = CaseRun(1);
    let entries = vec![
        began(RunInfo::default()),
        numbered(
            1,
            Body::StepsEnded {
                case,
                end: crate::history::StepsEnd::Complete,
            },
        ),
        numbered(
            2,
            Body::Waited {
                case,
                wanted: "STOPPED of c".repeat(12),
                met: true,
                bound: Duration::from_millis(1_500),
                took: Some(Took::Event(Duration::from_millis(20))),
                instead: String::new(),
            },
        ),
        numbered(3, Body::CaseEnded { case }),
    ];
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for entry in &entries {
        encode(entry, &mut bytes);
        ends.push(bytes.len());
    }
    (entries, bytes, ends)
}

/// A message that begins at `offset` of an otherwise good history.
fn followed_by(message: &[u8]) -> (Vec<u8>, usize) {
    let (_, mut bytes, _) = small();
    let offset = bytes.len();
    bytes.extend_from_slice(message);
    (bytes, offset)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn entries_are_written_as_the_documented_format_has_them(entry in anything::<Entry>()) {
        let mut bytes = Vec::new();
        encode(&entry, &mut bytes);
        let read = proto::Entry::decode_length_delimited(&*bytes).expect("it follows the format");
        prop_assert_eq!(read.encode_length_delimited_to_vec(), bytes);
    }

    #[test]
    fn entries_are_read_back_as_written(mut entry in anything::<Entry>()) {
        canonical(&mut entry);
        let mut bytes = Vec::new();
        encode(&began(RunInfo::default()), &mut bytes);
        encode(&entry, &mut bytes);
        let decoded = decode(&bytes);
        prop_assert_eq!(decoded.fault, None);
        let read = decoded.entries.into_iter().map(without_message).nth(1);
        prop_assert_eq!(read, Some(entry));
    }

    #[test]
    fn whatever_is_written_is_read_back(entries in history()) {
        let mut bytes = Vec::new();
        for entry in &entries {
            encode(entry, &mut bytes);
        }
        let decoded = decode(&bytes);
        prop_assert_eq!(decoded.fault, None);
        prop_assert_eq!(decoded.entries, entries);
    }

    #[test]
    fn messages_are_kept_as_they_were(event in anything::<Event>(), unknown in vec(1_u8.., 0..9)) {
        let mut message = encode_event(&event);
        // Field 1000, a string: of a later version of the CRI.
        message.extend([0xc2, 0x3e, u8::try_from(unknown.len()).expect("it is short")]);
        message.extend(unknown);
        let entry = numbered(1, Body::Event {
            subscription: SubscriptionId(1),
            event,
            message: message.into(),
        });
        let mut bytes = Vec::new();
        encode(&began(RunInfo::default()), &mut bytes);
        encode(&entry, &mut bytes);
        prop_assert_eq!(decode(&bytes).entries.pop(), Some(entry));
    }

    #[test]
    fn no_bytes_upset_the_reader(bytes in vec(any::<u8>(), 0..200)) {
        let decoded = decode(&bytes);
        prop_assert!(decoded.fault.is_some() || bytes.is_empty() || !decoded.entries.is_empty());
    }

    #[test]
    fn a_changed_byte_spares_the_entries_before_it(at in 0_usize..400, value in any::<u8>()) {
        let (entries, mut bytes, ends) = small();
        let at = at % bytes.len();
        bytes[at] = value;
        let whole = ends.iter().filter(|end| **end <= at).count();
        prop_assert_eq!(&decode(&bytes).entries[..whole], &entries[..whole]);
    }
}

#[test]
fn a_cut_at_any_byte_leaves_the_whole_entries_before_it() {
    let (entries, bytes, ends) = small();
    for cut in 0..=bytes.len() {
        let decoded = decode(&bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let offset = whole.checked_sub(1).map_or(0, |last| ends[last]);
        let fault = (cut != offset).then_some(DecodeFault::Truncated { offset });
        assert_eq!(decoded.entries, entries[..whole], "cut at {cut}");
        assert_eq!(decoded.fault, fault, "cut at {cut}");
    }
}

#[test]
fn unknown_fields_are_passed_over() {
    let entry = numbered(4, Body::CaseEnded { case: CaseRun(9) });
    let mut message = Vec::new();
    encode(&entry, &mut message);
    // Field 1000, a string of 3 bytes.
    message.extend([0xc2, 0x3e, 3, b'n', b'e', b'w']);
    message[0] += 6;
    let (bytes, _) = followed_by(&message);
    let decoded = decode(&bytes);
    assert_eq!(decoded.fault, None);
    assert_eq!(decoded.entries.last(), Some(&entry));
}

#[test]
fn an_entry_of_an_unknown_kind_is_not_skipped() {
    let (bytes, offset) = followed_by(&[2, 8, 4]);
    let what = "body";
    let fault = DecodeFault::Incomplete { offset, what };
    assert_eq!(decode(&bytes).fault, Some(fault.clone()));
    assert_eq!(
        fault.to_string(),
        format!(
            "decode the history at byte {offset}: an entry has no body that this version knows; a \
             later version of the suite may read it"
        )
    );
}

#[test]
fn a_damaged_length_is_not_believed() {
    let (bytes, offset) = followed_by(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    let length = (1 << 42) - 1;
    assert_eq!(
        decode(&bytes).fault,
        Some(DecodeFault::Oversized { offset, length })
    );
    let (bytes, offset) = followed_by(&[0xff; 12]);
    let fault = decode(&bytes).fault;
    assert!(matches!(fault, Some(DecodeFault::Malformed { offset: at, .. }) if at == offset));
}

#[test]
fn the_longest_message_that_a_runtime_may_send_can_be_read() {
    let entry = numbered(
        1,
        Body::Event {
            subscription: SubscriptionId(1),
            event: Event {
                container: "i".repeat((16 << 20) - 6).into(),
                kind: EventKind::Created,
                created_at: RuntimeNanos(0),
                sandbox: None,
                containers: Vec::new(),
            },
            message: Bytes::new(),
        },
    );
    let mut bytes = Vec::new();
    encode(&began(RunInfo::default()), &mut bytes);
    encode(&entry, &mut bytes);
    assert!(bytes.len() < MESSAGE_LIMIT);
    assert_eq!(without_message(decode(&bytes).entries.remove(1)), entry);
}

#[test]
fn anything_but_a_history_is_refused_at_once() {
    let headless = numbered(0, Body::CaseEnded { case: CaseRun(1) });
    let (headless, _) = framed(&[headless], 1);
    for bytes in [b"{\"format\": 1}".as_slice(), b"\n\n", &headless] {
        let decoded = decode_file(bytes);
        assert_eq!(decoded.entries, []);
        assert_eq!(decoded.fault, Some(DecodeFault::Headless));
    }
}

#[test]
fn another_version_is_refused() {
    let mut bytes = Vec::new();
    encode(&began(RunInfo::default()), &mut bytes);
    let mut message = proto::Entry::decode_length_delimited(&*bytes).expect("it was just written");
    let version = FORMAT_VERSION + 1;
    if let Some(proto::entry::Body::RunBegan(run)) = &mut message.body {
        run.format_version = version;
    }
    let bytes = message.encode_length_delimited_to_vec();
    assert_eq!(
        decode(&bytes).fault,
        Some(DecodeFault::Version { offset: 0, version })
    );
}

/// A file of these entries with so many in each frame, and where each frame ends.
fn framed(entries: &[Entry], per_frame: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for frame in entries.chunks(per_frame) {
        let mut writer = FrameWriter::new(bytes);
        for entry in frame {
            writer.push(entry).expect("memory can be written");
        }
        bytes = writer.finish().expect("memory can be written");
        ends.push(bytes.len());
    }
    (bytes, ends)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_is_read_as_it_was_written(
        entries in history(), per_frame in 1_usize..9, buffer in 1_usize..99,
    ) {
        let (bytes, _) = framed(&entries, per_frame);
        let source = std::io::BufReader::with_capacity(buffer, &*bytes);
        let read: Result<Vec<Entry>, _> = StreamDecoder::new(source).collect();
        prop_assert_eq!(read.expect("nothing is damaged"), entries);
    }

    #[test]
    fn a_changed_bit_is_noticed_or_changes_nothing_and_spares_the_frames_before_it(
        entries in history(), per_frame in 1_usize..9, at in any::<usize>(), bit in 0_u8..8,
    ) {
        let (mut bytes, ends) = framed(&entries, per_frame);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let decoded = decode_file(&bytes);
        // One bit of a frame's header has no meaning.
        let is_noticed = decoded.fault.is_some() || decoded.entries == entries;
        prop_assert!(is_noticed, "byte {} of {}, bit {}", at, bytes.len(), bit);
        let spared = ends.iter().filter(|end| **end <= at).count() * per_frame;
        let spared = spared.min(entries.len());
        prop_assert!(decoded.entries.len() >= spared);
        prop_assert_eq!(&decoded.entries[..], &entries[..decoded.entries.len()]);
    }

    #[test]
    fn a_file_that_is_cut_has_the_whole_frames_before_the_cut(
        entries in history(), per_frame in 1_usize..9, at in any::<usize>(),
    ) {
        let (bytes, ends) = framed(&entries, per_frame);
        let at = at % bytes.len();
        let decoded = decode_file(&bytes[..at]);
        let whole = ends.iter().filter(|end| **end <= at).count();
        let kept = (whole * per_frame).min(entries.len());
        prop_assert_eq!(&decoded.entries[..], &entries[..kept]);
        let offset = whole.checked_sub(1).map_or(0, |last| ends[last]);
        let fault = (at != offset).then_some(DecodeFault::Truncated { offset });
        prop_assert_eq!(decoded.fault, fault);
    }

    #[test]
    fn no_bytes_upset_the_reader_of_files(bytes in vec(any::<u8>(), 0..200)) {
        let decoded = decode_file(&bytes);
        prop_assert_eq!(decoded.fault.is_some(), !bytes.is_empty());
    }
}

#[test]
fn a_frame_that_would_use_up_our_memory_is_refused() {
    let mut frame = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("a compressor");
    let zeros = vec![0; 1 << 20];
    for _ in 0..64 {
        frame.write_all(&zeros).expect("memory can be written");
    }
    let (mut bytes, ends) = framed(&small().0, 9);
    bytes.extend(frame.finish().expect("memory can be written"));
    let decoded = decode_file(&bytes);
    let is_refused = matches!(
        &decoded.fault,
        Some(DecodeFault::Frame { offset, reason })
            if *offset == ends[0] && reason == "it holds more than 18 MiB"
    );
    assert!(is_refused, "{:?}", decoded.fault);
}

#[test]
fn the_reader_stops_at_the_first_fault() {
    let (bytes, _) = followed_by(&[2, 8, 4, 2, 8, 4]);
    let mut writer = FrameWriter::new(Vec::new());
    writer.push_encoded(&bytes).expect("memory can be written");
    let file = writer.finish().expect("memory can be written");
    let mut decoder = StreamDecoder::new(&*file);
    assert_eq!(decoder.by_ref().count(), 5);
    assert!(decoder.next().is_none());
}
