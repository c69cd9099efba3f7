//! One thing that a run did or observed, and when.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
use arbitrary::Arbitrary;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::protobuf::{message, oneof, written_as};
use super::{
    CallFault, CallId, CaseRun, ContainerId, ContainerListing, ContainerStatus, Event, HostInstant,
    Labels, Reply, Request, RunEnd, RunInfo, RunPlan, SandboxStatus, Seq, Shared, SubscriptionId,
    codec,
};
use crate::escape::printable;

message! {
    pub struct Entry {
        /// Its position in the history.
        seq: Seq = 1,
        /// When it was recorded, which for an event is when it arrived.
        at: HostInstant,
        body: Body,
    }
}

impl Entry {
    /// An estimate of the memory that the entry uses, in bytes, to bound a history by.
    pub fn approximate_bytes(&self) -> usize {
        const ENTRY: usize = 512;
        let decoded = self.decoded_bytes();
        let message = self.message().map_or(0, Bytes::len);
        let other = if self.is_list() { 0 } else { message };
        ENTRY + message + decoded.max(other)
    }

    fn decoded_bytes(&self) -> usize {
        match &self.body {
            Body::Event { event, .. } => pod_bytes(event.sandbox.as_deref(), &event.containers),
            Body::CallEnded {
                result: Ok(reply), ..
            } => reply_bytes(reply),
            _ => 0,
        }
    }

    fn is_list(&self) -> bool {
        let Body::CallEnded { result, .. } = &self.body else {
            return false;
        };
        matches!(result, Ok(Reply::Sandboxes(_) | Reply::Containers(_)))
    }

    /// The CRI message that it records; `None` for an entry of another kind.
    fn message(&self) -> Option<&Bytes> {
        match &self.body {
            Body::Event { message, .. }
            | Body::CallBegan { message, .. }
            | Body::CallEnded { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The entry as a rule needs it: without the CRI message, whose fields are decoded, and with a
    /// digest in place of long annotations. A message stays where other fields are long, so that
    /// [`Self::approximate_bytes`] counts them.
    pub fn compact(&self) -> Self {
        let mut entry = self.clone();
        let length = self.message().map_or(0, Bytes::len);
        let is_counted = self.is_list() || length <= self.decoded_bytes() + LONG;
        match &mut entry.body {
            Body::Event { event, message, .. } => {
                drop_if(is_counted, message);
                compact(event.sandbox.as_mut().map(|it| &mut it.annotations));
                compact(event.containers.iter_mut().map(|it| &mut it.annotations));
            }
            Body::CallEnded {
                result, message, ..
            } => {
                drop_if(is_counted, message);
                match result {
                    Ok(Reply::SandboxStatus(report)) => {
                        compact([&mut report.status.annotations]);
                        compact(report.containers.iter_mut().map(|it| &mut it.annotations));
                    }
                    Ok(Reply::ContainerStatus(report)) => compact([&mut report.status.annotations]),
                    Ok(Reply::Sandboxes(items)) => {
                        compact(items.iter_mut().map(|it| &mut it.annotations));
                    }
                    Ok(Reply::Containers(items)) => {
                        compact(items.iter_mut().map(|it| &mut it.annotations));
                    }
                    _ => {}
                }
            }
            Body::CallBegan { message, .. } => drop_if(is_counted, message),
            _ => {}
        }
        entry
    }
}

/// The size above which annotations, or the other fields of a message, are long.
const LONG: usize = 4 << 10;

fn drop_if(is_counted: bool, message: &mut Bytes) {
    if is_counted {
        *message = Bytes::new();
    }
}

/// Replaces long annotations by a digest.
fn compact<'a>(all: impl IntoIterator<Item = &'a mut Labels>) {
    for annotations in all {
        if let Some(digest) = digest_of_long(annotations) {
            *annotations = digest;
        }
    }
}

/// A digest of pairs that together are long; `None` for short ones. Equal pairs have equal digests.
fn digest_of_long(pairs: &Labels) -> Option<Labels> {
    if pair_bytes(pairs) <= LONG {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (**pairs).hash(&mut hasher);
    let digest = format!("{:016x}", hasher.finish());
    Some([("digest".to_owned(), digest)].into_iter().collect())
}

/// An estimate of the memory that a decoded answer uses, in bytes.
fn reply_bytes(reply: &Reply) -> usize {
    const ITEM: usize = 256;
    match reply {
        Reply::Sandboxes(items) => {
            let items = items.iter();
            items
                .map(|it| ITEM + pair_bytes(&it.labels) + pair_bytes(&it.annotations))
                .sum()
        }
        Reply::Containers(items) => {
            let image = |it: &ContainerListing| it.image.as_deref().map_or(0, str::len);
            let items = items.iter();
            items
                .map(|it| ITEM + image(it) + pair_bytes(&it.labels) + pair_bytes(&it.annotations))
                .sum()
        }
        Reply::SandboxStatus(report) => pod_bytes(Some(&report.status), &report.containers),
        Reply::ContainerStatus(report) => pod_bytes(None, [&report.status]),
        _ => 0,
    }
}

fn pod_bytes<'a, T>(sandbox: Option<&SandboxStatus>, containers: T) -> usize
where
    T: IntoIterator<Item = &'a Shared<ContainerStatus>>,
{
    const STATUS: usize = 512;
    let sandbox = sandbox.map(|it| STATUS + pair_bytes(&it.labels) + pair_bytes(&it.annotations));
    let containers = containers
        .into_iter()
        .map(|it| STATUS + it.message.len() + pair_bytes(&it.labels) + pair_bytes(&it.annotations));
    sandbox.unwrap_or_default() + containers.sum::<usize>()
}

fn pair_bytes(pairs: &Labels) -> usize {
    const PAIR: usize = 64;
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| PAIR + key.len() + value.len())
        .sum()
}

oneof! {
    pub enum Body {
        /// The first entry of every history.
        RunBegan(Arc<RunInfo>) in codec::RunBegan = 4,
        CaseBegan {
            case: CaseRun = 1,
            /// The case's id, such as `ORD-01`.
            id: String = 2,
            /// The case's whole YAML, so that the history can be judged without the suite's files.
            definition: String = 3,
            /// The factor by which timeouts are multiplied, in percent.
            timeout_percent: u32 = 4,
        } = 5,
        /// The case's own steps are over and their events have arrived; teardown follows.
        StepsEnded {
            case: CaseRun = 1,
            /// How far they came.
            end: StepsEnd,
        } = 6,
        /// The case and its teardown are over.
        CaseEnded { case: CaseRun = 1 } = 7,
        /// A call is about to be sent.
        CallBegan {
            call: CallId,
            /// The case that calls; none for the run's own calls.
            case: Option<CaseRun>,
            request: Request,
            /// The CRI's message as it was sent; empty if it is not known, to encode `request`
            /// instead.
            #[cfg_attr(test, arbitrary(default))]
            message: Bytes,
        } in codec::CallBegan = 8,
        /// A call has returned.
        CallEnded {
            call: CallId,
            result: Result<Reply, CallFault>,
            /// The CRI's message as it was received; of a streamed list, all its messages. Empty if
            /// there was none or it is not known, to encode `result` instead.
            #[cfg_attr(test, arbitrary(default))]
            message: Bytes,
        } in codec::CallEnded = 9,
        /// A stream was requested. This does not show that the runtime serves it.
        SubscriptionOpened {
            subscription: SubscriptionId = 1,
            /// The subscriber; none for the run itself, whose stream all cases read.
            observer: Option<Observer> = 2,
        } = 10,
        /// The stream is live: an event that this run caused after opening it has arrived, or the
        /// time that a runtime has to make it effective is over.
        SubscriptionProven { subscription: SubscriptionId = 1 } = 11,
        SubscriptionEnded { subscription: SubscriptionId = 1, end: StreamEnd } = 12,
        /// An event has arrived.
        Event {
            subscription: SubscriptionId,
            event: Event,
            /// The CRI's message as it was received; empty if it is not known, to encode `event`
            /// instead.
            #[cfg_attr(test, arbitrary(default))]
            message: Bytes,
        } in codec::EventArrived = 13,
        /// A case has waited for something.
        Waited {
            case: CaseRun = 1,
            /// The expected event or state, as a phrase: `STOPPED of c`.
            wanted: String = 2,
            /// Whether it occurred in time.
            met: bool = 3,
            /// The longest that the wait was allowed to take.
            #[cfg_attr(test, arbitrary(with = any::span))]
            bound: Duration = 4,
            /// How long it took; absent where that means nothing.
            took: Option<Took>,
            /// The other observations within the bound; empty if there were none.
            instead: String = 7,
        } = 14,
        /// A fact read from this host's kernel for a case.
        Fact { case: CaseRun = 1, fact: HostFact } = 15,
        /// The run is prepared.
        RunPlanned(Arc<RunPlan>) = 16,
        /// A case or an invariant of the plan that the oracle does not judge.
        Unjudged {
            /// Its number in the plan.
            case: CaseRun = 1,
            /// Whether it was skipped on purpose; otherwise it is undecided.
            skipped: bool = 2,
            /// Why.
            reason: String = 3,
        } = 17,
        /// All cases are over, and so is the time for late events; the run's clean-up follows.
        CasesEnded = 18,
        /// The run is over. Only the ends of its streams may follow.
        RunEnded(RunEnd) = 19,
        /// The response headers have arrived, before the first event or with it.
        SubscriptionAnswered { subscription: SubscriptionId = 1 } = 20,
        /// The suite was not scheduled for some time, which ends here.
        HeldUp {
            #[cfg_attr(test, arbitrary(with = any::span))]
            by: Duration = 1,
        } = 21,
    }
}

oneof! {
    /// How long a case waited for something.
    #[derive(Copy, Eq)]
    pub enum Took {
        Event(#[cfg_attr(test, arbitrary(with = any::span))] Duration) = 5,
        End(#[cfg_attr(test, arbitrary(with = any::span))] Duration) = 6,
    }
}

message! {
    /// A subscriber besides the run itself.
    #[derive(Default, Eq)]
    pub struct Observer {
        /// The case that subscribed; none if the run did, to measure the delivery to several
        /// subscribers.
        case: Option<CaseRun> = 1,
        binding: String = 2,
        /// Whether it stops reading once it is live.
        stalls: bool = 3,
        /// The deadline that it asked for.
        #[cfg_attr(test, arbitrary(with = any::span_or_none))]
        deadline: Option<Duration> = 4,
        /// Whether its request has fields that the CRI does not define.
        unknown_fields: bool = 5,
        /// The host by which it calls the runtime; the usual one if absent.
        authority: Option<String> = 6,
        /// Whether it is a process of its own.
        own_process: bool = 7,
    }
}

oneof! {
    /// How the steps of a case ended.
    #[derive(Eq)]
    pub enum StepsEnd {
        /// All were done: the expectations can be judged.
        Complete = 2,
        /// The last wait timed out: something required did not happen.
        Unmet = 3,
        /// The situation did not arise, for this reason.
        Inconclusive(String) = 4,
        /// A step could not be done, for this reason.
        Error(String) = 5,
        /// The runtime legitimately behaves otherwise than the case assumes, for this reason: it
        /// refuses a request earlier, for instance, or not at all.
        NotApplicable(String) = 6,
    }
}

oneof! {
    #[derive(Eq)]
    pub enum StreamEnd {
        /// The suite cancelled it.
        Cancelled = 2,
        /// The runtime ended it with status OK.
        Closed = 3,
        Failed(CallFault) = 4,
    }
}

/// The beginning of the text of a wait that ends when a frozen process is continued.
pub const CONTINUED: &str = "SIGCONT to be sent to ";

oneof! {
    /// A fact read from the kernel.
    #[derive(Eq)]
    pub enum HostFact {
        /// How many processes the whole host's OOM killer has killed since boot.
        OomKills(u64) = 2,
        /// How much of a resource is held.
        Held { resource: Resource = 1, count: u64 = 2 } = 3,
        /// A container has no process any more, and the runtime, asked after that, reports it as
        /// running with this pid.
        ProcessGone { container: ContainerId = 1, pid: u32 = 2 } = 4,
        /// The suite has killed the first process of a container, or of a sandbox by the id of
        /// which it is named, and the kernel has ended it.
        Killed { id: ContainerId = 1, pid: u32 = 2 } = 5,
    }
}

impl fmt::Display for HostFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OomKills(count) => write!(f, "OOM kills of the host since boot: {count}"),
            Self::Held { resource, count } => write!(f, "{resource}: {count}"),
            Self::ProcessGone { container, pid } => {
                let container = printable(container.as_str());
                write!(
                    f,
                    "process {pid} of {container} is gone, which is reported as RUNNING"
                )
            }
            Self::Killed { id, pid } => {
                write!(f, "process {pid} of {} is killed", printable(id.as_str()))
            }
        }
    }
}

/// The holder of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(expecting = "a holder: `runtime`, `pods` or `log`")]
pub enum Holder {
    /// The process of the runtime.
    Runtime,
    /// The sandboxes and containers that the case has made, and leftovers of those it has removed:
    /// processes, cgroups and mounts that bear their ids.
    Pods,
    /// The runtime's log.
    Log,
}

macro_rules! resources {
    ($($(#[doc = $doc:literal])+ $number:literal $variant:ident $holder:ident $text:literal;)+) => {
        /// Something that a runtime holds, and of which it must not hold more and more.
        #[cfg_attr(test, derive(Arbitrary))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Resource {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Resource {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub fn holder(self) -> Holder {
                match self {
                    $(Self::$variant => Holder::$holder,)+
                }
            }

            /// Its number in a history.
            fn number(self) -> i32 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            /// The noun for several of it, in a sentence.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

resources! {
    /// Open file descriptors, without pidfds.
    1 Descriptors Runtime "file descriptors of the runtime";
    /// Threads.
    2 Threads Runtime "threads of the runtime";
    /// Resident memory, in KiB.
    3 MemoryKib Runtime "KiB of resident memory of the runtime";
    /// Mounted network namespaces, of any pod.
    4 NetworkNamespaces Runtime "mounted network namespaces";
    /// Shims and monitors.
    5 Monitors Pods "monitors of the pods";
    /// Cgroups, in each hierarchy.
    6 Cgroups Pods "cgroups of the pods";
    /// Mounts that the runtime sees.
    7 Mounts Pods "mounts of the pods";
    /// Lines that were logged while steps were taken.
    8 LogLines Log "lines in the log of the runtime";
}

impl Resource {
    /// Those of a holder.
    pub fn of(holder: Holder) -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(move |resource| resource.holder() == holder)
    }

    fn from_number(number: i32) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|resource| resource.number() == number)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

written_as! {
    Resource as i32 {
        |resource| resource.number(),
        |number| Resource::from_number(number).ok_or(Unreadable::Lacks("resource"))
    }
}

#[cfg(test)]
mod tests;
