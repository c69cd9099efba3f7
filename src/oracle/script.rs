//! Histories as one line of text, so that a test shows only the entries that matter.
//!
//! `pod run; c create; c CREATED; c start; c STARTED; c stop; c STOPPED exit=137; end`: calls are
//! words in lower case, events in upper case, and statements are separated by `;`. A name that
//! begins with `pod` is a sandbox. [`Script::statement`] has the whole vocabulary. Entry #0 is the
//! `CaseBegan`; a call is two entries, unless one of its ends is named by `begins` or `returns`;
//! each entry comes 1 ms after the one before.

mod event;
mod inspect;
mod observe;

use inspect::{find, own_labels};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::history::{
    Body, CallId, CaseHistory, CaseRun, ContainerId, ContainerSpec, ContainerStatus, Entry,
    HostFact, HostInstant, Labels, PodUid, Reply, Request, Resource, SandboxId, SandboxSpec, Seq,
    StatusCode, StepsEnd, SubscriptionId,
};
use crate::outcome::Violation;
use inspect::refused;

/// The case's begin, by the wall clock.
const BEGAN_NS: i64 = 1_700_000_000_000_000_000;
const CASE: CaseRun = CaseRun(1);

/// The history of a scripted case.
#[track_caller]
pub(crate) fn history(script: &str) -> CaseHistory {
    let mut history = CaseHistory::new(CASE);
    for entry in entries(script) {
        history.push(&Arc::new(entry));
    }
    history
}

#[track_caller]
pub(crate) fn entries(script: &str) -> Vec<Entry> {
    let mut read = Script::default();
    read.record(Body::CaseBegan {
        case: CASE,
        id: "ORD-01".to_owned(),
        definition: String::new(),
        timeout_percent: 100,
    });
    for statement in script.split(';').map(str::trim) {
        read.statement(&statement.split_whitespace().collect::<Vec<_>>());
    }
    read.entries
}

/// Resources with CPU shares, or without.
fn shares(shares: Option<&str>) -> Labels {
    shares.into_iter().map(|it| ("cpu_shares", it)).collect()
}

/// Violations as lines: `INV-02 at #4 #6: c: expected one CREATED event: CREATED again`.
pub(crate) fn render<'a>(violations: impl IntoIterator<Item = &'a Violation>) -> String {
    let line = |found: &Violation| {
        let places: Vec<_> = found
            .evidence
            .iter()
            .map(|seq| format!(" #{seq}"))
            .collect();
        let (rule, places, subject) = (&found.rule, places.concat(), &found.subject);
        let (expected, actual) = (found.expected(), found.actual());
        format!("{rule} at{places}: {subject}: expected {expected}: {actual}\n")
    };
    violations.into_iter().map(line).collect()
}

#[derive(Default)]
struct Script {
    entries: Vec<Entry>,
    pause: Duration,
    calls: Vec<(String, Request)>,
    sandboxes: BTreeMap<String, Arc<SandboxSpec>>,
    containers: BTreeMap<String, Container>,
    latest_pod: String,
    attempts: BTreeMap<String, u32>,
    stopped: BTreeSet<String>,
    stream: u32,
}

struct Container {
    spec: Arc<ContainerSpec>,
    shown: Option<ContainerStatus>,
    /// The times of its creation, its start, and its end.
    times: Times,
}

#[derive(Clone, Copy, Default)]
struct Times {
    created: i64,
    started: Option<i64>,
    finished: Option<i64>,
}

/// The command line of a container, or of an `exec`.
fn command(exit: Option<&str>, extras: &Extras<'_>) -> Vec<String> {
    let mode = extras.value("mode").unwrap_or("until-term");
    let words = exit.map_or_else(|| vec![mode], |code| vec!["exit", code]);
    let all = ["/workload"].into_iter().chain(words);
    all.map(str::to_owned).collect()
}

/// The words after the first two of a statement: `exit=137`, `no-sandbox`.
struct Extras<'a>(&'a [&'a str]);

impl<'a> Extras<'a> {
    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        let pairs = self.0.iter().filter_map(|word| word.split_once('='));
        pairs
            .into_iter()
            .find(|(found, _)| *found == key)
            .map(|(_, value)| value)
    }

    fn number(&self, key: &str) -> Option<i32> {
        self.value(key)
            .map(|value| value.parse().expect("a number"))
    }
}

impl Script {
    #[track_caller]
    fn statement(&mut self, words: &[&str]) {
        match *words {
            ["end"] => self.end(StepsEnd::Complete),
            ["end", "unmet"] => self.end(StepsEnd::Unmet),
            ["end", "error"] => self.end(StepsEnd::Error("interrupted".to_owned())),
            ["end", "refused"] => self.end_refused(),
            ["end", "inconclusive"] => self.end(StepsEnd::Inconclusive("no race".to_owned())),
            ["end", "not-applicable"] => self.end(StepsEnd::NotApplicable("refused".to_owned())),
            ["kills" | "held", ..] => self.fact(words),
            [
                "wait",
                how @ ("met" | "in-vain" | "not-at-once"),
                wanted,
                ref instead @ ..,
            ] => self.wait_for(how, wanted, instead),
            ["wait", took, what, bound] => self.wait(took, what, bound),
            ["held-up", time] => self.held_up(time),
            [name, "killed"] => {
                let id = self.id_of(name);
                let fact = HostFact::Killed { id, pid: 7 };
                self.record(Body::Fact { case: CASE, fact });
            }
            ["resubscribe"] => self.resubscribe(),
            ["unsubscribe"] => self.unsubscribe(),
            ["subscribe"] => self.subscribe(),
            ["proven"] => self.record(Body::SubscriptionProven {
                subscription: SubscriptionId(self.stream),
            }),
            ["stream", "ends", ref how @ ..] => self.end_stream(how),
            ["observe", on, ref extras @ ..] => self.observe(on, extras),
            ["pass", time] => {
                self.pause = humantime::parse_duration(time).expect("a time such as 2s");
            }
            [name, "inspect", ref extras @ ..] => self.inspect(name, &Extras(extras)),
            [name, word, ref extras @ ..] if word.starts_with(char::is_uppercase) => {
                self.event(name, word, &Extras(extras));
            }
            [name, word, ref extras @ ..] => self.call(name, word, &Extras(extras)),
            _ => panic!("not a statement: {words:?}"),
        }
    }

    /// The time of the next entry.
    fn next_at(&self) -> HostInstant {
        let last = self.entries.last().map_or(0, |entry| entry.at.monotonic_ns);
        let step = self.pause + Duration::from_millis(1);
        let monotonic_ns = last + u64::try_from(step.as_nanos()).expect("a short time");
        let since_1970 = i64::try_from(monotonic_ns).expect("a short time");
        HostInstant {
            monotonic_ns,
            realtime_ns: BEGAN_NS + since_1970,
        }
    }

    fn record(&mut self, body: Body) {
        let at = self.next_at();
        self.pause = Duration::ZERO;
        let seq = Seq(self.entries.len() as u64);
        self.entries.push(Entry { seq, at, body });
    }

    fn end(&mut self, end: StepsEnd) {
        self.record(Body::StepsEnded { case: CASE, end });
    }

    /// `kills 12` is the count of OOM kills; `held Threads 12` is the amount of a resource.
    #[track_caller]
    fn fact(&mut self, words: &[&str]) {
        let number = |text: &str| text.parse().expect("a number");
        let fact = match *words {
            ["kills", count] => HostFact::OomKills(number(count)),
            ["held", name, count] => {
                let mut all = Resource::ALL.iter();
                let resource = all.find(|resource| format!("{resource:?}") == name);
                let (resource, count) = (*resource.expect("a resource"), number(count));
                HostFact::Held { resource, count }
            }
            _ => panic!("not a fact: {words:?}"),
        };
        self.record(Body::Fact { case: CASE, fact });
    }

    /// The steps end with the last call that failed.
    fn end_refused(&mut self) {
        let faults = self
            .entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.body {
                Body::CallEnded {
                    call,
                    result: Err(fault),
                    ..
                } => Some((*call, fault.clone())),
                _ => None,
            });
        let (CallId(call), fault) = faults.expect("a call has failed");
        let place = usize::try_from(call - 1).expect("calls are counted from 1");
        let method = self.calls[place].1.method();
        self.end(StepsEnd::Error(fault.of(method)));
    }

    /// `run again=pod`, `create in=pod exit=42 mode=ignore-term joins=c`, `start`, `stop`,
    /// `remove`, `exec runs=3 exit=0`,
    /// `find`, `relist c=gone`; with `begins`, `returns`, `fails`, `refused`, `denied`, `foreign`,
    /// `prefix` or `labelled`.
    fn call(&mut self, name: &str, word: &str, extras: &Extras<'_>) {
        let key = format!("{name} {word}");
        if !extras.has("returns") {
            let request = self.request(name, word, extras);
            self.calls.push((key.clone(), request.clone()));
            self.record(Body::CallBegan {
                call: CallId(self.calls.len() as u64),
                case: (!extras.has("foreign")).then_some(CASE),
                request,
                message: Bytes::new(),
            });
        }
        if extras.has("begins") {
            return;
        }
        let place = self.calls.iter().rposition(|(began, _)| *began == key);
        let place = place.unwrap_or_else(|| panic!("`{key}` never began"));
        let result = if extras.has("fails") {
            Err(refused(StatusCode::UNAVAILABLE))
        } else if extras.has("refused") {
            Err(refused(StatusCode::NOT_FOUND))
        } else if extras.has("denied") {
            Err(refused(StatusCode::DEADLINE_EXCEEDED))
        } else {
            let request = self.calls[place].1.clone();
            Ok(self.reply(&request, extras))
        };
        self.record(Body::CallEnded {
            call: CallId(place as u64 + 1),
            result,
            message: Bytes::new(),
        });
    }

    fn request(&mut self, name: &str, word: &str, extras: &Extras<'_>) -> Request {
        if word == "run" {
            return Request::RunSandbox(self.new_sandbox(name, extras));
        } else if word == "create" {
            return Request::CreateContainer(self.new_container(name, extras));
        }
        let mut id = self.id_of(name);
        if extras.has("prefix") {
            id = id.as_str()[..4].into();
        }
        let sandbox = SandboxId::from(id.to_string());
        match (word, name.starts_with("pod")) {
            ("stop", true) => Request::StopSandbox(sandbox),
            ("remove", true) => Request::RemoveSandbox(sandbox),
            ("relist", true) => Request::containers(Some(sandbox), Labels::new()),
            ("find" | "find-sandbox", _) => find(name, word, &id, extras),
            ("start", false) => {
                let now_ns = self.next_at().realtime_ns;
                if let Some(container) = self.containers.get_mut(id.as_str()) {
                    container.times.started.get_or_insert(now_ns);
                }
                Request::StartContainer(id)
            }
            ("stop", false) => Request::StopContainer {
                container: id,
                grace: Duration::from_secs(2),
            },
            ("exec", false) => Request::ExecSync {
                container: id,
                command: command(extras.value("runs"), extras),
                timeout: Duration::from_secs(10),
            },
            ("remove", false) => Request::RemoveContainer(id),
            ("update", false) => Request::UpdateContainerResources {
                container: id,
                resources: shares(extras.value("shares")),
            },
            _ => panic!("no such call: {name} {word}"),
        }
    }

    fn new_sandbox(&mut self, name: &str, extras: &Extras<'_>) -> Arc<SandboxSpec> {
        let pod = extras.value("again").unwrap_or(name);
        let spec = Arc::new(SandboxSpec {
            binding: name.to_owned(),
            uid: PodUid::from(format!("uid-of-{pod}")),
            name: pod.to_owned(),
            labels: own_labels(pod, extras),
            shared_pid: extras.has("shared"),
            ..SandboxSpec::default()
        });
        self.sandboxes.insert(name.to_owned(), spec.clone());
        name.clone_into(&mut self.latest_pod);
        spec
    }

    fn new_container(&mut self, name: &str, extras: &Extras<'_>) -> Arc<ContainerSpec> {
        let pod = extras.value("in").unwrap_or(&self.latest_pod).to_owned();
        let next = self.attempts.entry(name.to_owned()).or_default();
        let attempt = *next;
        *next += 1;
        let spec = Arc::new(ContainerSpec {
            sandbox: SandboxId::from(self.id_of(&pod).as_str()),
            sandbox_spec: self.sandboxes[&pod].clone(),
            binding: name.to_owned(),
            attempt,
            labels: own_labels(&pod, extras),
            pid_target: extras.value("joins").map(|target| self.id_of(target)),
            declared_exit: extras.number("exit"),
            command: command(None, extras),
            ..ContainerSpec::default()
        });
        let created = self.next_at().realtime_ns;
        let made = Container {
            spec: spec.clone(),
            shown: None,
            times: Times {
                created,
                ..Times::default()
            },
        };
        self.containers.insert(self.id_of(name).to_string(), made);
        spec
    }

    /// `c` is the latest container of that name, `c#0` the first.
    fn id_of(&self, name: &str) -> ContainerId {
        let (name, attempt) = match name.split_once('#') {
            Some((name, attempt)) => (name, attempt.parse().expect("a number")),
            None => (name, self.attempts.get(name).map_or(0, |next| next - 1)),
        };
        ContainerId::from(format!("{name}.{attempt}.beef"))
    }

    fn reply(&mut self, request: &Request, extras: &Extras<'_>) -> Reply {
        if let Request::RunSandbox(spec) = request {
            return Reply::Sandbox(SandboxId::from(self.id_of(&spec.binding).as_str()));
        }
        if let Request::CreateContainer(spec) = request {
            let own = format!("{}#{}", spec.binding, spec.attempt);
            return Reply::Container(self.id_of(extras.value("is").unwrap_or(&own)));
        }
        match request {
            Request::ListContainers { .. }
            | Request::FindContainers(_)
            | Request::FindSandboxes(_) => self.found(request, extras),
            Request::ExecSync { .. } => Reply::Exec(extras.number("exit").unwrap_or(0)),
            _ => Reply::Done,
        }
    }
}
