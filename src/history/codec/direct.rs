//! Reads what a case leaves in a history, which is nearly all of it, straight from the bytes; and
//! makes of what is told again one value, which is shared.
//!
//! Whatever is not as this suite writes it is nothing here: prost is then asked, which knows all of
//! protobuf, and what is wrong. What both can read they read alike, as a test holds.

mod rest;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::details;
use super::from_wire::{container_state, event_kind, flaw, sandbox_state};
use super::memo::{Memo, Texts};
use crate::history::wire::{self, Field, Fields, Value};
use crate::history::{
    Body, CallId, CaseRun, ContainerDetails, ContainerId, ContainerListing, ContainerReport,
    ContainerSpec, ContainerStatus, Entry, Event, HostInstant, Labels, PodUid, Reply, Request,
    RuntimeNanos, SandboxId, SandboxListing, SandboxMetadata, SandboxReport, SandboxSpec,
    SandboxStatus, Seq, Shared, Signal, SubscriptionId, Text,
};

/// Reads entries, and remembers what they tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Direct {
    parts: Parts,
    /// What a container's specification is before anything is read of it.
    blank: ContainerSpec,
    specs: Memo<Arc<SandboxSpec>>,
    sandboxes: Memo<Shared<SandboxStatus>>,
    containers: Memo<Shared<ContainerStatus>>,
}

/// What messages of many kinds tell: labels and annotations, and texts.
#[derive(Clone, Debug, Default)]
struct Parts {
    labels: Memo<Labels>,
    empty: Labels,
    run: Vec<u8>,
    texts: Texts,
    details: Memo<Shared<ContainerDetails>>,
}

impl Parts {
    fn empty(&self) -> Labels {
        self.empty.clone()
    }

    fn id<T: From<Arc<str>>>(&mut self, value: Value<'_>) -> Option<T> {
        self.text(value).map(T::from)
    }

    fn text(&mut self, value: Value<'_>) -> Option<Text> {
        self.texts.get(value.bytes()?)
    }

    /// Few differ: prost reads them.
    fn details(&mut self, value: Value<'_>) -> Option<Shared<ContainerDetails>> {
        self.details.get(value.bytes()?, |bytes| {
            let told = wire::read_details(bytes).ok()?;
            Some(details::from_wire(told).into())
        })
    }
}

impl Direct {
    /// An entry of a case, or of a stream; nothing if it is anything else.
    pub(super) fn entry(&mut self, message: &[u8]) -> Option<Entry> {
        let (mut seq, mut at, mut body) = (0, HostInstant::default(), None);
        let mut fields = Fields::of(message);
        while let Some(Field { tag, value }) = fields.next()? {
            match tag {
                1 => seq = value.number()?,
                2 => at.monotonic_ns = value.number()?,
                3 => at.realtime_ns = value.signed()?,
                8 => once(&mut body, self.call_began(value.bytes()?)?)?,
                9 => once(&mut body, self.call_ended(value.bytes()?)?)?,
                13 => once(&mut body, self.event(value.bytes()?)?)?,
                _ => once(&mut body, rest::body(tag, value.bytes()?)?)?,
            }
        }
        let seq = Seq(seq);
        Some(Entry {
            seq,
            at,
            body: body?,
        })
    }

    fn event(&mut self, message: &[u8]) -> Option<Body> {
        let (mut subscription, mut bytes) = (SubscriptionId(0), 0);
        let mut event = Event {
            container: ContainerId::default(),
            kind: event_kind(0),
            created_at: RuntimeNanos(0),
            sandbox: None,
            containers: Vec::new(),
        };
        let mut fields = Fields::of(message);
        while let Some(Field { tag, value }) = fields.next()? {
            match tag {
                1 => subscription = SubscriptionId(value.short()?),
                2 => event.container = self.parts.id(value)?,
                3 => event.kind = event_kind(value.short_signed()?),
                4 => event.created_at = RuntimeNanos(value.signed()?),
                5 => once(&mut event.sandbox, self.sandbox_status(value.bytes()?)?)?,
                6 => event
                    .containers
                    .push(self.container_status(value.bytes()?)?),
                7 => bytes = value.short()?,
                _ => return None,
            }
        }
        Some(Body::Event {
            subscription,
            event,
            bytes,
        })
    }

    fn call_began(&mut self, message: &[u8]) -> Option<Body> {
        let (mut call, mut case, mut request) = (CallId(0), None, None);
        let mut fields = Fields::of(message);
        while let Some(Field { tag, value }) = fields.next()? {
            match tag {
                1 => call = CallId(value.number()?),
                2 => case = Some(CaseRun(value.short()?)),
                _ => once(&mut request, self.request(tag, value)?)?,
            }
        }
        let request = request?;
        Some(Body::CallBegan {
            call,
            case,
            request,
        })
    }

    fn request(&mut self, tag: u64, value: Value<'_>) -> Option<Request> {
        Some(match tag {
            4 => Request::RunSandbox(self.sandbox_spec(value.bytes()?)?),
            5 => Request::StopSandbox(self.parts.id(value)?),
            6 => Request::RemoveSandbox(self.parts.id(value)?),
            7 => Request::SandboxStatus(self.parts.id(value)?),
            8 => {
                let mut labels = self.parts.empty();
                let mut fields = Fields::of(value.bytes()?);
                while let Some(Field { tag, .. }) = fields.next()? {
                    match tag {
                        1 => read_labels(&mut labels, &mut fields, &mut self.parts)?,
                        _ => return None,
                    }
                }
                Request::ListSandboxes(labels)
            }
            9 => Request::CreateContainer(Arc::new(self.container_spec(value.bytes()?)?)),
            10 => Request::StartContainer(self.parts.id(value)?),
            11 => rest::stop_container(value.bytes()?, &mut self.parts)?,
            12 => Request::RemoveContainer(self.parts.id(value)?),
            13 => Request::ContainerStatus(self.parts.id(value)?),
            14 => {
                let (mut sandbox, mut labels) = (None, self.parts.empty());
                let mut fields = Fields::of(value.bytes()?);
                while let Some(Field { tag, value }) = fields.next()? {
                    match tag {
                        1 => sandbox = Some(self.parts.id(value)?),
                        2 => read_labels(&mut labels, &mut fields, &mut self.parts)?,
                        _ => return None,
                    }
                }
                Request::ListContainers { sandbox, labels }
            }
            _ => rest::request(tag, value, &mut self.parts)?,
        })
    }

    fn call_ended(&mut self, message: &[u8]) -> Option<Body> {
        let (mut call, mut result) = (CallId(0), None);
        let (mut containers, mut timestamp) = (Vec::new(), RuntimeNanos(0));
        let mut stop_signal = Signal::DEFAULT;
        let mut fields = Fields::of(message);
        while let Some(Field { tag, value }) = fields.next()? {
            match tag {
                1 => call = CallId(value.number()?),
                2 => once(&mut result, Err(rest::call_fault(value.bytes()?)?))?,
                14 => containers.push(self.container_status(value.bytes()?)?),
                15 => timestamp = RuntimeNanos(value.signed()?),
                18 => stop_signal = Signal(value.short_signed()?),
                _ => once(&mut result, Ok(self.reply(tag, value)?))?,
            }
        }
        let mut result = result?;
        match &mut result {
            Ok(Reply::SandboxStatus(report)) => {
                (report.containers, report.timestamp) = (containers, timestamp);
            }
            Ok(Reply::ContainerStatus(report)) => report.stop_signal = stop_signal,
            _ => {}
        }
        Some(Body::CallEnded { call, result })
    }

    fn reply(&mut self, tag: u64, value: Value<'_>) -> Option<Reply> {
        Some(match tag {
            5 => Reply::Sandbox(self.parts.id(value)?),
            6 => Reply::Container(self.parts.id(value)?),
            7 => Reply::SandboxStatus(SandboxReport {
                status: self.sandbox_status(value.bytes()?)?,
                containers: Vec::new(),
                timestamp: RuntimeNanos(0),
            }),
            8 => Reply::ContainerStatus(ContainerReport {
                status: self.container_status(value.bytes()?)?,
                stop_signal: Signal::DEFAULT,
            }),
            9 => Reply::Sandboxes(items(value, |item| self.sandbox_listing(item))?),
            10 => Reply::Containers(items(value, |item| self.container_listing(item))?),
            _ => rest::reply(tag, value)?,
        })
    }

    fn sandbox_spec(&mut self, message: &[u8]) -> Option<Arc<SandboxSpec>> {
        let parts = &mut self.parts;
        self.specs.get(message, |message| {
            sandbox_spec(message, parts).map(Arc::new)
        })
    }

    fn container_spec(&mut self, message: &[u8]) -> Option<ContainerSpec> {
        let mut sandbox_spec = None;
        let mut spec = self.blank.clone();
        let mut fields = Fields::of(message);
        while let Some(Field { tag, value }) = fields.next()? {
            match tag {
                1 => spec.sandbox = self.parts.id(value)?,
                2 => once(&mut sandbox_spec, self.sandbox_spec(value.bytes()?)?)?,
                3 => spec.binding = value.text()?,
                4 => spec.attempt = value.short()?,
                5 => spec.image = value.text()?,
                6 => spec.command.push(value.text()?),
                7 => spec.declared_exit = Some(value.zigzag()?),
                8 => spec.memory_bytes = Some(value.number()?),
                9 => read_labels(&mut spec.labels, &mut fields, &mut self.parts)?,
                10 => read_labels(&mut spec.annotations, &mut fields, &mut self.parts)?,
                11 => spec.name = Some(value.text()?),
                12 => spec.tty = value.number()? != 0,
                13 => spec.flaw = flaw(value.short_signed()?),
                14 => spec.stop_signal = Signal(value.short_signed()?),
                15 => spec.pid_target = Some(self.parts.id(value)?),
                16 => spec.oom_group = value.number()? != 0,
                17 => spec.mounted = value.number()? != 0,
                18 => spec.log_path = value.text()?,
                _ => return None,
            }
        }
        spec.sandbox_spec = sandbox_spec?;
        Some(spec)
    }

    fn sandbox_status(&mut self, message: &[u8]) -> Option<Shared<SandboxStatus>> {
        let parts = &mut self.parts;
        self.sandboxes.get(message, |message| {
            sandbox_status(message, parts).map(Shared::from)
        })
    }

    fn container_status(&mut self, message: &[u8]) -> Option<Shared<ContainerStatus>> {
        let parts = &mut self.parts;
        self.containers.get(message, |message| {
            container_status(message, parts).map(Shared::from)
        })
    }

    fn sandbox_listing(&mut self, message: &[u8]) -> Option<SandboxListing> {
        let mut listing = SandboxListing {
            id: SandboxId::default(),
            metadata: None,
            state: sandbox_state(0),
            created_at: RuntimeNanos(0),
            labels: self.parts.empty(),
        };
        let mut fields = Fields::of(message);
        while let Some(Field { tag, value }) = fields.next()? {
            match tag {
                1 => listing.id = self.parts.id(value)?,
                2 => once(
                    &mut listing.metadata,
                    sandbox_metadata(value.bytes()?, &mut self.parts)?,
                )?,
                3 => listing.state = sandbox_state(value.short_signed()?),
                4 => listing.created_at = RuntimeNanos(value.signed()?),
                5 => read_labels(&mut listing.labels, &mut fields, &mut self.parts)?,
                _ => return None,
            }
        }
        Some(listing)
    }

    fn container_listing(&mut self, message: &[u8]) -> Option<ContainerListing> {
        let mut listing = ContainerListing {
            id: ContainerId::default(),
            sandbox: SandboxId::default(),
            metadata: None,
            state: container_state(0),
            created_at: RuntimeNanos(0),
            labels: self.parts.empty(),
            image: None,
        };
        let mut fields = Fields::of(message);
        while let Some(Field { tag, value }) = fields.next()? {
            match tag {
                1 => listing.id = self.parts.id(value)?,
                2 => listing.sandbox = self.parts.id(value)?,
                3 => once(
                    &mut listing.metadata,
                    rest::container_metadata(value.bytes()?, &mut self.parts)?,
                )?,
                4 => listing.state = container_state(value.short_signed()?),
                5 => listing.created_at = RuntimeNanos(value.signed()?),
                6 => read_labels(&mut listing.labels, &mut fields, &mut self.parts)?,
                7 => listing.image = Some(self.parts.text(value)?),
                _ => return None,
            }
        }
        Some(listing)
    }
}

fn sandbox_spec(message: &[u8], parts: &mut Parts) -> Option<SandboxSpec> {
    let mut spec = SandboxSpec {
        binding: String::new(),
        name: String::new(),
        namespace: String::new(),
        uid: PodUid::default(),
        attempt: 0,
        labels: parts.empty(),
        annotations: parts.empty(),
        runtime_handler: String::new(),
        sysctls: parts.empty(),
        ..SandboxSpec::default()
    };
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => spec.binding = value.text()?,
            2 => spec.name = value.text()?,
            3 => spec.namespace = value.text()?,
            4 => spec.uid = parts.id(value)?,
            5 => spec.attempt = value.short()?,
            6 => read_labels(&mut spec.labels, &mut fields, parts)?,
            7 => read_labels(&mut spec.annotations, &mut fields, parts)?,
            8 => spec.runtime_handler = value.text()?,
            9 => read_labels(&mut spec.sysctls, &mut fields, parts)?,
            10 => spec.own_network = value.number()? != 0,
            11 => spec.shared_pid = value.number()? != 0,
            12 => spec.cgroup_parent = value.text()?,
            13 => spec.memory_bytes = Some(value.number()?),
            14 => spec.log_directory = value.text()?,
            _ => return None,
        }
    }
    Some(spec)
}

fn sandbox_status(message: &[u8], parts: &mut Parts) -> Option<SandboxStatus> {
    let mut status = SandboxStatus {
        id: SandboxId::default(),
        metadata: None,
        state: sandbox_state(0),
        created_at: RuntimeNanos(0),
        ips: Vec::new(),
        labels: parts.empty(),
        annotations: parts.empty(),
        runtime_handler: String::new(),
    };
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => status.id = parts.id(value)?,
            2 => once(
                &mut status.metadata,
                sandbox_metadata(value.bytes()?, parts)?,
            )?,
            3 => status.state = sandbox_state(value.short_signed()?),
            4 => status.created_at = RuntimeNanos(value.signed()?),
            5 => status.ips.push(value.text()?),
            6 => read_labels(&mut status.labels, &mut fields, parts)?,
            7 => read_labels(&mut status.annotations, &mut fields, parts)?,
            8 => status.runtime_handler = value.text()?,
            _ => return None,
        }
    }
    Some(status)
}

fn container_status(message: &[u8], parts: &mut Parts) -> Option<ContainerStatus> {
    let mut status = ContainerStatus {
        id: ContainerId::default(),
        metadata: None,
        state: container_state(0),
        created_at: RuntimeNanos(0),
        started_at: RuntimeNanos(0),
        finished_at: RuntimeNanos(0),
        exit_code: 0,
        image: None,
        image_ref: Text::default(),
        reason: Text::default(),
        message: String::new(),
        labels: parts.empty(),
        annotations: parts.empty(),
        details: None,
    };
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => status.id = parts.id(value)?,
            2 => once(
                &mut status.metadata,
                rest::container_metadata(value.bytes()?, parts)?,
            )?,
            3 => status.state = container_state(value.short_signed()?),
            4 => status.created_at = RuntimeNanos(value.signed()?),
            5 => status.started_at = RuntimeNanos(value.signed()?),
            6 => status.finished_at = RuntimeNanos(value.signed()?),
            7 => status.exit_code = value.zigzag()?,
            8 => status.image = Some(parts.text(value)?),
            9 => status.image_ref = parts.text(value)?,
            10 => status.reason = parts.text(value)?,
            11 => status.message = value.text()?,
            12 => read_labels(&mut status.labels, &mut fields, parts)?,
            13 => read_labels(&mut status.annotations, &mut fields, parts)?,
            14 => once(&mut status.details, parts.details(value)?)?,
            _ => return None,
        }
    }
    Some(status)
}

fn sandbox_metadata(message: &[u8], parts: &mut Parts) -> Option<SandboxMetadata> {
    let mut metadata = SandboxMetadata::default();
    let mut fields = Fields::of(message);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => metadata.name = parts.text(value)?,
            2 => metadata.uid = parts.id(value)?,
            3 => metadata.namespace = parts.text(value)?,
            4 => metadata.attempt = value.short()?,
            _ => return None,
        }
    }
    Some(metadata)
}

/// The elements of a list, which is all that its message has.
fn items<T>(list: Value<'_>, mut read: impl FnMut(&[u8]) -> Option<T>) -> Option<Vec<T>> {
    let mut items = Vec::new();
    let mut fields = Fields::of(list.bytes()?);
    while let Some(Field { tag, value }) = fields.next()? {
        match tag {
            1 => items.push(read(value.bytes()?)?),
            _ => return None,
        }
    }
    Some(items)
}

/// Reads a map of which one field has been read. Its fields stand together.
fn read_labels(labels: &mut Labels, fields: &mut Fields<'_>, parts: &mut Parts) -> Option<()> {
    fields.run_into(&mut parts.run)?;
    *labels = labels.is_empty().then(|| {
        parts
            .labels
            .get(&parts.run, |run| pairs(run, &mut parts.texts))
    })??;
    Some(())
}

/// A map, from its fields without their keys.
fn pairs(run: &[u8], texts: &mut Texts) -> Option<Labels> {
    let mut labels = BTreeMap::new();
    let mut run = Fields::of(run);
    while run.left() > 0 {
        let (mut key, mut label) = (Text::default(), Text::default());
        let mut pair = Fields::of(run.length_delimited()?);
        while let Some(Field { tag, value }) = pair.next()? {
            match tag {
                1 => key = texts.get(value.bytes()?)?,
                2 => label = texts.get(value.bytes()?)?,
                _ => return None,
            }
        }
        labels.insert(key, label);
    }
    Some(labels.into())
}

/// Sets what must not be told twice: protobuf would merge it.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}
