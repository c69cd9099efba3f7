//! Delivers events to subscribers: each event passes the behaviour's hooks once per subscriber, and
//! then waits in that subscriber's bounded queue.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::behaviour::{
    Behaviour, Delivery, EarlyStreams, EventHook, FanOutPolicy, FullQueue, Replay, StreamSupport,
};
use super::machine::{Machine, Timer, fault};
use super::timer_queue::later;
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
}

/// The state of a hook for one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct HookState {
    seen: u64,
    held: Vec<Event>,
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

    /// Leaves all streams open without events, and drops the backlog.
    pub(super) fn detach_all(&mut self) {
        self.backlog.clear();
        for stream in self.streams.values_mut() {
            stream.is_detached = true;
        }
    }

    fn take(&mut self, subscriber: Subscriber) -> StreamItem {
        let Some(stream) = self.streams.get_mut(&subscriber) else {
            return StreamItem::End(StreamEnd::Cancelled);
        };
        match (stream.queue.pop_front(), &stream.end) {
            (Some(event), _) => StreamItem::Event(event),
            (None, Some(end)) => StreamItem::End(end.clone()),
            (None, None) => StreamItem::Pending,
        }
    }

    fn remember(&mut self, event: &Event) {
        self.latest.push_back(event.clone());
        if self.latest.len() > LATEST {
            self.latest.pop_front();
        }
    }

    /// Whether a full queue blocks delivery to all subscribers.
    pub(super) fn is_blocked(&self, behaviour: &Behaviour) -> bool {
        let is_full = |stream: &Stream| stream.queue.len() >= behaviour.queue;
        behaviour.full_queue == FullQueue::Wedge && self.streams.values().any(is_full)
    }
}

impl Machine {
    pub fn subscribe(
        &mut self,
        now: HostInstant,
        deadline: Option<Duration>,
    ) -> Result<Subscriber, CallFault> {
        self.advance(now);
        if !self.up {
            return Err(fault(StatusCode::UNAVAILABLE, "the runtime is down"));
        }
        let is_early = self.now.monotonic_ns < self.early_until.monotonic_ns;
        let (bus, behaviour) = (&mut self.event_bus, &self.behaviour);
        if is_early && behaviour.early_streams == EarlyStreams::Refused {
            return Err(fault(StatusCode::UNAVAILABLE, "events are not ready yet"));
        }
        if behaviour.stream_support == StreamSupport::Unimplemented {
            let message = "method GetContainerEvents not implemented";
            return Err(fault(StatusCode::UNIMPLEMENTED, message));
        }
        let queue = match behaviour.replay {
            Replay::Latest => bus.latest.iter().cloned().map(Box::new).collect(),
            Replay::ToEach => bus.missed.iter().cloned().map(Box::new).collect(),
            Replay::None | Replay::ToFirst | Replay::TailToFirst => VecDeque::new(),
        };
        let effective = later(self.now, behaviour.effective_in());
        let stream = Stream {
            effective,
            queue,
            end: (behaviour.stream_support == StreamSupport::ClosedAtOnce)
                .then_some(StreamEnd::Closed),
            is_detached: is_early && behaviour.early_streams == EarlyStreams::Silent,
            hook_states: vec![HookState::default(); behaviour.events.len()],
        };
        let subscriber = Subscriber(bus.next);
        bus.next += 1;
        bus.streams.insert(subscriber, stream);
        self.timers.put(effective, Timer::SubscriptionEffective);
        self.schedule_ends(subscriber, deadline);
        self.advance(now);
        Ok(subscriber)
    }

    /// Schedules the ends of a stream by deadline and by age.
    fn schedule_ends(&mut self, subscriber: Subscriber, deadline: Option<Duration>) {
        let deadline = deadline.filter(|_| self.behaviour.honours_deadlines);
        let expired = deadline.map(|deadline| {
            let (code, message) = (StatusCode::DEADLINE_EXCEEDED, "context deadline exceeded");
            let fault = CallFault {
                deadline,
                ..fault(code, message)
            };
            (deadline, StreamEnd::Failed(fault))
        });
        let closed = self.behaviour.max_stream_age;
        let closed = closed.map(|age| (age, StreamEnd::Closed));
        for (after, end) in expired.into_iter().chain(closed) {
            let end = Timer::Deliver(subscriber, Delivery::End(Duration::ZERO, end));
            self.after(after, end);
        }
    }

    pub fn unsubscribe(&mut self, subscriber: Subscriber) {
        let gone = self.event_bus.streams.remove(&subscriber);
        let open = gone.is_some_and(|stream| stream.end.is_none());
        self.event_bus.zombies += usize::from(self.behaviour.zombie_subscribers && open);
    }

    /// Whether the response headers of the stream have been sent.
    pub fn has_sent_headers(&self, subscriber: Subscriber) -> bool {
        let stream = self.event_bus.streams.get(&subscriber);
        let is_pending = |stream: &Stream| !stream.queue.is_empty() || stream.end.is_some();
        self.behaviour.sends_headers_at_once || stream.is_none_or(is_pending)
    }

    /// The current time as a runtime timestamp, later than all timestamps before.
    pub(super) fn next_timestamp(&mut self) -> RuntimeNanos {
        let last = &mut self.event_bus.last_timestamp;
        *last = self.now.realtime_ns.max(*last + 1);
        RuntimeNanos(*last)
    }

    /// Sends an event to the subscribers that are to receive it.
    pub(super) fn send(&mut self, event: &Event) {
        self.event_bus.remember(event);
        if self.event_bus.zombies > 0 {
            self.event_bus.zombies -= 1;
            return;
        }
        let receivers = self.receivers();
        let (bus, behaviour) = (&mut self.event_bus, &self.behaviour);
        bus.discards_logged += u64::from(behaviour.logs_discards && receivers.is_empty());
        if receivers.is_empty() && behaviour.replay == Replay::ToEach {
            bus.missed.push_back(event.clone());
            bus.missed.truncate(behaviour.queue);
            return;
        }
        if receivers.is_empty() || bus.is_blocked(behaviour) {
            let kept = matches!(behaviour.replay, Replay::ToFirst | Replay::TailToFirst);
            let room = match behaviour.replay {
                Replay::TailToFirst => TAIL,
                _ => behaviour.queue,
            };
            if behaviour.replay == Replay::TailToFirst && bus.backlog.len() == room {
                bus.backlog.pop_front();
            }
            if (kept || !receivers.is_empty()) && bus.backlog.len() < room {
                bus.backlog.push_back(event.clone());
            }
            return;
        }
        for subscriber in receivers {
            self.deliver_through_hooks(subscriber, event.clone());
        }
    }

    /// Sends the backlog, if a subscriber can receive it now.
    pub(super) fn send_backlog(&mut self) {
        while !self.event_bus.backlog.is_empty()
            && !self.event_bus.is_blocked(&self.behaviour)
            && !self.receivers().is_empty()
        {
            if let Some(event) = self.event_bus.backlog.pop_front() {
                self.send(&event);
            }
        }
    }

    fn receivers(&mut self) -> Vec<Subscriber> {
        let (bus, behaviour, now) = (&mut self.event_bus, &self.behaviour, self.now);
        let listens = |stream: &Stream| {
            let is_open = stream.end.is_none() && !stream.is_detached;
            is_open && stream.effective.monotonic_ns <= now.monotonic_ns
        };
        let streams = bus.streams.iter();
        let mut all: Vec<Subscriber> = streams
            .filter(|(_, stream)| listens(stream))
            .map(|(subscriber, _)| *subscriber)
            .collect();
        let chosen = match behaviour.fan_out {
            _ if behaviour.stream_support == StreamSupport::Silent => None,
            FanOutPolicy::Broadcast => return all,
            FanOutPolicy::RoundRobin if !all.is_empty() => {
                bus.turn += 1;
                usize::try_from(bus.turn % all.len() as u64).ok()
            }
            FanOutPolicy::OldestOnly => Some(0),
            FanOutPolicy::NewestOnly | FanOutPolicy::RoundRobin => all.len().checked_sub(1),
        };
        let chosen = chosen.and_then(|place| all.get(place).copied());
        all.clear();
        all.extend(chosen);
        all
    }

    /// Passes one event through the hooks and delivers it to one subscriber.
    fn deliver_through_hooks(&mut self, subscriber: Subscriber, event: Event) {
        let Some(stream) = self.event_bus.streams.get_mut(&subscriber) else {
            return;
        };
        let (hooks, states) = (&self.behaviour.events, &mut stream.hook_states);
        for delivery in apply_hooks(hooks, states, self.now, event) {
            match delivery.delay() {
                Duration::ZERO => self.deliver(subscriber, delivery),
                delay => {
                    let delay = self.behaviour.scaled(delay);
                    self.after(delay, Timer::Deliver(subscriber, delivery));
                }
            }
        }
    }

    /// Appends a delivery to a subscriber's queue, if there is room for it.
    pub(super) fn deliver(&mut self, subscriber: Subscriber, delivery: Delivery) {
        let (bus, behaviour) = (&mut self.event_bus, &self.behaviour);
        let streams = &mut bus.streams;
        let Some(stream) = streams.get_mut(&subscriber).filter(|it| it.end.is_none()) else {
            return;
        };
        let is_full = stream.queue.len() >= behaviour.queue;
        match delivery {
            Delivery::Event(_, event) if !is_full => stream.queue.push_back(event),
            Delivery::Event(..) if behaviour.full_queue == FullQueue::Fail => {
                let message = format!("{} events wait and are not read", behaviour.queue);
                let fault = fault(StatusCode::RESOURCE_EXHAUSTED, message);
                stream.end = Some(StreamEnd::Failed(fault));
            }
            Delivery::Event(..) => {}
            Delivery::End(_, end) => stream.end = Some(end),
        }
    }

    /// Removes the next item of a stream.
    pub fn take(&mut self, subscriber: Subscriber) -> StreamItem {
        let item = self.event_bus.take(subscriber);
        self.send_backlog();
        item
    }
}

/// Passes one event through all hooks in order; returns the resulting deliveries.
pub(super) fn apply_hooks(
    hooks: &[EventHook],
    hook_states: &mut [HookState],
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
            };
            let items = hook.apply(&mut context, *event).into_iter();
            passed.extend(items.map(|delivery| delivery.delayed(after)));
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
