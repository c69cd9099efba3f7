//! Calls that are recorded in the history.
//!
//! A call that has been sent is never taken back: a runtime may leave processes behind that no
//! call of the CRI reaches any more (containerd 2.1, after a cancelled `StartContainer`). So each
//! call has a task of its own, which continues to the call's end even if no caller waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::options::ListStreaming;
use crate::cri::{self, Client, ConnectError, Endpoint};
use crate::history::{
    Body, CallFault, CaseRun, ContainerId, ContainerState, Labels, Reply, Request, StatusCode,
};
use crate::host::{BootTicks, Kernel, LogDirectory, OwnId, OwnIds};
use crate::limits;
use crate::recorder::Recorder;

/// Sends calls and records their begin and end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RecordingClient {
    pub client: Client,
    pub recorder: Recorder,
    /// How the lists of all later calls are asked for.
    pub(super) list_streaming: ListStreaming,
    /// The labels of objects that alone are kept of a list.
    only: Labels,
    /// The calls that have not ended, those of all clones among them.
    under_way: TaskTracker,
    /// The ids of sandboxes and containers, of all clones.
    ids: Arc<Mutex<KnownIds>>,
    /// The effects of the calls of all clones.
    effects: Arc<Mutex<Effects>>,
    /// The directory with the ids of created objects, for the `cleanup` of a run that is killed.
    notes: Arc<OnceLock<LogDirectory>>,
    /// When this was created, before all calls.
    began: BootTicks,
}

/// Whether calls that no case can do without have had an effect.
#[derive(Debug, Default)]
struct Effects {
    /// The methods that change anything.
    methods: BTreeMap<&'static str, Answers>,
    /// Whether any container was seen to run, or to have run.
    has_run: bool,
    /// Until then: the containers whose start succeeded, and whether an answer after that showed
    /// one as CREATED.
    started: BTreeMap<ContainerId, bool>,
}

/// The answers to a method within the usual deadline.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    /// Whether there was any.
    has_answered: bool,
    /// How many calls got none since the last one that did.
    hung: u32,
}

impl Effects {
    /// The method that left most calls unanswered: at least so many and `always`, or many in a row.
    fn hung(&self, always: u32) -> Option<(&'static str, u32)> {
        let methods = self.methods.iter().filter(|(_, answers)| {
            !answers.has_answered && answers.hung >= always || answers.hung >= limits::HUNG_CALLS
        });
        let hung = methods.map(|(method, answers)| (*method, answers.hung));
        hung.max_by_key(|(_, hung)| *hung)
    }

    fn saw(&mut self, container: &ContainerId, state: ContainerState) {
        if let Some(is_idle) = self.started.get_mut(container) {
            *is_idle = state == ContainerState::Created;
            self.has_run |= !*is_idle;
        }
    }
}

/// The ids of sandboxes and containers: those that this run made, and those that others did.
#[derive(Debug, Default)]
struct KnownIds {
    made: OwnIds,
    /// Those that the runtime listed when the run began.
    foreign: BTreeSet<String>,
    /// Whether the runtime is of another user, so that no process of this host is its own.
    is_other_users: bool,
    /// The host before the first call for each object of which no call has ended for good.
    before: BTreeMap<String, Arc<Before>>,
}

/// The host before a call that creates an object. A repeated call may return the object that an
/// abandoned one has created meanwhile, so both have one such state.
#[derive(Debug)]
struct Before {
    at: BootTicks,
    /// The ids in the names of cgroups.
    cgroups: BTreeSet<String>,
}

/// A call that creates an object: the object's name, and the host before the first such call.
type Creation = (String, Arc<Before>);

impl KnownIds {
    /// The object that a call creates, by the fields that identify it for a runtime.
    fn object(request: &Request) -> Option<String> {
        match request {
            Request::RunSandbox(spec) => {
                Some(format!("{}/{}/{}", spec.name, spec.uid, spec.attempt))
            }
            Request::CreateContainer(spec) => {
                let name = spec.name.as_ref().unwrap_or(&spec.binding);
                Some(format!("{}/{name}/{}", spec.sandbox, spec.attempt))
            }
            _ => None,
        }
    }

    /// The time from which on processes can be of an object.
    fn since(&self, call: BootTicks) -> BootTicks {
        if self.is_other_users {
            BootTicks::NEVER
        } else {
            call
        }
    }

    /// Checks that a call has created the object of a returned id, and adds the id to the own ones.
    fn admit(&mut self, id: &str, before: &Before) -> Result<OwnId, &'static str> {
        if let Some(made) = self.made.get(id) {
            return Ok(made);
        }
        if resolves_to_one_of(&self.foreign, id) {
            return Err("the runtime listed it when the run began");
        }
        if resolves_to_one_of(&before.cgroups, id) {
            return Err("a cgroup of this host had it before the call");
        }
        let (id, since) = (id.to_owned(), self.since(before.at));
        let made = OwnId { id, since };
        self.made.insert(made.clone());
        Ok(made)
    }
}

/// Whether an id is one of these, or an abbreviation of one, which containerd takes for it.
fn resolves_to_one_of(ids: &BTreeSet<String>, id: &str) -> bool {
    let from = (Bound::Included(id), Bound::Unbounded);
    let next = ids.range::<str, _>(from).next();
    next.is_some_and(|next| next.starts_with(id))
}

impl RecordingClient {
    /// A client with a history of its own.
    pub fn new(client: Client) -> Self {
        Self::recording(client, Recorder::new())
    }

    /// A client whose calls are recorded in this history.
    pub fn recording(client: Client, recorder: Recorder) -> Self {
        let under_way = TaskTracker::new();
        Self {
            client,
            recorder,
            list_streaming: ListStreaming::Off,
            only: Labels::new(),
            under_way,
            ids: Arc::default(),
            effects: Arc::default(),
            notes: Arc::default(),
            began: BootTicks::now(),
        }
    }

    /// Records the ids of created objects in this directory from now on.
    pub fn note_in(&self, logs: &LogDirectory) {
        // A run has one such directory.
        let _ = self.notes.set(logs.clone());
    }

    /// From now on rejects these ids as those of objects of the run: others have made them.
    pub fn know_foreign(&self, ids: impl IntoIterator<Item = String>) {
        self.ids().foreign.extend(ids);
    }

    /// From now on no id owns a process: a runtime of another user may name ids of root's.
    pub fn own_no_processes(&self) {
        self.ids().is_other_users = true;
    }

    /// The same client, of whose lists only objects with these labels are recorded and returned.
    pub fn showing_only(self, labels: Labels) -> Self {
        Self {
            only: labels,
            ..self
        }
    }

    /// Another client with the same history and a connection of its own.
    pub async fn with_own_connection(&self, endpoint: &Endpoint) -> Result<Self, ConnectError> {
        let client = self.client.another(endpoint).await?;
        Ok(Self {
            client,
            ..self.clone()
        })
    }

    /// Sends a call for a case, or for the run itself, and records its begin and end.
    pub async fn call(&self, case: Option<CaseRun>, request: Request) -> Result<Reply, CallFault> {
        self.call_within(case, request, None).await
    }

    /// Sends a call with a deadline of its own, if there is one, and records its begin and end.
    /// Continues if the future is dropped. Of a list asked for both ways, the streamed answer is
    /// only recorded.
    pub async fn call_within(
        &self,
        case: Option<CaseRun>,
        request: Request,
        deadline: Option<Duration>,
    ) -> Result<Reply, CallFault> {
        if self.list_streaming != ListStreaming::Off
            && let Some(stream) = request.as_stream()
        {
            let streamed = self.send(case, stream, deadline).await;
            if self.list_streaming == ListStreaming::On {
                return streamed;
            }
        }
        self.send(case, request, deadline).await
    }

    async fn send(
        &self,
        case: Option<CaseRun>,
        request: Request,
        deadline: Option<Duration>,
    ) -> Result<Reply, CallFault> {
        let call = self.recorder.next_call();
        let message = cri::encode(&request);
        self.recorder.record(Body::CallBegan {
            call,
            case,
            request: request.clone(),
            message: message.clone(),
        });
        let this = self.clone();
        let creation = self.before(&request);
        let sent = self.under_way.spawn(async move {
            let mut answer = this.client.exchange(&request, message, deadline).await;
            let listed = answer.result.as_mut().ok();
            if listed.is_some_and(|reply| reply.leave_out_others(&this.only)) {
                // The recorder encodes what is left.
                answer.message.clear();
            }
            this.count(&request, &answer.result, deadline.is_none());
            let result = this.admit(answer.result, creation);
            this.recorder.record(Body::CallEnded {
                call,
                result: result.clone(),
                message: answer.message,
            });
            result
        });
        match sent.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(result) => result,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The process ends, and all tasks with it.
            Err(Err(_)) => pending().await,
        }
    }

    /// Counts an answered or unanswered call that changes anything, and starts without effect. A
    /// call that has not `waited` for the usual deadline proves nothing if it hangs.
    fn count(&self, request: &Request, result: &Result<Reply, CallFault>, waited: bool) {
        use Request::{
            CreateContainer, RemoveContainer, RemoveSandbox, RunSandbox, StartContainer,
            StopContainer, StopSandbox,
        };
        let mut effects = lock(&self.effects);
        match (request, result) {
            (_, Ok(_)) if effects.has_run => {}
            (StartContainer(container), Ok(_)) => {
                effects.started.insert(container.clone(), false);
            }
            (_, Ok(Reply::ContainerStatus(report))) => {
                effects.saw(&report.status.id, report.status.state);
            }
            (_, Ok(Reply::Containers(listed))) => {
                for container in listed {
                    effects.saw(&container.id, container.state);
                }
            }
            _ => {}
        }
        let hung = matches!(result, Err(fault) if fault.code == StatusCode::DEADLINE_EXCEEDED);
        if hung && !waited {
            return;
        }
        let changes = matches!(
            request,
            RunSandbox(_)
                | CreateContainer(_)
                | StartContainer(_)
                | StopContainer { .. }
                | RemoveContainer(_)
                | StopSandbox(_)
                | RemoveSandbox(_)
        );
        if changes {
            let answers = effects.methods.entry(request.method()).or_default();
            answers.has_answered |= !hung;
            answers.hung = if hung { answers.hung + 1 } else { 0 };
        }
    }

    /// Why no case can pass: the runtime leaves all calls of a method unanswered, or the last ones,
    /// or it starts nothing.
    pub fn stuck(&self) -> Option<String> {
        let effects = lock(&self.effects);
        if let Some((method, times)) = effects.hung(limits::UNANSWERED_CALLS) {
            let never = if effects.methods[method].has_answered {
                "has stopped answering"
            } else {
                "never answered"
            };
            return Some(format!("the runtime {never} {method}, in {times} calls"));
        }
        let idle = effects.started.values().filter(|idle| **idle).count();
        (!effects.has_run && idle >= limits::IDLE_STARTS).then(|| {
            format!(
                "no container runs: {idle} are CREATED after StartContainer has succeeded, and \
                 none was ever seen RUNNING or EXITED"
            )
        })
    }

    /// Sends a call of a probe or a clean-up, which decides no verdict. It does not wait for long
    /// where the runtime has left all calls of a method unanswered, or the last ones.
    pub async fn brief_call(
        &self,
        case: Option<CaseRun>,
        request: Request,
    ) -> Result<Reply, CallFault> {
        let hangs = lock(&self.effects).hung(1).is_some();
        let deadline = hangs.then(|| self.client.first_deadline());
        self.call_within(case, request, deadline).await
    }

    /// The state of the host before a call that creates an object.
    fn before(&self, request: &Request) -> Option<Creation> {
        let object = KnownIds::object(request)?;
        let known = self.ids().before.get(&object).cloned();
        let before = known.unwrap_or_else(|| {
            let at = BootTicks::now();
            // Only a run on this host's kernel has notes.
            let has_cgroups = self.notes.get().is_some();
            let cgroups = has_cgroups.then(|| Kernel::Host.ids_of_cgroups());
            let cgroups = cgroups.unwrap_or_default();
            Arc::new(Before { at, cgroups })
        });
        let mut ids = self.ids();
        ids.before.insert(object.clone(), before.clone());
        Some((object, before))
    }

    /// Rejects an answer with the id of an object that the call has not created.
    fn admit(
        &self,
        result: Result<Reply, CallFault>,
        creation: Option<Creation>,
    ) -> Result<Reply, CallFault> {
        let Some((object, before)) = creation else {
            return result;
        };
        let mut ids = self.ids();
        let id = match &result {
            Ok(Reply::Sandbox(id)) => id.to_string(),
            Ok(Reply::Container(id)) => id.to_string(),
            Err(fault) if may_go_on(fault.code) => return result,
            Ok(_) | Err(_) => {
                ids.before.remove(&object);
                return result;
            }
        };
        ids.before.remove(&object);
        let made = ids.admit(&id, &before).map_err(|reason| CallFault {
            code: StatusCode::DATA_LOSS,
            message: format!("the answer is {id}, which the call has not created: {reason}"),
            deadline: Duration::ZERO,
        })?;
        drop(ids);
        if let Some(logs) = self.notes.get() {
            // What cannot be noted may still be found by its label.
            let _ = logs.note(&made);
        }
        result
    }

    fn ids(&self) -> MutexGuard<'_, KnownIds> {
        lock(&self.ids)
    }

    /// The ids of all sandboxes and containers that were made.
    pub(super) fn made(&self) -> OwnIds {
        self.ids().made.clone()
    }

    /// The id of a created object, with the time of its call. An unknown id owns no process.
    pub fn own(&self, id: &str) -> OwnId {
        self.ids().made.get(id).unwrap_or_else(|| OwnId {
            id: id.to_owned(),
            since: BootTicks::NEVER,
        })
    }

    /// The id of an object that the runtime lists as the run's; none if it is foreign.
    pub(super) fn adopt(&self, id: &str) -> Option<OwnId> {
        let ids = self.ids();
        let (is_foreign, id) = (resolves_to_one_of(&ids.foreign, id), id.to_owned());
        let since = ids.since(self.began);
        let listed = (!is_foreign).then_some(OwnId { id, since })?;
        Some(ids.made.get(&listed.id).unwrap_or(listed))
    }

    /// Waits until all calls have ended. Their deadlines bound it.
    pub async fn settled(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a call with this error may still be executed by the runtime.
fn may_go_on(code: StatusCode) -> bool {
    [
        StatusCode::DEADLINE_EXCEEDED,
        StatusCode::CANCELLED,
        StatusCode::UNAVAILABLE,
    ]
    .contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_of_a_foreign_id_is_rejected() {
        let at = BootTicks::now();
        let cgroups = BTreeSet::from(["beef01".to_owned()]);
        let mut ids = KnownIds {
            foreign: BTreeSet::from(["cafe01".to_owned(), "cafe02".to_owned()]),
            ..KnownIds::default()
        };
        let mut is_admitted = |id: &str| {
            let cgroups = cgroups.clone();
            ids.admit(id, &Before { at, cgroups }).is_ok()
        };
        for foreign in ["cafe01", "cafe02", "cafe", "beef", "beef01", ""] {
            assert!(!is_admitted(foreign), "{foreign}");
        }
        for own in ["cafe03", "cafe011", "d"] {
            assert!(is_admitted(own), "{own}");
        }
    }

    #[test]
    fn ids_of_another_users_runtime_own_no_process() {
        let (at, cgroups) = (BootTicks::now(), BTreeSet::new());
        let before = Before { at, cgroups };
        let mut ids = KnownIds::default();
        assert_eq!(ids.admit("own", &before).unwrap().since, at);
        ids.is_other_users = true;
        assert_eq!(
            ids.admit("theirs", &before).unwrap().since,
            BootTicks::NEVER
        );
    }
}
