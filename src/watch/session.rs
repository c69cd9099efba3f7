//! The loop of `watch`: waits for events and relists, and prints the observer's notices.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::notice::Notice;
use super::observer::Observer;
use super::output::Output;
use super::stream::{Stream, notice};
use super::throttle::Throttle;
use crate::cri::{Client, ConnectError};
use crate::drive::{LivePleg, RecordingClient, Relist, RelistFault, StreamError};
use crate::history::{Body, Entry, Labels, StatusCode, StreamEnd};
use crate::host::InterruptSignals;
use crate::metrics::{Endpoint, EndpointError, Metrics};
use crate::recorder::{Overrun, Reader, Recorder};
use crate::report::printable;
use crate::run::{Endpoints, Exit};
use crate::{host, limits, terminal};

/// How many relists may be queued.
const WAITING: usize = 2;

// Doc comments of fields are the help of options.
/// The options of `watch`.
#[derive(Args, Clone, Debug)]
pub struct WatchOptions {
    /// Output format; json is one object per line
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// How late an event may arrive before it counts as missed, and how long a pod has to be idle
    /// before the states reported by relists and by events are compared
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = limits::duration)]
    pub within: Duration,
    /// Serve metrics at this address, such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_address: Option<SocketAddr>,
}

/// Why `watch` failed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The runtime cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no event stream.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] EndpointError),
    /// The output cannot be written to.
    #[error("print: {0}")]
    Output(io::Error),
    /// The async runtime or a signal handler could not be started.
    #[error("start: {0}")]
    System(#[from] io::Error),
}

impl WatchError {
    /// The exit code for this error.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Metrics(_) => Exit::Usage,
            Self::Connect(_) | Self::Stream(_) | Self::Output(_) | Self::System(_) => {
                Exit::Undecided
            }
        }
    }
}

/// Watches until a signal arrives, or the output is closed.
///
/// # Errors
/// If the runtime cannot be watched, or the output cannot be written to.
pub fn watch(endpoints: &Endpoints, options: &WatchOptions) -> Result<(), WatchError> {
    let runtime = Runtime::new()?;
    let watched = runtime.block_on(async { Watch::begin(endpoints, options).await?.run().await });
    // Calls in progress are abandoned.
    runtime.shutdown_background();
    watched
}

/// The next input of the loop.
enum Input {
    Stop,
    Recorded,
    Relisted(Result<Relist, RelistFault>),
    Reopen,
}

struct Watch {
    output: Output,
    metrics: Metrics,
    observer: Observer,
    stream: Stream,
    reader: Reader,
    relists: Receiver<Result<Relist, RelistFault>>,
    stop: CancellationToken,
    /// Whether it is still unknown if the runtime supports events.
    support_unknown: bool,
    opened_before: bool,
    relist_failed: bool,
    overruns: Throttle,
    _endpoint: Option<Endpoint>,
    _tasks: JoinSet<()>,
}

impl Watch {
    async fn begin(endpoints: &Endpoints, options: &WatchOptions) -> Result<Self, WatchError> {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        listen_for_signals(&mut tasks, &stop)?;
        let client =
            Client::connect(&endpoints.runtime, &endpoints.images, endpoints.deadline).await?;
        let metrics = Metrics::default();
        let endpoint = match options.metrics_address {
            Some(address) => Some(serve(&metrics, address).await?),
            None => None,
        };
        announce(endpoints, &client);
        let recorder = Recorder::bounded(limits::WATCH_ENTRIES, limits::WATCH_BYTES);
        let reader = recorder.reader();
        let (send, relists) = mpsc::channel(WAITING);
        let pleg = LivePleg::new(RecordingClient::new(client), metrics.clone(), Labels::new());
        tasks.spawn(pleg.run(send));
        Ok(Self {
            output: options.output,
            observer: Observer::new(options.within, host::now()),
            stream: Stream::new(endpoints.runtime.clone(), recorder, metrics.clone()),
            metrics,
            reader,
            relists,
            stop,
            support_unknown: true,
            opened_before: false,
            relist_failed: false,
            overruns: Throttle::default(),
            _endpoint: endpoint,
            _tasks: tasks,
        })
    }

    /// Runs until a signal arrives or the output is closed; neither is an error.
    async fn run(mut self) -> Result<(), WatchError> {
        loop {
            let shown = match self.next_input().await {
                Input::Stop => {
                    let summary = Notice::Summary(self.observer.summary(host::now()));
                    return unless_closed(self.show(&summary)).map(|_| ());
                }
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
            };
            if !unless_closed(shown)? || !terminal::is_read() {
                return Ok(());
            }
        }
    }

    async fn next_input(&mut self) -> Input {
        let pause = self.stream.pause(host::now());
        let reopen = async {
            match pause {
                // Only the other arms can end this wait earlier.
                Some(pause) => {
                    drop(tokio::time::timeout(pause, std::future::pending::<()>()).await);
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A flood of events must not prevent stopping.
            biased;
            () = self.stop.cancelled() => Input::Stop,
            Some(relisted) = self.relists.recv() => Input::Relisted(relisted),
            () = self.reader.changed() => Input::Recorded,
            () = reopen => Input::Reopen,
        }
    }

    async fn open(&mut self) -> io::Result<()> {
        let (opened, notice) = self.stream.open().await;
        if let Some(at) = opened {
            self.observer.opened(at, self.opened_before);
            self.opened_before = true;
        }
        self.show(&notice)
    }

    fn recorded(
        &mut self,
        entries: Result<Vec<Arc<Entry>>, Overrun>,
    ) -> Result<io::Result<()>, StreamError> {
        let Ok(entries) = entries else {
            let now = host::now();
            self.observer.stream_lost();
            self.observer.opened(now, false);
            return Ok(match self.overruns.happened(now) {
                Some(times) => self.show(&overrun(times)),
                None => Ok(()),
            });
        };
        for entry in entries {
            let shown = match &entry.body {
                Body::Event { event, .. } => {
                    self.support_unknown = false;
                    let notice = self.observer.event(entry.at, event);
                    let live = self.stream.received(entry.at);
                    live.map_or(Ok(()), |live| self.show(&live))
                        .and_then(|()| self.show(&notice))
                }
                Body::SubscriptionEnded { subscription, end } if self.stream.is(*subscription) => {
                    self.ended(end)?
                }
                _ => Ok(()),
            };
            if shown.is_err() {
                return Ok(shown);
            }
        }
        Ok(Ok(()))
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
        let notice = self.stream.stream_ended(end);
        Ok(self.show(&notice))
    }

    fn relisted(&mut self, relisted: Result<Relist, RelistFault>) -> io::Result<()> {
        match relisted {
            Ok(relist) => {
                if std::mem::take(&mut self.relist_failed) {
                    self.stream.reopen_now();
                    self.show(&notice("relist-works", "relists work again".to_owned()))?;
                }
                let notices = self.observer.relisted(host::now(), relist);
                notices.iter().try_for_each(|notice| self.show(notice))
            }
            Err(_) if self.relist_failed => Ok(()),
            Err((method, fault)) => {
                self.relist_failed = true;
                let detail = format!("the relist fails: {method}: {fault}; retrying");
                self.show(&notice("relist-failed", detail))
            }
        }
    }

    fn show(&self, notice: &Notice) -> io::Result<()> {
        match notice {
            Notice::Event(seen) => {
                if let Some(lag_ns) = seen.lag_ns.filter(|_| seen.evented != "ignored") {
                    self.metrics.event_arrived(lag_ns);
                }
            }
            Notice::Missed { .. } => self.metrics.missed(),
            Notice::Disagreement { outage: false, .. } => self.metrics.disagreed(),
            Notice::Disagreement { .. }
            | Notice::Relist { .. }
            | Notice::Agreement { .. }
            | Notice::Stream { .. }
            | Notice::Summary(_) => {}
        }
        self.output.show(host::now(), notice)
    }
}

fn overrun(times: u64) -> Notice {
    let count = match times {
        1 => String::new(),
        _ => format!(", {times} times"),
    };
    let detail =
        format!("events arrived faster than they could be shown, and some were lost{count}");
    notice("overrun", detail)
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

/// Prints what is watched, and warns of side effects.
fn announce(endpoints: &Endpoints, client: &Client) {
    let runtime = client.version();
    let name = printable(&runtime.runtime_name);
    let version = printable(&runtime.runtime_version);
    terminal::say(&format!(
        "watching {name} {version} at {}",
        endpoints.runtime
    ));
    if name == "containerd" && version.trim_start_matches('v').starts_with("1.7.") {
        terminal::say(
            "warning: containerd 1.7 sends each event to only one of its subscribers: while this \
             command runs, a kubelet with EventedPLEG and other subscribers miss the events shown \
             here, and the events that they receive are missing here",
        );
    }
}

/// The first signal stops the watch with its summary, the second one ends the process.
fn listen_for_signals(tasks: &mut JoinSet<()>, stop: &CancellationToken) -> io::Result<()> {
    let mut signals = InterruptSignals::listen()?;
    let stop = stop.clone();
    tasks.spawn(async move {
        signals.first().await;
        stop.cancel();
        signals.second().await;
        std::process::exit(Exit::Undecided as i32);
    });
    Ok(())
}
