//! Delivers events to subscribers: each event passes the behaviour's hooks once per subscriber, and
//! then waits in that subscriber's bounded queue.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::behaviour::{
    Behaviour, Delivery, EventHook, FanOutPolicy, FullQueue, Replay, StreamSupport,
};
use super::timer_queue::{Random, later};
use crate::history::{CallFault, Event, HostInstant, RuntimeNanos, StatusCode, StreamEnd};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subscriber(u64);

#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    Event(Box<Event>),
    End(StreamEnd),
    /// Nothing is available yet.
    Pending,
}

/// The context of a hook for the delivery of an event to one subscriber.
#[derive(Debug)]
pub struct HookContext<'a> {
    /// When the event is sent.
    pub at: HostInstant,
    /// The number of earlier events of the stream.
    pub nth: u64,
    /// Events that the hook retains between its calls for this stream.
    pub held: &'a mut Vec<Event>,
    random: &'a mut Random,
}

/// The state of a hook for one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct HookState {
    seen: u64,
    held: Vec<Event>,
}

impl HookContext<'_> {
    pub fn random(&mut self) -> u64 {
        self.random.next()
    }
}

/// The subscribers and their queues.
#[derive(Clone, Debug, Default)]
pub(super) struct EventBus {
    streams: BTreeMap<Subscriber, Stream>,
    next: u64,
    turn: u64,
    last_timestamp: i64,
    /// Events that were sent while no subscriber was connected, or while the stream is blocked.
    backlog: VecDeque<Event>,
    /// Events that were sent while no subscriber was connected, kept for every later subscriber.
    missed: VecDeque<Event>,
    latest: VecDeque<Event>,
    /// The number of disconnected subscribers that still consume an event.
    zombies: usize,
    /// The number of events without a receiver, each of which is a line in the log.
    discards_logged: u64,
}

#[derive(Clone, Debug)]
struct Stream {
    effective: HostInstant,
    queue: VecDeque<Box<Event>>,
    end: Option<StreamEnd>,
    /// Whether the daemon that opened it has ended.
    is_detached: bool,
    hook_states: Vec<HookState>,
}

/// The number of events retained by `Replay::TailToFirst`.
const TAIL: usize = 2;

/// The number of events retained by `Replay::Latest`.
const LATEST: usize = 20;

/// A delivery that is due later.
pub(super) struct ScheduledDelivery {
    pub(super) at: HostInstant,
    pub(super) subscriber: Subscriber,
    pub(super) delivery: Delivery,
}

impl EventBus {
    /// The number of streams that are open.
    pub(super) fn streams_open(&self) -> u64 {
        self.streams.len() as u64
    }

    /// The number of lines in the log about events without a receiver.
    pub(super) fn discards_logged(&self) -> u64 {
        self.discards_logged
    }

    /// The number of streams that were ever opened.
    pub(super) fn streams_opened(&self) -> u64 {
        self.next
    }

    pub(super) fn subscribe(
        &mut self,
        behaviour: &Behaviour,
        at: HostInstant,
    ) -> Result<Subscriber, CallFault> {
        if behaviour.stream_support == StreamSupport::Unimplemented {
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
            Replay::ToEach => self.missed.iter().cloned().map(Box::new).collect(),
            Replay::None | Replay::ToFirst | Replay::TailToFirst => VecDeque::new(),
        };
        let stream = Stream {
            effective: later(at, behaviour.effective_in()),
            queue,
            end: (behaviour.stream_support == StreamSupport::ClosedAtOnce)
                .then_some(StreamEnd::Closed),
            is_detached: false,
            hook_states: vec![HookState::default(); behaviour.events.len()],
        };
        self.streams.insert(subscriber, stream);
        Ok(subscriber)
    }

    pub(super) fn unsubscribe(&mut self, behaviour: &Behaviour, subscriber: Subscriber) {
        let gone = self.streams.remove(&subscriber);
        let open = gone.is_some_and(|stream| stream.end.is_none());
        self.zombies += usize::from(behaviour.zombie_subscribers && open);
    }

    /// The ends of a stream by deadline and by age.
    pub(super) fn ends(
        behaviour: &Behaviour,
        at: HostInstant,
        subscriber: Subscriber,
        deadline: Option<Duration>,
    ) -> Vec<ScheduledDelivery> {
        let expired = deadline
            .filter(|_| behaviour.honours_deadlines)
            .map(|deadline| {
                let fault = CallFault {
                    code: StatusCode::DEADLINE_EXCEEDED,
                    message: "context deadline exceeded".to_owned(),
                    deadline,
                };
                (deadline, StreamEnd::Failed(fault))
            });
        let closed = behaviour
            .max_stream_age
            .map(|time| (time, StreamEnd::Closed));
        [expired, closed]
            .into_iter()
            .flatten()
            .map(|(after, end)| ScheduledDelivery {
                at: later(at, after),
                subscriber,
                delivery: Delivery::End(Duration::ZERO, end),
            })
            .collect()
    }

    /// Whether an event or the end of the stream is queued for a subscriber.
    pub(super) fn has_pending(&self, subscriber: Subscriber) -> bool {
        let stream = self.streams.get(&subscriber);
        stream.is_none_or(|stream| !stream.queue.is_empty() || stream.end.is_some())
    }

    /// Ends all streams with an error, and drops the backlog.
    pub(super) fn end_all(&mut self, fault: &CallFault) {
        self.backlog.clear();
        for stream in self.streams.values_mut() {
            let end = || StreamEnd::Failed(fault.clone());
            stream.end.get_or_insert_with(end);
        }
    }

    /// Whether any stream is open.
    pub(super) fn has_open_stream(&self) -> bool {
        self.streams.values().any(|stream| stream.end.is_none())
    }

    /// Leaves a stream open without events.
    pub(super) fn detach(&mut self, subscriber: Subscriber) {
        if let Some(stream) = self.streams.get_mut(&subscriber) {
            stream.is_detached = true;
        }
    }

    /// Leaves all streams open without events, and drops the backlog.
    pub(super) fn detach_all(&mut self) {
        self.backlog.clear();
        for stream in self.streams.values_mut() {
            stream.is_detached = true;
        }
    }

    /// A timestamp for an event: strictly increasing.
    pub(super) fn next_timestamp(&mut self, at: HostInstant) -> RuntimeNanos {
        self.last_timestamp = at.realtime_ns.max(self.last_timestamp + 1);
        RuntimeNanos(self.last_timestamp)
    }

    /// Sends an event to the subscribers that are to receive it; returns the deliveries that are
    /// due later.
    pub(super) fn send(
        &mut self,
        behaviour: &Behaviour,
        at: HostInstant,
        event: &Event,
        random: &mut Random,
    ) -> Vec<ScheduledDelivery> {
        self.remember(event);
        if self.zombies > 0 {
            self.zombies -= 1;
            return Vec::new();
        }
        let receivers = self.receivers(behaviour, at);
        self.discards_logged += u64::from(behaviour.logs_discards && receivers.is_empty());
        if receivers.is_empty() && behaviour.replay == Replay::ToEach {
            self.missed.push_back(event.clone());
            self.missed.truncate(behaviour.queue);
            return Vec::new();
        }
        if receivers.is_empty() || self.is_blocked(behaviour) {
            let kept = matches!(behaviour.replay, Replay::ToFirst | Replay::TailToFirst);
            let room = match behaviour.replay {
                Replay::TailToFirst => TAIL,
                _ => behaviour.queue,
            };
            if behaviour.replay == Replay::TailToFirst && self.backlog.len() == room {
                self.backlog.pop_front();
            }
            if (kept || !receivers.is_empty()) && self.backlog.len() < room {
                self.backlog.push_back(event.clone());
            }
            return Vec::new();
        }
        let mut late = Vec::new();
        for subscriber in receivers {
            late.extend(self.dispatch(behaviour, at, subscriber, event.clone(), random));
        }
        late
    }

    fn remember(&mut self, event: &Event) {
        self.latest.push_back(event.clone());
        if self.latest.len() > LATEST {
            self.latest.pop_front();
        }
    }

    /// Sends the backlog, if a subscriber can receive it now; returns the deliveries that are due
    /// later.
    pub(super) fn send_backlog(
        &mut self,
        behaviour: &Behaviour,
        at: HostInstant,
        random: &mut Random,
    ) -> Vec<ScheduledDelivery> {
        let mut late = Vec::new();
        while !self.backlog.is_empty()
            && !self.is_blocked(behaviour)
            && !self.receivers(behaviour, at).is_empty()
        {
            if let Some(event) = self.backlog.pop_front() {
                late.extend(self.send(behaviour, at, &event, random));
            }
        }
        late
    }

    fn receivers(&mut self, behaviour: &Behaviour, at: HostInstant) -> Vec<Subscriber> {
        let listens = |stream: &Stream| {
            let is_open = stream.end.is_none() && !stream.is_detached;
            is_open && stream.effective.monotonic_ns <= at.monotonic_ns
        };
        let streams = self.streams.iter();
        let mut all: Vec<Subscriber> = streams
            .filter(|(_, stream)| listens(stream))
            .map(|(subscriber, _)| *subscriber)
            .collect();
        let chosen = match behaviour.fan_out {
            _ if behaviour.stream_support == StreamSupport::Silent => None,
            FanOutPolicy::Broadcast => return all,
            FanOutPolicy::RoundRobin if !all.is_empty() => {
                self.turn += 1;
                usize::try_from(self.turn % all.len() as u64).ok()
            }
            FanOutPolicy::OldestOnly => Some(0),
            FanOutPolicy::NewestOnly | FanOutPolicy::RoundRobin => all.len().checked_sub(1),
        };
        let chosen = chosen.and_then(|place| all.get(place).copied());
        all.clear();
        all.extend(chosen);
        all
    }

    /// Whether a full queue blocks delivery to all subscribers.
    pub(super) fn is_blocked(&self, behaviour: &Behaviour) -> bool {
        let is_full = |stream: &Stream| stream.queue.len() >= behaviour.queue;
        behaviour.full_queue == FullQueue::Wedge && self.streams.values().any(is_full)
    }

    /// Passes one event through the hooks and delivers it to one subscriber.
    fn dispatch(
        &mut self,
        behaviour: &Behaviour,
        at: HostInstant,
        subscriber: Subscriber,
        event: Event,
        random: &mut Random,
    ) -> Vec<ScheduledDelivery> {
        let Some(stream) = self.streams.get_mut(&subscriber) else {
            return Vec::new();
        };
        let deliveries = apply_hooks(
            &behaviour.events,
            &mut stream.hook_states,
            random,
            at,
            event,
        );
        let mut late = Vec::new();
        for delivery in deliveries {
            match delivery.delay() {
                Duration::ZERO => self.deliver(behaviour, subscriber, delivery),
                delay => {
                    let at = later(at, behaviour.scaled(delay));
                    late.push(ScheduledDelivery {
                        at,
                        subscriber,
                        delivery,
                    });
                }
            }
        }
        late
    }

    /// Appends a delivery to a subscriber's queue, if there is room for it.
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

    /// Removes the next item of a stream.
    pub(super) fn take(&mut self, subscriber: Subscriber) -> StreamItem {
        let Some(stream) = self.streams.get_mut(&subscriber) else {
            return StreamItem::End(StreamEnd::Cancelled);
        };
        match (stream.queue.pop_front(), &stream.end) {
            (Some(event), _) => StreamItem::Event(event),
            (None, Some(end)) => StreamItem::End(end.clone()),
            (None, None) => StreamItem::Pending,
        }
    }
}

/// Passes one event through all hooks in order; returns the resulting deliveries.
pub(super) fn apply_hooks(
    hooks: &[EventHook],
    hook_states: &mut [HookState],
    random: &mut Random,
    at: HostInstant,
    event: Event,
) -> Vec<Delivery> {
    let mut deliveries = Delivery::now(event);
    for (hook, memory) in hooks.iter().zip(hook_states) {
        let mut passed = Vec::new();
        for delivery in deliveries {
            let Delivery::Event(after, event) = delivery else {
                passed.push(delivery);
                continue;
            };
            let mut context = HookContext {
                at,
                nth: memory.seen,
                held: &mut memory.held,
                random,
            };
            let apply_reply_hooks = hook(&mut context, *event).into_iter();
            passed.extend(apply_reply_hooks.map(|delivery| delivery.delayed(after)));
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
