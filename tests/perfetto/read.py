"""read.py [VIOLATIONS TRACE]...: reads traces with Perfetto's own description of the format.

Fails unless each has this many violations, knows every field, ends every slice, never goes back in
time, and connects every arrow.
"""

import sys
from collections import Counter, defaultdict

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackDescriptor, TrackEvent


def known(message):
    """Asserts that the message has no field that its description does not have."""
    assert not len(UnknownFieldSet(message)), f"unknown fields in {message}"
    for _, value in message.ListFields():
        parts = [value] if isinstance(value, Message) else value if hasattr(value, "append") else []
        for part in parts:
            if isinstance(part, Message):
                known(part)


def read(path):
    with open(path, "rb") as file:
        trace = Trace.FromString(file.read())
    known(trace)
    tracks = {}
    seen = Counter()
    last, opened, flows = defaultdict(int), Counter(), defaultdict(list)
    for packet in trace.packet:
        kind = packet.WhichOneof("data")
        seen[kind] += 1
        if kind == "track_descriptor":
            track = packet.track_descriptor
            assert track.uuid not in tracks, track
            assert not track.parent_uuid or track.parent_uuid in tracks, track
            assert track.child_ordering == TrackDescriptor.EXPLICIT, track
            tracks[track.uuid] = track
        elif kind == "track_event":
            event, track = packet.track_event, packet.track_event.track_uuid
            assert track in tracks, event
            assert packet.timestamp >= last[track], event
            last[track] = packet.timestamp
            kind = TrackEvent.Type.Name(event.type)
            seen[kind] += 1
            opened[track] += {"TYPE_SLICE_BEGIN": 1, "TYPE_SLICE_END": -1}.get(kind, 0)
            assert opened[track] in (0, 1), event
            is_counter = tracks[track].HasField("counter")
            assert is_counter == (kind == "TYPE_COUNTER"), event
            for flow in event.flow_ids:
                flows[flow].append((packet.timestamp, event.categories[0]))
            if list(event.categories) == ["violation"]:
                seen["violation"] += 1
                notes = {note.name: note.string_value for note in event.debug_annotations}
                assert notes["expected"] and notes["actual"], event
        else:
            assert kind == "clock_snapshot", packet
    assert not any(opened.values()), opened
    for flow, ends in flows.items():
        assert ends == sorted(ends, key=lambda end: end[0]), ends
        order = [category for _, category in ends]
        assert order in (["call", "event"], ["event", "list"], ["call", "event", "list"]), ends
    return seen, len(flows)


for violations, path in zip(sys.argv[1::2], sys.argv[2::2]):
    seen, flows = read(path)
    assert seen["violation"] == int(violations), f"{path}: {seen['violation']} violations"
    assert flows > 0 and seen["TYPE_COUNTER"] > 0 and seen["clock_snapshot"] == 1, (path, seen)
    print(f"{path}: {dict(seen)}, {flows} arrows")
