//! Checks periodically whether the processes of running containers exist: if one is gone while the
//! runtime reports its container as running, the runtime has missed an exit.
//!
//! The pid comes from verbose `ContainerStatus`, whose reply is not recorded: it may contain
//! secrets of the container's environment. `/proc` is read, and no process is signalled. A process
//! is identified by its pid and start time, and assigned to a container by its cgroup: a process
//! that was gone at the first check proves nothing.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch::Receiver;

use crate::cri::Client;
use crate::history::{Body, CallFault, CaseRun, ContainerId, HostFact, StatusCode};
use crate::host::{Kernel, SeenProcess};
use crate::limits;
use crate::recorder::Recorder;

pub(super) struct Processes {
    /// A connection to the runtime itself, bypassing any relay.
    client: Client,
    kernel: Kernel,
    recorder: Recorder,
    known: BTreeMap<ContainerId, Process>,
}

#[derive(Clone, Copy, Debug)]
enum Process {
    Seen(SeenProcess),
    /// Its end is recorded, or its identity is unproven.
    Over,
}

impl Processes {
    pub(super) fn new(client: Client, kernel: Kernel, recorder: Recorder) -> Self {
        Self {
            client,
            kernel,
            recorder,
            known: BTreeMap::new(),
        }
    }

    /// Checks the containers that the last relist shows as running; never returns.
    pub(super) async fn run(mut self, running: Receiver<BTreeSet<ContainerId>>) {
        let mut pace = tokio::time::interval(limits::WATCHED_PROCESS_LOOK);
        loop {
            pace.tick().await;
            let running = running.borrow().clone();
            // A runtime that does not answer is asked again at the next look.
            let _ = self.look(&running).await;
        }
    }

    async fn look(&mut self, running: &BTreeSet<ContainerId>) -> Result<(), CallFault> {
        self.known.retain(|id, _| running.contains(id));
        let mut asked = 0;
        for id in running.iter().take(limits::WATCHED_PROCESSES) {
            let gone = match self.known.get(id) {
                Some(Process::Over) => continue,
                Some(Process::Seen(seen)) if !self.kernel.has_ended(id.as_str(), *seen) => continue,
                Some(Process::Seen(seen)) => Some(seen.pid()),
                None => None,
            };
            if asked == limits::WATCHED_PIDS {
                break;
            }
            asked += 1;
            self.ask(id, gone).await?;
        }
        Ok(())
    }

    /// Asks for the process of a container; `gone` is the pid of a process that has ended.
    async fn ask(&mut self, id: &ContainerId, gone: Option<u32>) -> Result<(), CallFault> {
        let reported = match self.client.pid_if_running(id).await {
            Err(fault) if fault.code == StatusCode::NOT_FOUND => return Ok(()),
            reported => reported?,
        };
        let Some(pid) = reported else {
            return Ok(());
        };
        if gone == Some(pid) {
            self.recorder.record(Body::Fact {
                case: CaseRun::default(),
                fact: HostFact::ProcessGone {
                    container: id.clone(),
                    pid,
                },
            });
        }
        let seen = self.kernel.process_of(id.as_str(), pid);
        let seen = seen.filter(|_| gone != Some(pid));
        let process = seen.map_or(Process::Over, Process::Seen);
        self.known.insert(id.clone(), process);
        Ok(())
    }
}
