//! A long history made of copies of recorded ones, written incrementally.
//!
//! A copy has its own numbers and ids. Ids keep their length, so that they are replaced in the
//! encoded bytes; and numbers precede all ids of a message, so that an id's distance from the
//! message's end is the same in every copy.

use std::io::Write;
use std::path::Path;
use std::{fs, mem};

use cri_event_conformance::testing::case::load;
use cri_event_conformance::testing::history::codec::FrameWriter;
use cri_event_conformance::testing::history::{
    Body, CallId, CaseRun, Entry, HostInstant, PlannedCase, PlannedExecution, Reply, Request,
    RunEnd, RunInfo, RunPlan, Seq, codec,
};
use cri_event_conformance::testing::oracle::INVARIANTS;

/// The number of parallel cases.
const AT_ONCE: usize = 8;

struct Template {
    plan: PlannedCase,
    entries: Vec<(Entry, Vec<Place>)>,
    calls: u64,
    events: usize,
}

/// The position of an id in an entry's bytes: the distance from their end, and its length.
struct Place {
    from_end: usize,
    length: usize,
}

/// A partly written copy.
struct Copy<'a> {
    template: &'a Template,
    next: usize,
    run: CaseRun,
    calls: u64,
}

/// Writes a history with a minimum number of events; returns their number.
pub(crate) fn write(wanted: usize, out: &mut impl Write) -> usize {
    let templates = templates();
    let (mut executions, mut events) = (Vec::new(), 0);
    while events < wanted {
        let case = executions.len() % templates.len();
        events += templates[case].events;
        executions.push(PlannedExecution {
            case: u32::try_from(case).unwrap(),
            repetition: Some(u32::try_from(executions.len() / templates.len() + 1).unwrap()),
        });
    }
    let mut writer = Writer {
        out: FrameWriter::new(out),
        seq: 0,
        bytes: Vec::new(),
    };
    writer.own(Body::RunBegan(RunInfo::default().into()));
    writer.own(Body::RunPlanned(std::sync::Arc::new(RunPlan {
        cases: templates
            .iter()
            .map(|template| template.plan.clone())
            .collect(),
        executions: executions.clone(),
        invariants: INVARIANTS.iter().map(|rule| rule.id.to_owned()).collect(),
        ..RunPlan::default()
    })));
    let mut calls = 0;
    let mut waiting = (0..).map(CaseRun).zip(&executions).map(|(run, execution)| {
        let template = &templates[execution.case as usize];
        calls += template.calls;
        Copy {
            template,
            next: 0,
            run,
            calls: calls - template.calls,
        }
    });
    let mut open: Vec<Copy<'_>> = waiting.by_ref().take(AT_ONCE).collect();
    while !open.is_empty() {
        for copy in mem::take(&mut open) {
            open.extend(writer.step(copy).or_else(|| waiting.next()));
        }
    }
    writer.own(Body::CasesEnded);
    writer.own(Body::RunEnded(RunEnd::default()));
    writer.out.finish().unwrap();
    events
}

struct Writer<W> {
    out: FrameWriter<W>,
    seq: u64,
    bytes: Vec<u8>,
}

impl<W: Write> Writer<W> {
    fn own(&mut self, body: Body) {
        self.entry(
            Entry {
                seq: Seq(0),
                at: HostInstant::default(),
                body,
            },
            &[],
            CaseRun(0),
        );
    }

    /// Writes a copy's next entry; `None` after its last.
    fn step<'a>(&mut self, mut copy: Copy<'a>) -> Option<Copy<'a>> {
        let (entry, places) = copy.template.entries.get(copy.next)?;
        let mut entry = entry.clone();
        renumber(&mut entry.body, copy.run, copy.calls);
        self.entry(entry, places, copy.run);
        copy.next += 1;
        (copy.next < copy.template.entries.len()).then_some(copy)
    }

    fn entry(&mut self, mut entry: Entry, places: &[Place], run: CaseRun) {
        entry.seq = Seq(self.seq);
        self.seq += 1;
        self.bytes.clear();
        codec::encode(&entry, &mut self.bytes);
        let end = self.bytes.len();
        for Place { from_end, length } in places {
            // The last digits of the first group, which every id has: ids stay distinct.
            let digits = format!("{:08x}", run.0);
            let start = end - from_end;
            self.bytes[start..start + 8.min(*length)].copy_from_slice(digits.as_bytes());
        }
        self.out.push_encoded(&self.bytes).unwrap();
    }
}

fn renumber(body: &mut Body, run: CaseRun, calls: u64) {
    match body {
        Body::CaseBegan { case, .. }
        | Body::StepsEnded { case, .. }
        | Body::CaseEnded { case }
        | Body::Waited { case, .. }
        | Body::Fact { case, .. } => *case = run,
        Body::CallBegan { call, case, .. } => {
            call.0 += calls;
            *case = case.map(|_| run);
        }
        Body::CallEnded { call, .. } => call.0 += calls,
        _ => {}
    }
}

/// The recordings in which the case passes.
fn templates() -> Vec<Template> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/histories/containerd-2.1");
    let cases = load::embedded().unwrap();
    let of = |case: &cri_event_conformance::testing::case::Case| {
        let bytes = fs::read(folder.join(format!("{}.binpb", case.id))).ok()?;
        Some(Template::of(&case.name, codec::decode_file(&bytes).entries))
    };
    cases.iter().filter_map(of).collect()
}

impl Template {
    fn of(name: &str, mut entries: Vec<Entry>) -> Self {
        entries.retain(|entry| !is_of_run(&entry.body));
        let definition = entries.iter_mut().find_map(|entry| match &mut entry.body {
            Body::CaseBegan { definition, .. } => Some(mem::take(definition)),
            _ => None,
        });
        let ids: Vec<String> = entries.iter().filter_map(id_of).collect();
        let calls = entries.iter().filter_map(|entry| match entry.body {
            Body::CallBegan {
                call: CallId(call), ..
            } => Some(call + 1),
            _ => None,
        });
        let is_event = |entry: &&Entry| matches!(entry.body, Body::Event { .. });
        Self {
            plan: PlannedCase {
                name: name.to_owned(),
                definition: definition.unwrap(),
            },
            calls: calls.max().unwrap_or(0),
            events: entries.iter().filter(is_event).count(),
            entries: entries
                .into_iter()
                .map(|entry| {
                    let places = places(&entry, &ids);
                    (entry, places)
                })
                .collect(),
        }
    }
}

/// The entries that a history has once, for any number of cases.
fn is_of_run(body: &Body) -> bool {
    matches!(
        body,
        Body::RunBegan(_) | Body::RunPlanned(_) | Body::CasesEnded | Body::RunEnded(_)
    )
}

/// An id in its first entry.
fn id_of(entry: &Entry) -> Option<String> {
    match &entry.body {
        Body::CallBegan {
            request: Request::RunSandbox(spec),
            ..
        } => Some(spec.uid.to_string()),
        Body::CallEnded {
            result: Ok(Reply::Sandbox(id)),
            ..
        } => Some(id.to_string()),
        Body::CallEnded {
            result: Ok(Reply::Container(id)),
            ..
        } => Some(id.to_string()),
        _ => None,
    }
}

fn places(entry: &Entry, ids: &[String]) -> Vec<Place> {
    let mut bytes = Vec::new();
    codec::encode(entry, &mut bytes);
    let mut places = Vec::new();
    for id in ids {
        let found = bytes.windows(id.len()).enumerate();
        let found = found.filter(|(_, part)| *part == id.as_bytes());
        places.extend(found.map(|(start, _)| Place {
            from_end: bytes.len() - start,
            length: id.len(),
        }));
    }
    places
}
