//! Prepares a run: connects to the runtime, provides the image, and opens the event stream.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::clean_up::CleanUp;
use super::outputs::Outputs;
use super::telemetry::LiveVerdicts;
use super::{Connected, RunError, RunOptions, kubelet};
use crate::case::Need;
use crate::cri::{Client, ConnectError};
use crate::drive::{
    self, DriveOptions, RecordingClient, Session, SessionOptions, StreamError, SweepError,
    UserHooks,
};
use crate::escape::printable;
use crate::history::{Body, CallFault, CgroupDriver, Reply, Request, RunId, RunInfo};
use crate::host::{self, Kernel, LogDirectoryError, PauseError, RuntimeCommands};
use crate::metrics::Metrics;
use crate::model;
use crate::plan::Planned;
use crate::recorder::{HistoryFile, Recorder};
use crate::workload::{self, Image, Registry};

/// The reason why no case can run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(
        "a kubelet runs on this node: {0}. It removes pods that it does not know, including the \
         suite's, and would disturb the run; nothing was run\n\
         To stop the kubelet during a run of cases: --pause-kubelet --tier smoke\n\
         To judge the node's own events without changing anything: cri-event-conformance watch \
         --for 10m\n\
         To run anyway, without a verdict unless the kubelet uses another runtime: --allow kubelet"
    )]
    Kubelet(String),
    /// Pods of an undetected kubelet exist.
    #[error(
        "{pods} ready pods have a kubelet's labels, but no kubelet was seen among the processes \
         here{}; nothing was run\n{}",
        if *hidden { ", and neither was the runtime" } else { "" },
        if *hidden {
            "The host's processes are hidden: run this on the node itself or with the host's PID \
             namespace (hostPID), and a run of cases with --pause-kubelet --tier smoke if its kubelet runs"
        } else {
            "If the kubelet is stopped, its pods harm no run: --allow kubelet. If it lives where \
             its process cannot be seen, stop it first: it removes pods that it does not know"
        }
    )]
    PodsOfKubelet {
        pods: usize,
        /// Whether the process of the runtime is hidden, too.
        hidden: bool,
    },
    #[error("pause the kubelet: {0}; nothing was run")]
    Pause(#[from] PauseError),
    #[error("create a directory for container logs: {0}; name another place with --log-dir")]
    Logs(#[from] LogDirectoryError),
    #[error("list the runtime's pods: {0}")]
    List(#[from] SweepError),
    #[error("pull {reference}: {fault}")]
    Image { reference: String, fault: CallFault },
    #[error(
        "the runtime cannot pull the suite's image from this host's loopback interface: {fault}\n{}",
        advice(*is_crio)
    )]
    OwnImage {
        fault: CallFault,
        /// Whether the runtime is CRI-O.
        is_crio: bool,
    },
    /// Another image has the name of the suite's image.
    #[error(
        "the image {reference} is not the suite's: its id is {}, and not {expected}; remove it \
         with `crictl rmi {reference}` and run again, or name it with --image if you trust it",
        printable(found)
    )]
    OtherImage {
        reference: String,
        found: String,
        expected: String,
    },
    #[error("serve the suite's image on the loopback interface: {0}")]
    Registry(std::io::Error),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("interrupted")]
    Interrupted,
}

/// The fix if the suite's image cannot be pulled, depending on the runtime.
fn advice(is_crio: bool) -> String {
    const REGISTRIES: &str = "Let CRI-O pull from 127.0.0.1 without TLS, and run again: put this into \
         /etc/containers/registries.conf.d/loopback.conf\n  \
         [[registry]]\n  \
         location = \"127.0.0.1\"\n  \
         insecure = true\n";
    let (first, import) = if is_crio {
        let name = workload::imported_name();
        let import = format!("skopeo copy oci-archive:workload.tar containers-storage:{name}");
        (format!("{REGISTRIES}Or import it, and run again:"), import)
    } else {
        let import =
            "ctr --namespace k8s.io images import workload.tar    (or: skopeo, podman load)";
        (
            "Import it instead, and run again:".to_owned(),
            import.to_owned(),
        )
    };
    format!(
        "{first}\n  \
         cri-event-conformance image --output workload.tar\n  \
         {import}\n\
         or name an image that holds the workload program with --image"
    )
}

/// A run that is connected to its runtime, and the consumers of its history.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) caller: RecordingClient,
    pub(super) info: RunInfo,
    pub(super) live_verdicts: LiveVerdicts,
    pub(super) file: Option<HistoryFile>,
}

/// The input for preparing a connected run.
#[derive(Debug)]
pub(super) struct Preparation<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) planned: &'a [Planned],
    pub(super) connected: &'a Connected,
    pub(super) metrics: &'a Metrics,
    pub(super) caller: &'a RecordingClient,
    pub(super) info: &'a RunInfo,
}

#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) session: Session,
    pub(super) foreign_pods: usize,
}

/// Connects to the runtime and begins the run's history.
pub(super) async fn connect(
    Connected {
        endpoints, kernel, ..
    }: &Connected,
    handler: &str,
    run: RunId,
    outputs: &mut Outputs,
    stop: &CancellationToken,
) -> Result<Connection, RunError> {
    let connecting = async {
        let client =
            Client::connect(&endpoints.runtime, &endpoints.images, endpoints.deadline).await?;
        let beneath = client.beneath(handler).await;
        Ok::<_, ConnectError>((client, beneath))
    };
    let (client, beneath) = tokio::select! {
        connected = connecting => connected.map_err(PrepareError::from)?,
        // Nothing has been created yet.
        () = stop.cancelled() => return Err(PrepareError::Interrupted.into()),
    };
    let recorder = Recorder::new();
    let live_verdicts = LiveVerdicts::new(recorder.reader());
    let file = outputs.begin_history()?;
    let file = file.map(|file| HistoryFile::begin(&recorder, file));
    let info = RunInfo {
        run,
        suite: crate::VERSION.to_owned(),
        endpoint: endpoints.runtime.to_string(),
        runtime: client.version().clone(),
        oci: beneath.oci,
        cgroup_driver: beneath.cgroup_driver,
        host: kernel.host(),
        call_deadline: Some(client.deadline()),
    };
    outputs.info = info.clone();
    recorder.record(Body::RunBegan(info.clone().into()));
    let caller = RecordingClient::recording(client, recorder);
    Ok(Connection {
        caller,
        info,
        live_verdicts,
        file,
    })
}

/// Passes the ids for which the run owns no process to the client.
async fn know_foreign(caller: &RecordingClient, socket: Option<&Path>) -> Result<(), PrepareError> {
    caller.know_foreign(drive::listed_ids(caller).await?);
    if let Some(socket) = socket
        && !host::is_server_trusted(socket).await
    {
        caller.own_no_processes();
    }
    Ok(())
}

/// Provides the image and the event stream. On failure the caller has to clean up at the runtime.
pub(super) async fn prepare(
    preparation: Preparation<'_>,
    stop: CancellationToken,
    clean_up: &mut CleanUp,
) -> Result<Prepared, PrepareError> {
    let Preparation { caller, info, .. } = preparation;
    let Connected {
        endpoints,
        kernel,
        socket,
    } = preparation.connected;
    let foreign = drive::foreign_pods(caller).await?;
    if !kernel.is_simulated() {
        know_foreign(caller, socket.as_deref()).await?;
    }
    let asked = &preparation.options.drive;
    let foreign_pods = foreign.all;
    let guard = kubelet::guard(preparation.options, kernel, foreign, &stop).await?;
    clean_up.kubelet = Some(guard);
    let logs =
        kernel.make_log_directory(asked.pods.log_dir.as_deref(), &info.run, socket.as_deref())?;
    if !kernel.is_simulated() {
        caller.note_in(&logs);
    }
    let log_directory = logs.path().to_owned();
    clean_up.logs = Some(logs);
    let needs: BTreeSet<Need> = preparation
        .planned
        .iter()
        .flat_map(|planned| &planned.case.needs)
        .copied()
        .collect();
    let (image, registry) = image(asked, caller, &info.run, &mut clean_up.pulled).await?;
    // containerd pulls an image again to restore a container.
    clean_up.registry = registry.filter(|_| needs.contains(&Need::Restore));
    let session_options = SessionOptions {
        asked: DriveOptions {
            hooks: hooks(&asked.hooks, kernel),
            ..asked.clone()
        },
        run: info.run.clone(),
        endpoint: endpoints.runtime.clone(),
        image,
        log_directory,
        oci: info.oci.clone(),
        cgroup_driver: info.cgroup_driver,
        cgroup_parent: cgroup_parent(asked.pods.cgroup_parent.as_deref(), info.cgroup_driver),
        kernel: kernel.clone(),
    };
    let mut session = Session::new(
        session_options,
        caller.clone(),
        preparation.metrics.clone(),
        stop,
    );
    match session.ensure_stream().await {
        // Each case reports that itself, as does the report.
        Err(fault) if fault.is_refusal() => {
            session.continue_without_events(fault.to_string());
        }
        opened => {
            opened?;
            session.probe_needs(&needs).await?;
        }
    }
    Ok(Prepared {
        session,
        foreign_pods,
    })
}

/// The parent cgroup of pods: the user's, else one that the runtime can use. With systemd that must
/// be a slice; this one always exists, so that none has to be created.
fn cgroup_parent(given: Option<&str>, driver: Option<CgroupDriver>) -> String {
    const SYSTEM: &str = "system.slice";
    let default = match driver {
        Some(CgroupDriver::Systemd) => SYSTEM,
        Some(CgroupDriver::Cgroupfs) | None => "",
    };
    given.unwrap_or(default).to_owned()
}

/// The user's hooks; on a simulated kernel, missing ones are simulated, too.
fn hooks(given: &UserHooks, kernel: &Kernel) -> UserHooks {
    const DONE: &str = "true";
    if !kernel.is_simulated() {
        return given.clone();
    }
    let simulated = || RuntimeCommands {
        stop: DONE.to_owned(),
        kill: Some(DONE.to_owned()),
        start: DONE.to_owned(),
    };
    let commands = given.runtime_commands().unwrap_or_else(simulated);
    UserHooks {
        outside_cri: Some(given.outside_cri().unwrap_or(DONE).to_owned()),
        faulty_handler: Some(given.faulty_handler().unwrap_or(model::FAULTY).to_owned()),
        runtime_stop_cmd: Some(commands.stop),
        runtime_kill_cmd: commands.kill,
        runtime_start_cmd: Some(commands.start),
        runtime_log_cmd: Some(DONE.to_owned()),
        runtime_unit: None,
    }
}

/// Provides the test image; returns its reference, and the registry that it was pulled from if that
/// is the suite's. `pulled` is set if the user's image had to be pulled.
pub async fn image(
    asked: &DriveOptions,
    caller: &RecordingClient,
    run: &RunId,
    pulled: &mut Option<String>,
) -> Result<(String, Option<Registry>), PrepareError> {
    if let Some(given) = asked.pods.image.clone() {
        if id_of(caller, &given).await.is_none() {
            let pull = Request::PullImage(given.clone());
            if let Err(fault) = caller.call(None, pull).await {
                let reference = given;
                return Err(PrepareError::Image { reference, fault });
            }
            *pulled = Some(given.clone());
        }
        return Ok((given, None));
    }
    let imported = workload::imported_name();
    if let Some(found) = id_of(caller, &imported).await {
        require_own(&imported, found)?;
        return Ok((imported, None));
    }
    // Its label makes the image unique to this run, so that removing it affects no other run.
    let labels = drive::run_labels(run);
    let tag = drive::image_tag(run);
    let registry = Registry::serve(Image::build(&labels), workload::REPOSITORY, &tag)
        .await
        .map_err(PrepareError::Registry)?;
    let reference = registry.reference();
    let own = caller
        .call(None, Request::PullImage(reference.clone()))
        .await;
    own.map_err(|fault| PrepareError::OwnImage {
        fault,
        is_crio: caller.client.version().runtime_name == "cri-o",
    })?;
    Ok((reference, Some(registry)))
}

/// The id of an image; `None` if the runtime does not have it.
async fn id_of(caller: &RecordingClient, reference: &str) -> Option<String> {
    let status = Request::ImageStatus(reference.to_owned());
    match caller.call(None, status).await {
        Ok(Reply::Image(found)) => found.map(|image| image.id),
        Ok(_) | Err(_) => None,
    }
}

/// Another image can have the name of the suite's: the id is the digest of its configuration, which
/// contains the digests of its layers. CRI-O omits the algorithm.
fn require_own(reference: &str, found: String) -> Result<(), PrepareError> {
    let own = Image::build(&BTreeMap::new());
    let digest = |id: &str| id.trim_start_matches("sha256:").to_owned();
    if digest(&found) == digest(own.id()) {
        return Ok(());
    }
    Err(PrepareError::OtherImage {
        reference: reference.to_owned(),
        found,
        expected: own.id().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_on_a_failed_pull_depends_on_the_runtime() {
        let name = workload::imported_name();
        let expect = format!(
            "Let CRI-O pull from 127.0.0.1 without TLS, and run again: put this into \
             /etc/containers/registries.conf.d/loopback.conf\n  \
             [[registry]]\n  \
             location = \"127.0.0.1\"\n  \
             insecure = true\n\
             Or import it, and run again:\n  \
             cri-event-conformance image --output workload.tar\n  \
             skopeo copy oci-archive:workload.tar containers-storage:{name}\n\
             or name an image that holds the workload program with --image"
        );
        assert_eq!(advice(true), expect);
        let containerd = advice(false);
        let mut commands = containerd.lines().filter(|line| line.starts_with("  "));
        assert!(
            commands
                .next()
                .is_some_and(|line| line.contains(" image --output "))
        );
        assert!(
            commands
                .next()
                .is_some_and(|line| line.starts_with("  ctr "))
        );
        assert!(!containerd.contains("registry"), "{containerd}");
    }

    #[test]
    fn an_image_of_the_suites_name_is_used_only_if_its_id_is_that_of_the_suites() {
        let own = Image::build(&BTreeMap::new()).id().to_owned();
        let bare = own.trim_start_matches("sha256:").to_owned();
        for id in [own, bare] {
            assert!(require_own("a", id.clone()).is_ok(), "{id}");
        }
        let labelled = Image::build(&BTreeMap::from([("a".into(), "b".into())]));
        for id in [labelled.id(), "", "sha256:", "\u{1b}[2J"] {
            let fault = require_own("a", id.to_owned()).unwrap_err().to_string();
            assert!(fault.contains("`crictl rmi a`"), "{fault}");
            assert!(!fault.contains('\u{1b}'), "{fault}");
        }
    }

    #[test]
    fn pods_are_in_a_slice_where_systemd_makes_cgroups_unless_the_user_names_another_place() {
        let (systemd, cgroupfs) = (Some(CgroupDriver::Systemd), Some(CgroupDriver::Cgroupfs));
        for (given, driver, parent) in [
            (None, systemd, "system.slice"),
            (None, cgroupfs, ""),
            (None, None, ""),
            (Some("own.slice"), systemd, "own.slice"),
            (Some("/own"), cgroupfs, "/own"),
            (Some(""), systemd, ""),
        ] {
            assert_eq!(cgroup_parent(given, driver), parent, "{given:?} {driver:?}");
        }
    }
}
