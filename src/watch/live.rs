//! Watching: waits for what comes, and prints what the observer says of it.

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
use super::repeated::Repeated;
use super::stream::{Stream, notice};
use crate::cri::{Client, ConnectError};
use crate::drive::{LivePleg, RecordingClient, Relist, RelistFault, StreamError};
use crate::history::{Body, Entry, Labels, StatusCode, StreamEnd};
use crate::host::InterruptSignals;
use crate::metrics::{Endpoint, EndpointError, Metrics};
use crate::recorder::{Overrun, Reader, Recorder};
use crate::report::printable;
use crate::run::{Exit, Target};
use crate::{host, limits, terminal};

/// How many relists may wait to be looked at.
const WAITING: usize = 2;

// Comments of fields are the help of options.
/// How to watch, and how to print what is seen.
#[derive(Args, Clone, Debug)]
pub struct WatchOptions {
    /// How to print; json is one object a line
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// How late an event may be before it counts as missed, and how quiet a pod has to be before
    /// what relists and what events tell of it is compared
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = limits::duration)]
    pub within: Duration,
    /// Serve metrics at this address, such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_address: Option<SocketAddr>,
}

/// Why there is nothing to watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The runtime cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It has no events.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] EndpointError),
    /// What was seen cannot be printed.
    #[error("print: {0}")]
    Output(io::Error),
    /// The system refused what any program needs.
    #[error("start: {0}")]
    System(#[from] io::Error),
}

impl WatchError {
    /// The exit code that tells it.
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

/// Watches until it is told to stop, or nobody reads any more.
///
/// # Errors
/// If there is nothing to watch, or nowhere to print.
pub fn watch(target: &Target, options: &WatchOptions) -> Result<(), WatchError> {
    let runtime = Runtime::new()?;
    let watched = runtime.block_on(async { Watch::begin(target, options).await?.run().await });
    // A call that is under way is not waited for.
    runtime.shutdown_background();
    watched
}

/// What came next.
enum News {
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
    /// Whether it is still open if the runtime has events at all.
    first: bool,
    opened_before: bool,
    relist_failed: bool,
    overruns: Repeated,
    _endpoint: Option<Endpoint>,
    _tasks: JoinSet<()>,
}

impl Watch {
    async fn begin(target: &Target, options: &WatchOptions) -> Result<Self, WatchError> {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        listen_for_signals(&mut tasks, &stop)?;
        let client = Client::connect(&target.runtime, &target.images, target.deadline).await?;
        let metrics = Metrics::default();
        let endpoint = match options.metrics_address {
            Some(address) => Some(serve(&metrics, address).await?),
            None => None,
        };
        announce(target, &client);
        let recorder = Recorder::bounded(limits::WATCH_ENTRIES, limits::WATCH_BYTES);
        let reader = recorder.reader();
        let (send, relists) = mpsc::channel(WAITING);
        let pleg = LivePleg::new(RecordingClient::new(client), metrics.clone(), Labels::new());
        tasks.spawn(pleg.run(send));
        Ok(Self {
            output: options.output,
            observer: Observer::new(options.within, host::now()),
            stream: Stream::new(target.runtime.clone(), recorder, metrics.clone()),
            metrics,
            reader,
            relists,
            stop,
            first: true,
            opened_before: false,
            relist_failed: false,
            overruns: Repeated::default(),
            _endpoint: endpoint,
            _tasks: tasks,
        })
    }

    /// Ends well when it is told to stop, or nobody reads any more.
    async fn run(mut self) -> Result<(), WatchError> {
        loop {
            let shown = match self.news().await {
                News::Stop => {
                    let summary = Notice::Summary(self.observer.summary(host::now()));
                    return unless_unread(self.show(&summary)).map(|_| ());
                }
                News::Recorded => {
                    let entries = self.reader.drain();
                    self.recorded(entries)?
                }
                News::Relisted(relisted) => {
                    let untold = self.overruns.due(host::now());
                    let told = untold.map_or(Ok(()), |times| self.show(&overrun(times)));
                    told.and_then(|()| self.relisted(relisted))
                }
                News::Reopen => self.open().await,
            };
            if !unless_unread(shown)? || !terminal::is_read() {
                return Ok(());
            }
        }
    }

    async fn news(&mut self) -> News {
        let pause = self.stream.pause(host::now());
        let reopen = async {
            match pause {
                // Nothing can happen meanwhile but what the other arms wait for.
                Some(pause) => {
                    drop(tokio::time::timeout(pause, std::future::pending::<()>()).await);
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A flood of events must not keep it from stopping.
            biased;
            () = self.stop.cancelled() => News::Stop,
            Some(relisted) = self.relists.recv() => News::Relisted(relisted),
            () = self.reader.changed() => News::Recorded,
            () = reopen => News::Reopen,
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
            self.observer.deafened();
            self.observer.opened(now, false);
            return Ok(match self.overruns.happened(now) {
                Some(times) => self.show(&overrun(times)),
                None => Ok(()),
            });
        };
        for entry in entries {
            let shown = match &entry.body {
                Body::Event { event, .. } => {
                    self.first = false;
                    let notice = self.observer.event(entry.at, event);
                    let live = self.stream.heard(entry.at);
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

    /// The first stream tells whether the runtime has events at all.
    fn ended(&mut self, end: &StreamEnd) -> Result<io::Result<()>, StreamError> {
        let refused = match end {
            StreamEnd::Closed => true,
            StreamEnd::Cancelled => false,
            StreamEnd::Failed(fault) => fault.code == StatusCode::UNIMPLEMENTED,
        };
        if refused && std::mem::take(&mut self.first) {
            return Err(StreamError::of_the_first(end));
        }
        self.first = false;
        self.observer.deafened();
        let notice = self.stream.broke(end);
        Ok(self.show(&notice))
    }

    fn relisted(&mut self, relisted: Result<Relist, RelistFault>) -> io::Result<()> {
        match relisted {
            Ok(relist) => {
                if std::mem::take(&mut self.relist_failed) {
                    self.stream.hurry();
                    self.show(&notice("relist-works", "relists work again".to_owned()))?;
                }
                let notices = self.observer.relisted(host::now(), relist);
                notices.iter().try_for_each(|notice| self.show(notice))
            }
            Err(_) if self.relist_failed => Ok(()),
            Err((method, fault)) => {
                self.relist_failed = true;
                let detail = format!("the relist fails: {method}: {fault}; trying on");
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
    let often = match times {
        1 => String::new(),
        _ => format!(", {times} times"),
    };
    let detail = format!("events came faster than they could be shown, and some were lost{often}");
    notice("overrun", detail)
}

/// Whether to go on: not if nobody reads any more, as after `| head`, which is no fault.
fn unless_unread(shown: io::Result<()>) -> Result<bool, WatchError> {
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

/// Says what is watched, and what watching it does.
fn announce(target: &Target, client: &Client) {
    let runtime = client.version();
    let name = printable(&runtime.runtime_name);
    let version = printable(&runtime.runtime_version);
    terminal::say(&format!("watching {name} {version} at {}", target.runtime));
    if name == "containerd" && version.trim_start_matches('v').starts_with("1.7.") {
        terminal::say(
            "warning: containerd 1.7 gives each event to one of its listeners alone: while this \
             goes on, a kubelet with EventedPLEG and other watchers miss what is shown here, and \
             what they get is missed here",
        );
    }
}

/// The first signal ends the watch with its summary, the second one the process.
fn listen_for_signals(tasks: &mut JoinSet<()>, stop: &CancellationToken) -> io::Result<()> {
    let mut signals = InterruptSignals::listen()?;
    let stop = stop.clone();
    tasks.spawn(async move {
        signals.first().await;
        stop.cancel();
        signals.insistent().await;
        std::process::exit(Exit::Undecided as i32);
    });
    Ok(())
}
