//! One thing that a run saw or did, and when.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::{
    CallFault, CallId, CaseRun, Event, HostInstant, Labels, Reply, Request, RunEnd, RunInfo,
    RunPlan, Seq, SubscriptionId,
};

/// One line of the history.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place.
    pub seq: Seq,
    /// When it was recorded, which for an event is when it arrived.
    pub at: HostInstant,
    /// What it is.
    pub body: Body,
}

impl Entry {
    /// Roughly how much memory the entry holds, in bytes: enough to bound a history by.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        const ENTRY: usize = 512;
        const STATUS: usize = 512;
        let (event, message) = match &self.body {
            Body::Event { event, message, .. } => (event, message),
            Body::CallBegan { message, .. } => return ENTRY + message.len(),
            Body::CallEnded {
                result, message, ..
            } => return ENTRY + message.len() + result.as_ref().map_or(0, listed),
            _ => return ENTRY,
        };
        let sandbox = event
            .sandbox
            .iter()
            .map(|status| weight(&status.labels, &status.annotations));
        let containers = event.containers.iter().map(|status| {
            weight(&status.labels, &status.annotations) + status.reason.len() + status.message.len()
        });
        ENTRY
            + message.len()
            + sandbox
                .chain(containers)
                .map(|bytes| STATUS + bytes)
                .sum::<usize>()
    }
}

/// What the items of a list hold.
fn listed(reply: &Reply) -> usize {
    const ITEM: usize = 256;
    let none = Labels::new();
    match reply {
        Reply::Sandboxes(items) => {
            let items = items.iter().map(|item| ITEM + weight(&item.labels, &none));
            items.sum()
        }
        Reply::Containers(items) => {
            let items = items.iter().map(|item| ITEM + weight(&item.labels, &none));
            items.sum()
        }
        _ => 0,
    }
}

fn weight(labels: &Labels, annotations: &Labels) -> usize {
    labels
        .iter()
        .chain(annotations)
        .map(|(key, value)| 64 + key.len() + value.len())
        .sum()
}

/// What an entry records.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// The first entry of every history.
    RunBegan(Arc<RunInfo>),
    /// A case starts.
    CaseBegan {
        /// Which execution.
        case: CaseRun,
        /// The case's id, such as `ORD-01`.
        id: String,
        /// The case's whole YAML, so that the history can be judged without the suite's files.
        definition: String,
        /// By how many percent bounds on time are stretched: 100 for not at all.
        timeout_percent: u32,
    },
    /// The case's own steps are over and what they caused has arrived; what follows is teardown.
    StepsEnded {
        /// Which execution.
        case: CaseRun,
        /// How far they came.
        end: StepsEnd,
    },
    /// The case and its teardown are over.
    CaseEnded {
        /// Which execution.
        case: CaseRun,
    },
    /// A call is about to be sent.
    CallBegan {
        /// Which call.
        call: CallId,
        /// The case that calls; none for the run's own calls.
        case: Option<CaseRun>,
        /// What is asked.
        request: Request,
        /// The CRI's message as it was sent. Empty if it is not known: then `request` stands for
        /// it.
        #[serde(skip)]
        #[cfg_attr(test, arbitrary(default))]
        message: Bytes,
    },
    /// A call has returned.
    CallEnded {
        /// Which call.
        call: CallId,
        /// What it returned.
        result: Result<Reply, CallFault>,
        /// The CRI's message as it was received; of a streamed list, all its messages. Empty if
        /// none was, or if it is not known: then `result` stands for it.
        #[serde(skip)]
        #[cfg_attr(test, arbitrary(default))]
        message: Bytes,
    },
    /// A stream was asked for. That proves nothing yet.
    SubscriptionOpened {
        /// Which stream.
        subscription: SubscriptionId,
        /// Who listens; none for the run itself, whose stream all cases read.
        observer: Option<Observer>,
    },
    /// The response's headers have come, which is before an event or with the first one.
    SubscriptionAnswered {
        /// Which stream.
        subscription: SubscriptionId,
    },
    /// An event that this run caused after the opening has arrived, or the time is over in which
    /// the stream had to become effective: the stream is live.
    SubscriptionProven {
        /// Which stream.
        subscription: SubscriptionId,
    },
    /// A stream has ended.
    SubscriptionEnded {
        /// Which stream.
        subscription: SubscriptionId,
        /// How it ended.
        end: StreamEnd,
    },
    /// An event has arrived.
    Event {
        /// On which stream.
        subscription: SubscriptionId,
        /// The event.
        event: Event,
        /// The CRI's message as it was received. Empty if it is not known: then `event` stands for
        /// it.
        #[serde(skip)]
        #[cfg_attr(test, arbitrary(default))]
        message: Bytes,
    },
    /// A case has waited for something.
    Waited {
        /// Which execution.
        case: CaseRun,
        /// For what, as a phrase: `STOPPED of c`.
        wanted: String,
        /// Whether it came in time.
        met: bool,
        /// The longest that the wait was allowed to take.
        #[cfg_attr(test, arbitrary(with = any::span))]
        bound: Duration,
        /// How long it took to come; absent where that tells nothing, and in older histories.
        took: Option<Took>,
        /// What was seen instead, when the bound was over; empty where nothing was, and in older
        /// histories.
        instead: String,
    },
    /// A fact read from this host's kernel for a case.
    Fact {
        /// Which execution.
        case: CaseRun,
        /// What was read.
        fact: HostFact,
    },
    /// The run is prepared: what it is about to do.
    RunPlanned(Arc<RunPlan>),
    /// A case or an invariant of the plan has no verdict of the oracle's.
    Unjudged {
        /// Its number in the plan.
        case: CaseRun,
        /// Whether it was left out on purpose; otherwise it is undecided.
        skipped: bool,
        /// Why.
        reason: String,
    },
    /// All cases are over and late events had their time; what follows is the run's clean-up.
    CasesEnded,
    /// The suite itself did nothing for some time that ends here: the host gave it none.
    HeldUp {
        /// For how long.
        #[cfg_attr(test, arbitrary(with = any::span))]
        by: Duration,
    },
    /// The run is over. Only the ends of its streams may follow.
    RunEnded(RunEnd),
}

/// How long something took that a case has waited for.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Took {
    /// An event.
    Event(#[cfg_attr(test, arbitrary(with = any::span))] Duration),
    /// The end of a subscription.
    End(#[cfg_attr(test, arbitrary(with = any::span))] Duration),
}

/// One that listens beside the run.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observer {
    /// The case that has subscribed; none if the run has, to learn what several subscribers get.
    pub case: Option<CaseRun>,
    /// The name by which the case calls it.
    pub binding: String,
    /// Whether it stops reading once it is live.
    pub stalls: bool,
    /// The deadline that it asked for.
    #[cfg_attr(test, arbitrary(with = any::span_or_none))]
    pub deadline: Option<Duration>,
    /// Whether its request has fields that the CRI does not define.
    pub unknown_fields: bool,
    /// The host by which it calls the runtime; the usual one if absent.
    pub authority: Option<String>,
}

/// How far a case's steps came.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepsEnd {
    /// To their end: the expectations can be judged.
    Complete,
    /// The last wait was in vain: something required did not come in time.
    Unmet,
    /// The situation did not arise, for this reason.
    Inconclusive(String),
    /// A step could not be done, for this reason.
    Error(String),
    /// The runtime does otherwise than the case presumes, and may: it refuses earlier, say, or not
    /// at all.
    NotApplicable(String),
}

/// How a stream ended.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamEnd {
    /// We gave it up.
    Cancelled,
    /// The runtime ended it with status OK.
    Closed,
    /// It broke.
    Failed(CallFault),
}

/// What the kernel says.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostFact {
    /// How many processes the whole host's OOM killer has killed since boot.
    OomKills(u64),
}
