//! The one way by which events leave the model: each passes the behaviour's hooks once for each
//! subscriber, and then waits in a bounded queue of that subscriber's own.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::agenda::later;
use super::behaviour::{Audience, Behaviour, Delivery, EventHook, FullQueue, Offer, Replay};
use super::random::Random;
use crate::history::{CallFault, Event, HostInstant, RuntimeNanos, StatusCode, StreamEnd};

/// One that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subscriber(u64);

/// What comes next on a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// An event.
    Event(Box<Event>),
    /// The stream's end.
    End(StreamEnd),
    /// Nothing yet.
    Nothing,
}

/// What a hook knows of an event's way to one subscriber.
#[derive(Debug)]
pub struct Passage<'a> {
    /// When the event is sent.
    pub at: HostInstant,
    /// How many events this hook has seen on the stream before.
    pub nth: u64,
    /// What the hook keeps from one event of the stream to the next.
    pub held: &'a mut Vec<Event>,
    random: &'a mut Random,
}

/// What a hook keeps of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    seen: u64,
    held: Vec<Event>,
}

impl Passage<'_> {
    /// A number that looks random.
    pub fn random(&mut self) -> u64 {
        self.random.next()
    }
}

/// Events on their way out.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage {
    streams: BTreeMap<Subscriber, Stream>,
    next: u64,
    turn: u64,
    last_stamp: i64,
    /// What nobody has listened to, or what waits for the end of a jam.
    backlog: VecDeque<Event>,
    /// What nobody has listened to, for whoever comes, whoever else has got it.
    unheard: VecDeque<Event>,
    /// The latest events, whoever has got them.
    latest: VecDeque<Event>,
    /// How many that have gone are still taken for subscribers.
    zombies: usize,
}

#[derive(Clone, Debug)]
struct Stream {
    effective: HostInstant,
    queue: VecDeque<Box<Event>>,
    end: Option<StreamEnd>,
    /// What each hook keeps of this stream.
    memories: Vec<Memory>,
}

/// How many events a runtime keeps that keeps only the tail of what nobody has listened to.
const TAIL: usize = 2;

/// How many events a runtime keeps that tells them to whoever comes.
const LATEST: usize = 20;

/// Something for a stream, due later.
pub(super) type Late = (HostInstant, Subscriber, Delivery);

impl Stage {
    /// Opens a stream.
    ///
    /// # Errors
    /// If the behaviour offers none.
    pub(super) fn subscribe(
        &mut self,
        behaviour: &Behaviour,
        at: HostInstant,
    ) -> Result<Subscriber, CallFault> {
        if behaviour.offer == Offer::Unimplemented {
            return Err(CallFault {
                code: StatusCode::UNIMPLEMENTED,
                message: "method GetContainerEvents not implemented".to_owned(),
                deadline: Duration::ZERO,
            });
        }
        let subscriber = Subscriber(self.next);
        self.next += 1;
        let queue = match behaviour.replay {
            Replay::Latest => self.latest.iter().cloned().map(Box::new).collect(),
            Replay::ToEach => self.unheard.iter().cloned().map(Box::new).collect(),
            Replay::None | Replay::ToFirst | Replay::TailToFirst => VecDeque::new(),
        };
        let stream = Stream {
            effective: later(at, behaviour.effective_in()),
            queue,
            end: (behaviour.offer == Offer::Closed).then_some(StreamEnd::Closed),
            memories: vec![Memory::default(); behaviour.events.len()],
        };
        self.streams.insert(subscriber, stream);
        Ok(subscriber)
    }

    pub(super) fn unsubscribe(&mut self, behaviour: &Behaviour, subscriber: Subscriber) {
        let gone = self.streams.remove(&subscriber);
        let open = gone.is_some_and(|stream| stream.end.is_none());
        self.zombies += usize::from(behaviour.zombies && open);
    }

    /// How a stream is going to end by itself, and when.
    pub(super) fn ends(
        behaviour: &Behaviour,
        at: HostInstant,
        subscriber: Subscriber,
        deadline: Option<Duration>,
    ) -> Vec<Late> {
        let expired = deadline.filter(|_| behaviour.heeds_deadlines);
        let expired = expired.map(|deadline| {
            let fault = CallFault {
                code: StatusCode::DEADLINE_EXCEEDED,
                message: "context deadline exceeded".to_owned(),
                deadline,
            };
            (deadline, StreamEnd::Failed(fault))
        });
        let closed = behaviour.streams_last.map(|time| (time, StreamEnd::Closed));
        let ends = [expired, closed].into_iter().flatten();
        let ends = ends.map(|(after, end)| {
            let delivery = Delivery::End(Duration::ZERO, end);
            (later(at, after), subscriber, delivery)
        });
        ends.collect()
    }

    /// Whether something waits for a subscriber.
    pub(super) fn has_something(&self, subscriber: Subscriber) -> bool {
        let stream = self.streams.get(&subscriber);
        stream.is_none_or(|stream| !stream.queue.is_empty() || stream.end.is_some())
    }

    /// Ends all streams with a fault, and forgets what was to be sent.
    pub(super) fn end_all(&mut self, fault: &CallFault) {
        self.backlog.clear();
        for stream in self.streams.values_mut() {
            let end = || StreamEnd::Failed(fault.clone());
            stream.end.get_or_insert_with(end);
        }
    }

    /// The time that an event is given: never the same twice, and never going back.
    pub(super) fn stamp(&mut self, at: HostInstant) -> RuntimeNanos {
        self.last_stamp = at.realtime_ns.max(self.last_stamp + 1);
        RuntimeNanos(self.last_stamp)
    }

    /// Sends an event to whoever shall get it; returns what is due later.
    pub(super) fn send(
        &mut self,
        behaviour: &Behaviour,
        at: HostInstant,
        event: &Event,
        random: &mut Random,
    ) -> Vec<Late> {
        self.keep(event);
        if self.zombies > 0 {
            self.zombies -= 1;
            return Vec::new();
        }
        let audience = self.audience(behaviour, at);
        if audience.is_empty() && behaviour.replay == Replay::ToEach {
            self.unheard.push_back(event.clone());
            self.unheard.truncate(behaviour.queue);
            return Vec::new();
        }
        if audience.is_empty() || self.is_jammed(behaviour) {
            let kept = matches!(behaviour.replay, Replay::ToFirst | Replay::TailToFirst);
            let room = match behaviour.replay {
                Replay::TailToFirst => TAIL,
                _ => behaviour.queue,
            };
            if behaviour.replay == Replay::TailToFirst && self.backlog.len() == room {
                self.backlog.pop_front();
            }
            if (kept || !audience.is_empty()) && self.backlog.len() < room {
                self.backlog.push_back(event.clone());
            }
            return Vec::new();
        }
        let mut late = Vec::new();
        for subscriber in audience {
            late.extend(self.pass(behaviour, at, subscriber, event.clone(), random));
        }
        late
    }

    fn keep(&mut self, event: &Event) {
        self.latest.push_back(event.clone());
        if self.latest.len() > LATEST {
            self.latest.pop_front();
        }
    }

    /// Sends what has waited, if somebody can get it now; returns what is due later.
    pub(super) fn send_backlog(
        &mut self,
        behaviour: &Behaviour,
        at: HostInstant,
        random: &mut Random,
    ) -> Vec<Late> {
        let mut late = Vec::new();
        while !self.backlog.is_empty()
            && !self.is_jammed(behaviour)
            && !self.audience(behaviour, at).is_empty()
        {
            if let Some(event) = self.backlog.pop_front() {
                late.extend(self.send(behaviour, at, &event, random));
            }
        }
        late
    }

    fn audience(&mut self, behaviour: &Behaviour, at: HostInstant) -> Vec<Subscriber> {
        let listens = |stream: &Stream| {
            stream.end.is_none() && stream.effective.monotonic_ns <= at.monotonic_ns
        };
        let streams = self.streams.iter();
        let mut all: Vec<Subscriber> = streams
            .filter(|(_, stream)| listens(stream))
            .map(|(subscriber, _)| *subscriber)
            .collect();
        let chosen = match behaviour.audience {
            _ if behaviour.offer == Offer::Silence => None,
            Audience::All => return all,
            Audience::InTurns if !all.is_empty() => {
                self.turn += 1;
                usize::try_from(self.turn % all.len() as u64).ok()
            }
            Audience::Oldest => Some(0),
            Audience::Newest | Audience::InTurns => all.len().checked_sub(1),
        };
        let chosen = chosen.and_then(|place| all.get(place).copied());
        all.clear();
        all.extend(chosen);
        all
    }

    /// Whether nobody gets an event until somebody reads.
    pub(super) fn is_jammed(&self, behaviour: &Behaviour) -> bool {
        let is_full = |stream: &Stream| stream.queue.len() >= behaviour.queue;
        behaviour.full_queue == FullQueue::Wedge && self.streams.values().any(is_full)
    }

    /// Takes one event through the hooks to one subscriber.
    fn pass(
        &mut self,
        behaviour: &Behaviour,
        at: HostInstant,
        subscriber: Subscriber,
        event: Event,
        random: &mut Random,
    ) -> Vec<Late> {
        let Some(stream) = self.streams.get_mut(&subscriber) else {
            return Vec::new();
        };
        let deliveries = passed(&behaviour.events, &mut stream.memories, random, at, event);
        let mut late = Vec::new();
        for delivery in deliveries {
            match delivery.delay() {
                Duration::ZERO => self.deliver(behaviour, subscriber, delivery),
                delay => {
                    let at = later(at, behaviour.late_by(delay));
                    late.push((at, subscriber, delivery));
                }
            }
        }
        late
    }

    /// Puts something into a subscriber's queue, if there is room for it.
    pub(super) fn deliver(
        &mut self,
        behaviour: &Behaviour,
        subscriber: Subscriber,
        delivery: Delivery,
    ) {
        let Some(stream) = self.streams.get_mut(&subscriber) else {
            return;
        };
        if stream.end.is_some() {
            return;
        }
        let is_full = stream.queue.len() >= behaviour.queue;
        match delivery {
            Delivery::Event(_, event) if !is_full => stream.queue.push_back(event),
            Delivery::Event(..) if behaviour.full_queue == FullQueue::Fail => {
                let message = format!("{} events wait and are not read", behaviour.queue);
                stream.end = Some(StreamEnd::Failed(CallFault {
                    code: StatusCode::RESOURCE_EXHAUSTED,
                    message,
                    deadline: Duration::ZERO,
                }));
            }
            Delivery::Event(..) => {}
            Delivery::End(_, end) => stream.end = Some(end),
        }
    }

    /// What comes next on a stream.
    pub(super) fn take(&mut self, subscriber: Subscriber) -> Taken {
        let Some(stream) = self.streams.get_mut(&subscriber) else {
            return Taken::End(StreamEnd::Cancelled);
        };
        match (stream.queue.pop_front(), &stream.end) {
            (Some(event), _) => Taken::Event(event),
            (None, Some(end)) => Taken::End(end.clone()),
            (None, None) => Taken::Nothing,
        }
    }
}

/// What becomes of one event on its way through all hooks, in the order of their list.
pub(super) fn passed(
    hooks: &[EventHook],
    memories: &mut [Memory],
    random: &mut Random,
    at: HostInstant,
    event: Event,
) -> Vec<Delivery> {
    let mut deliveries = Delivery::now(event);
    for (hook, memory) in hooks.iter().zip(memories) {
        let mut passed = Vec::new();
        for delivery in deliveries {
            let Delivery::Event(after, event) = delivery else {
                passed.push(delivery);
                continue;
            };
            let mut passage = Passage {
                at,
                nth: memory.seen,
                held: &mut memory.held,
                random,
            };
            let hooked = hook(&mut passage, *event).into_iter();
            passed.extend(hooked.map(|delivery| delivery.delayed(after)));
            memory.seen += 1;
        }
        deliveries = passed;
    }
    deliveries
}

impl Delivery {
    fn delay(&self) -> Duration {
        match self {
            Self::Event(delay, _) | Self::End(delay, _) => *delay,
        }
    }

    fn delayed(self, by: Duration) -> Self {
        match self {
            Self::Event(delay, event) => Self::Event(delay + by, event),
            Self::End(delay, end) => Self::End(delay + by, end),
        }
    }
}
