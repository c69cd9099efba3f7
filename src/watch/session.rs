//! The loop of `watch`: waits for events and relists, records and judges them, and prints the
//! observer's notices.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::watch::Sender as Latest;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::announce::{self, announce, refuse_theft};
use super::notice::{Notice, Shown, show};
use super::observer::Observer;
use super::options::WatchOptions;
use super::processes::Processes;
use super::record::Record;
use super::stream::{RelistUnderWay, Relisting, Stream, Throttle, notice, overrun};
use super::verdict::{Beginning, Ending};
use super::{WatchError, redact, table};
use crate::cri::Client;
use crate::drive::{
    Heartbeat, LivePleg, RecordingClient, Relist, RelistFault, RelistRequests, StreamError,
};
use crate::history::{
    Body, ContainerId, ContainerState, Entry, HostInstant, Labels, StatusCode, StreamEnd,
};
use crate::host::Kernel;
use crate::metrics::{Endpoint, Metrics};
use crate::oracle::{INVARIANTS, Invariant, NO_MISSED_EVENT, PLEGS_AGREE};
use crate::recorder::{Overrun, Reader, Recorder};
use crate::run::{Connected, Exit, Output, RunError, Target};
use crate::verdicts::WatchNews;
use crate::{host, limits, terminal};

/// The maximum number of queued relists.
const WAITING: usize = 2;

/// Watches for the given time, or until a signal arrives or the output is closed. Returns the exit
/// code of the verdict, if the user requests one.
pub fn watch(target: &Target, options: &WatchOptions) -> Result<Exit, WatchError> {
    let runtime = Runtime::new()?;
    let profiles = options.selection().judged();
    let binds = |rule: &Invariant| rule.levels.highest_of(&profiles).is_some();
    if !INVARIANTS
        .iter()
        .any(|rule| rule.of_foreign_pods && binds(rule))
    {
        return Err(WatchError::NothingToJudge);
    }
    let stop = CancellationToken::new();
    listen_for_signals(&stop)?;
    let watched = async {
        let watch = Watch::begin(target, Kernel::Host, options, stop).await?;
        watch.run().await
    };
    let watched = runtime.block_on(watched);
    terminal::show_status(&[]);
    // Calls in progress are abandoned.
    runtime.shutdown_background();
    watched
}

type Relisted = Result<Relist, RelistFault>;

/// The next input of the loop.
enum Input {
    Stop,
    /// The given time is over.
    Over,
    Recorded,
    Relisted(Relisted),
    Reopen,
    /// The stream has been open long enough to count as live.
    Prove,
    /// The relist under way takes long.
    Late,
}

pub(super) struct Watch<'a> {
    options: &'a WatchOptions,
    metrics: Metrics,
    observer: Observer,
    stream: Stream,
    recorder: Recorder,
    reader: Reader,
    record: Record,
    ending: Ending,
    pleg: Option<LivePleg>,
    relist_requests: RelistRequests,
    /// The containers that the last full relist shows as running.
    running: Latest<BTreeSet<ContainerId>>,
    relists: (Sender<Relisted>, Receiver<Relisted>),
    stop: CancellationToken,
    /// Whether it is still unknown if the runtime supports events.
    support_unknown: bool,
    opened_before: bool,
    relisting: Relisting,
    relist_now: Arc<Notify>,
    under_way: RelistUnderWay,
    overruns: Throttle,
    drawn: HostInstant,
    shown: Shown,
    deadline: Option<tokio::time::Instant>,
    _endpoint: Option<Endpoint>,
    _heartbeat: Heartbeat,
    tasks: JoinSet<()>,
}

impl<'a> Watch<'a> {
    pub(super) async fn begin(
        target: &Target,
        kernel: Kernel,
        options: &'a WatchOptions,
        stop: CancellationToken,
    ) -> Result<Self, WatchError> {
        let connected = Connected::start(target).map_err(RunError::from)?;
        let endpoints = &connected.endpoints;
        let client =
            Client::connect(&endpoints.runtime, &endpoints.images, endpoints.deadline).await?;
        refuse_theft(target.socket(), options, &client).await?;
        let metrics = Metrics::default();
        let endpoint = match options.metrics_address {
            Some(address) => Some(serve(&metrics, address).await?),
            None => None,
        };
        announce(endpoints, &client);
        let Beginning { record, ending } = Beginning::new(endpoints, &client, options).await?;
        let recorder = Recorder::bounded(limits::WATCH_ENTRIES, limits::WATCH_BYTES);
        let reader = recorder.reader();
        let (running, mut tasks) = (Latest::default(), JoinSet::new());
        if announce::sees_processes(&kernel, target.socket()).await {
            let client = target.connect_past_relay(&client).await?;
            let processes = Processes::new(client, kernel, recorder.clone());
            tasks.spawn(processes.run(running.subscribe()));
        }
        let caller = RecordingClient::recording(client, recorder.clone());
        let pleg = LivePleg::new(caller, metrics.clone(), Labels::new());
        let duration = options.duration;
        Ok(Self {
            options,
            observer: Observer::new(host::now(), options.followed()),
            stream: Stream::new(endpoints.runtime.clone(), recorder.clone(), metrics.clone()),
            relist_requests: pleg.requests(),
            running,
            pleg: Some(pleg),
            metrics,
            reader,
            record,
            ending,
            relists: mpsc::channel(WAITING),
            stop,
            support_unknown: true,
            opened_before: false,
            relisting: Relisting::NotYet,
            relist_now: Arc::default(),
            under_way: RelistUnderWay::default(),
            overruns: Throttle::default(),
            drawn: HostInstant::default(),
            shown: Shown::default(),
            deadline: duration.map(|duration| tokio::time::Instant::now() + duration),
            _endpoint: endpoint,
            _heartbeat: Heartbeat::begin(&recorder),
            recorder,
            tasks,
        })
    }

    /// Runs until a signal arrives, the time is over, or the output is closed.
    pub(super) async fn run(mut self) -> Result<Exit, WatchError> {
        loop {
            let shown = match self.next_input().await {
                Input::Stop => {
                    let interrupted = self.deadline.is_some();
                    return self.end(interrupted);
                }
                Input::Over => return self.end(false),
                Input::Recorded => {
                    let entries = self.reader.drain();
                    self.recorded(entries)?
                }
                Input::Relisted(relisted) => {
                    let unreported = self.overruns.due(host::now());
                    let shown = unreported.map_or(Ok(()), |times| self.show(&overrun(times)));
                    shown.and_then(|()| self.relisted(relisted))
                }
                Input::Reopen => self.open().await,
                Input::Prove => {
                    self.prove();
                    Ok(())
                }
                Input::Late => {
                    let late = self.under_way.late(host::now());
                    late.map_or(Ok(()), |late| self.show(&late))
                }
            };
            if !unless_closed(shown)? || !terminal::is_read() {
                return Ok(Exit::Conformant);
            }
            self.draw();
        }
    }

    /// Draws the table of pods on a terminal, below the notices. Relists keep it up to date.
    fn draw(&mut self) {
        /// The interval of drawing.
        const TICK: Duration = Duration::from_millis(250);
        if self.options.output == Some(Output::Json) || host::elapsed(self.drawn) < TICK {
            return;
        }
        self.drawn = host::now();
        if let Some(size) = terminal::status_size() {
            let pods = self.observer.pods(self.drawn);
            terminal::show_status(&table::lines(
                &pods,
                self.options.followed(),
                self.drawn,
                size,
            ));
        }
    }

    /// Prints the summary and, if requested, the verdict.
    fn end(mut self, interrupted: bool) -> Result<Exit, WatchError> {
        terminal::show_status(&[]);
        if let Ok(entries) = self.reader.drain() {
            let shown = self.recorded(Ok(entries))?;
            unless_closed(shown)?;
        }
        let now = host::now();
        let report = self.ending.close(&mut self.record, now, interrupted);
        let totals = report.watch.clone().unwrap_or_default();
        let news = self.record.verdicts().take_news();
        unless_closed(self.found(&news))?;
        let summary = Notice::Summary(self.observer.summary(now, &totals));
        unless_closed(self.show(&summary))?;
        if !self.options.wants_a_verdict() {
            return Ok(Exit::Conformant);
        }
        Ok(self
            .ending
            .conclude(self.options, report, self.record.verdicts()))
    }

    async fn next_input(&mut self) -> Input {
        let now = host::now();
        let (reopen, prove) = (self.stream.pause(now), self.stream.unproven(now));
        let (deadline, late) = (self.deadline, self.under_way.late_in(now));
        tokio::select! {
            // A flood of events must not prevent stopping.
            biased;
            () = self.stop.cancelled() => Input::Stop,
            () = until(deadline) => Input::Over,
            Some(relisted) = self.relists.1.recv() => Input::Relisted(relisted),
            () = after(prove) => Input::Prove,
            () = self.reader.changed() => Input::Recorded,
            () = after(reopen) => Input::Reopen,
            () = after(late) => Input::Late,
        }
    }

    async fn open(&mut self) -> io::Result<()> {
        let (opened, notice) = self.stream.open().await;
        if let Some(at) = opened {
            self.observer.opened(at, self.opened_before);
            self.opened_before = true;
        } else {
            self.relist();
        }
        self.show(&notice)
    }

    /// Marks the stream as live. The first relist follows, so that it shows the state before the
    /// events.
    fn prove(&mut self) {
        let Some(subscription) = self.stream.prove() else {
            return;
        };
        self.recorder
            .record(Body::SubscriptionProven { subscription });
        self.relist();
    }

    /// Starts relisting, unless it has started.
    fn relist(&mut self) {
        if let Some(pleg) = self.pleg.take() {
            let (to, wake) = (self.relists.0.clone(), self.relist_now.clone());
            self.tasks.spawn(pleg.run(to, wake));
        }
    }

    fn recorded(
        &mut self,
        entries: Result<Vec<Arc<Entry>>, Overrun>,
    ) -> Result<io::Result<()>, StreamError> {
        let Ok(entries) = entries else {
            let now = host::now();
            // Events may be lost: the stream is reopened, so that none counts as missed.
            self.reader = self.recorder.reader();
            self.observer.stream_lost();
            self.stream.begin_anew();
            return Ok(match self.overruns.happened(now) {
                Some(times) => self.show(&overrun(times)),
                None => Ok(()),
            });
        };
        for entry in entries {
            let mut entry = Arc::unwrap_or_clone(entry);
            if self.options.redact {
                redact::entry(&mut entry);
            }
            self.under_way.look_at(&entry);
            let shown = self.look_at(&entry)?;
            self.record.push(entry);
            if shown.is_err() {
                return Ok(shown);
            }
        }
        let news = self.record.verdicts().take_news();
        Ok(self.found(&news))
    }

    fn look_at(&mut self, entry: &Entry) -> Result<io::Result<()>, StreamError> {
        match &entry.body {
            Body::Event { event, .. } => {
                self.support_unknown = false;
                if let Some(pod) = self.observer.relisted_after(event) {
                    self.relist_requests.request(pod);
                }
                let notice = self
                    .observer
                    .event(entry.at, event, entry.approximate_bytes());
                let live = self.stream.received(entry.at);
                if live.is_some() {
                    self.prove();
                }
                let shown = live.map_or(Ok(()), |live| self.show(&live));
                Ok(shown.and_then(|()| self.show(&notice)))
            }
            Body::SubscriptionEnded { subscription, end } if self.stream.is(*subscription) => {
                self.ended(end)
            }
            _ => Ok(Ok(())),
        }
    }

    /// The end of the first stream may show that the runtime does not support events.
    fn ended(&mut self, end: &StreamEnd) -> Result<io::Result<()>, StreamError> {
        let refused = match end {
            StreamEnd::Closed => true,
            StreamEnd::Cancelled => false,
            StreamEnd::Failed(fault) => fault.code == StatusCode::UNIMPLEMENTED,
        };
        if refused && std::mem::take(&mut self.support_unknown) {
            return Err(StreamError::of_the_first(end));
        }
        self.support_unknown = false;
        self.observer.stream_lost();
        self.relist();
        // Whether the runtime still runs shows now, not when it may be back.
        self.relist_now.notify_one();
        let notice = self.stream.stream_ended(end);
        Ok(self.show(&notice))
    }

    fn relisted(&mut self, relisted: Relisted) -> io::Result<()> {
        self.record.flush();
        match relisted {
            Ok(mut relist) => {
                match std::mem::replace(&mut self.relisting, Relisting::Works) {
                    Relisting::NotYet => {
                        let detail = "the first relist is done".to_owned();
                        self.show(&notice("relisted", detail))?;
                    }
                    Relisting::Works => {}
                    Relisting::Fails => {
                        self.stream.reopen_now();
                        self.show(&notice("relist-works", "relists work again".to_owned()))?;
                    }
                }
                if self.options.redact {
                    redact::relist(&mut relist);
                }
                if relist.pod.is_none() {
                    self.running.send_replace(running(&relist));
                }
                let notices = self.observer.relisted(relist);
                notices.iter().try_for_each(|notice| self.show(notice))
            }
            Err(_) if self.relisting == Relisting::Fails => Ok(()),
            Err((method, fault)) => {
                self.relisting = Relisting::Fails;
                let detail = format!("the relist fails: {method}: {fault}; retrying");
                self.show(&notice("relist-failed", detail))
            }
        }
    }

    fn found(&mut self, news: &[WatchNews]) -> io::Result<()> {
        let now = host::now();
        for news in news {
            match &*news.violation.rule {
                NO_MISSED_EVENT => self.metrics.missed(),
                PLEGS_AGREE => self.metrics.disagreed(),
                _ => {}
            }
            let notice = self.observer.found(news);
            if let Some(notice) = self.shown.next(notice, now) {
                self.show(&notice)?;
            }
        }
        Ok(())
    }

    fn show(&self, notice: &Notice) -> io::Result<()> {
        if let Notice::Event(seen) = notice
            && let Some(lag_ns) = seen.lag_ns.filter(|_| seen.evented != "ignored")
        {
            self.metrics.event_arrived(lag_ns);
        }
        show(self.options.output(), host::now(), notice)
    }
}

/// The containers that a relist shows as running.
fn running(relist: &Relist) -> BTreeSet<ContainerId> {
    let listed = relist.containers.iter();
    let running = listed.filter(|listed| listed.state == ContainerState::Running);
    running.map(|listed| listed.id.clone()).collect()
}

/// Waits for a duration; forever if it is `None`.
async fn after(pause: Option<Duration>) {
    until(pause.map(|pause| tokio::time::Instant::now() + pause)).await;
}

/// Waits until an instant; forever if it is `None`.
async fn until(then: Option<tokio::time::Instant>) {
    match then {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}

/// Whether to continue: not if the output is closed, as after `| head`, which is no error.
fn unless_closed(shown: io::Result<()>) -> Result<bool, WatchError> {
    match shown {
        Ok(()) => Ok(true),
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(fault) => Err(WatchError::Output(fault)),
    }
}

async fn serve(metrics: &Metrics, address: SocketAddr) -> Result<Endpoint, WatchError> {
    let endpoint = Endpoint::serve(metrics.clone(), address).await?;
    terminal::say(&endpoint.announcement());
    Ok(endpoint)
}

/// The first signal stops the watch with its summary, the second one ends the process.
fn listen_for_signals(stop: &CancellationToken) -> io::Result<()> {
    let stop = stop.clone();
    let end = || {
        terminal::show_status(&[]);
        std::process::exit(Exit::Undecided as i32);
    };
    host::on_interrupt(move |_| stop.cancel(), end, Exit::Undecided as i32)
}
