//! What comes before the first case: a runtime that answers, the image, and a live event stream.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use super::clean_up::CleanUp;
use super::following::Following;
use super::outputs::Outputs;
use super::{RunError, RunOptions, Stand, Target};
use crate::case::Need;
use crate::cri::{Client, ConnectError};
use crate::drive::{
    self, Allowance, DriveOptions, ForeignPods, RecordingClient, RuntimeCommands, Session,
    SessionOptions, StreamError, SweepError, UserHooks,
};
use crate::history::{Body, CallFault, CgroupDriver, Reply, Request, RunId, RunInfo};
use crate::host::{Kernel, KubeletProcess, LogDirectoryError};
use crate::metrics::Metrics;
use crate::model;
use crate::plan::Planned;
use crate::recorder::{HistoryFile, Recorder};
use crate::workload::{self, Image, Registry};

/// Why no case can run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The runtime cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A kubelet lives on the node.
    #[error(
        "a kubelet lives on this node: {0}. It removes pods that it does not know, as the suite's \
         are, and would spoil the run; nothing was run\n\
         To test the runtime, stop the kubelet for that time (systemctl stop kubelet) and start it \
         again afterwards\n\
         To look at this node as it is, without making anything: cri-event-conformance watch\n\
         To run all the same, if it is another runtime's kubelet: --allow kubelet"
    )]
    Kubelet(String),
    /// The directory for logs cannot be made.
    #[error("make a directory for the logs of containers: {0}; name another place with --log-dir")]
    Logs(#[from] LogDirectoryError),
    /// The runtime cannot tell what it has.
    #[error("ask the runtime for its pods: {0}")]
    List(#[from] SweepError),
    /// The user's image is not to be had.
    #[error("pull {reference}: {fault}")]
    Image {
        /// The image.
        reference: String,
        /// What the runtime returned.
        fault: CallFault,
    },
    /// Our own image is not to be had.
    #[error(
        "the runtime cannot pull the suite's image from this host's loopback interface: {fault}\n{}",
        advice(*is_crio)
    )]
    OwnImage {
        /// What the runtime returned.
        fault: CallFault,
        /// Whether the runtime is CRI-O.
        is_crio: bool,
    },
    /// The loopback registry cannot be opened.
    #[error("serve the suite's image on the loopback interface: {0}")]
    Registry(std::io::Error),
    /// The event stream is not to be had.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The run was told to stop.
    #[error("interrupted")]
    Interrupted,
}

/// What to do where the suite's image cannot be pulled, what fits the runtime first.
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

/// Where the history of a run goes: into its verdicts and, if the user wants that, into a file.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) following: Following,
    pub(super) file: Option<HistoryFile>,
}

/// A connection for a run, and the history that both fill.
pub(super) async fn connect(
    Stand { target, kernel }: &Stand,
    handler: &str,
    run: RunId,
    outputs: &mut Outputs,
    stop: &CancellationToken,
) -> Result<(RecordingClient, RunInfo, Recording), RunError> {
    let connecting = async {
        let client = Client::connect(&target.runtime, &target.images, target.deadline).await?;
        let beneath = client.beneath(handler).await;
        Ok::<_, ConnectError>((client, beneath))
    };
    let (client, beneath) = tokio::select! {
        connected = connecting => connected.map_err(PrepareError::from)?,
        // Nothing has been made yet that could be left behind.
        () = stop.cancelled() => return Err(PrepareError::Interrupted.into()),
    };
    let recorder = Recorder::new();
    let following = Following::new(recorder.reader());
    let file = outputs.begin_history()?;
    let file = file.map(|file| HistoryFile::begin(&recorder, file));
    let info = RunInfo {
        run,
        suite: crate::VERSION.to_owned(),
        endpoint: target.runtime.to_string(),
        runtime: client.version().clone(),
        oci: beneath.oci,
        cgroup_driver: beneath.cgroup_driver,
        host: kernel.host(),
        call_deadline: Some(client.deadline()),
    };
    recorder.record(Body::RunBegan(info.clone().into()));
    let caller = RecordingClient::recording(client, recorder);
    Ok((caller, info, Recording { following, file }))
}

/// Makes the image and the event stream available. What this leaves at the runtime when it fails is
/// the caller's to sweep.
pub(super) async fn prepare(
    (options, planned): (&RunOptions, &[Planned]),
    (target, kernel, metrics): (&Target, &Kernel, &Metrics),
    caller: &RecordingClient,
    info: &RunInfo,
    stop: CancellationToken,
    clean_up: &mut CleanUp,
) -> Result<(Session, usize), PrepareError> {
    let foreign = drive::foreign_pods(caller).await?;
    let asked = &options.drive;
    if !asked.allow.contains(&Allowance::Kubelet) {
        refuse_kubelet(kernel, foreign)?;
    }
    let logs = kernel.make_log_directory(asked.log_dir.as_deref(), &info.run)?;
    let log_directory = logs.path().to_owned();
    clean_up.logs = Some(logs);
    let image = image(asked, caller, &info.run, &mut clean_up.pulled).await?;
    let session_options = SessionOptions {
        asked: DriveOptions {
            hooks: hooks(&asked.hooks, kernel),
            ..asked.clone()
        },
        run: info.run.clone(),
        endpoint: target.runtime.clone(),
        image,
        log_directory,
        cgroup_driver: info.cgroup_driver,
        cgroup_parent: cgroup_parent(asked.cgroup_parent.as_deref(), info.cgroup_driver),
        kernel: kernel.clone(),
    };
    let session = Session::new(session_options, caller.clone(), metrics.clone(), stop);
    let needs = planned.iter().flat_map(|planned| &planned.case.needs);
    let needs: BTreeSet<Need> = needs.copied().collect();
    match session.ensure_stream().await {
        // Whatever is selected, that is said of each case, and in the reports.
        Err(fault) if fault.is_refusal() => {
            session.continue_without_events(fault.to_string());
        }
        opened => {
            opened?;
            session.probe_needs(&needs).await?;
        }
    }
    Ok((session, foreign.all))
}

/// Below which cgroup pods' are to be: the user's word, else what the runtime can use. With systemd
/// that must be a slice. This one is there anyway, so that none has to be made and removed.
fn cgroup_parent(given: Option<&str>, driver: Option<CgroupDriver>) -> String {
    const SYSTEM: &str = "system.slice";
    let default = match driver {
        Some(CgroupDriver::Systemd) => SYSTEM,
        Some(CgroupDriver::Cgroupfs) | None => "",
    };
    given.unwrap_or(default).to_owned()
}

/// Refuses to run where a kubelet lives: it removes pods that it does not know, as the suite's are.
fn refuse_kubelet(kernel: &Kernel, foreign: ForeignPods) -> Result<(), PrepareError> {
    let sign = match kernel.kubelet() {
        Some(KubeletProcess { pid, name }) => format!("process {pid} is `{name}`"),
        None if foreign.kubelets > 0 => {
            format!("{} ready pods have a kubelet's labels", foreign.kubelets)
        }
        None => return Ok(()),
    };
    Err(PrepareError::Kubelet(sign))
}

/// What the user provides for the cases that need it. Where the kernel is simulated, so is what
/// the user does not provide.
fn hooks(given: &UserHooks, kernel: &Kernel) -> UserHooks {
    const DONE: &str = "true";
    if !kernel.is_simulated() {
        return given.clone();
    }
    let simulated = || RuntimeCommands {
        stop: DONE.to_owned(),
        start: DONE.to_owned(),
    };
    let commands = given.runtime_commands().unwrap_or_else(simulated);
    UserHooks {
        outside_cri: Some(given.outside_cri().unwrap_or(DONE).to_owned()),
        faulty_handler: Some(given.faulty_handler().unwrap_or(model::FAULTY).to_owned()),
        runtime_stop_cmd: Some(commands.stop),
        runtime_start_cmd: Some(commands.start),
        runtime_unit: None,
    }
}

/// The reference of an image that the runtime has. If that is the user's and had to be pulled, it
/// is also put into `pulled`.
///
/// # Errors
/// If the runtime can neither find nor pull it.
pub async fn image(
    asked: &DriveOptions,
    caller: &RecordingClient,
    run: &RunId,
    pulled: &mut Option<String>,
) -> Result<String, PrepareError> {
    if let Some(given) = asked.image.clone() {
        if !has_image(caller, &given).await {
            let pull = Request::PullImage(given.clone());
            if let Err(fault) = caller.call(None, pull).await {
                let reference = given;
                return Err(PrepareError::Image { reference, fault });
            }
            *pulled = Some(given.clone());
        }
        return Ok(given);
    }
    let imported = workload::imported_name();
    if has_image(caller, &imported).await {
        return Ok(imported);
    }
    // Its label makes it an image of this run alone: removing it takes no other run's image away.
    let labels = drive::run_labels(run);
    let tag = drive::image_tag(run);
    let registry = Registry::serve(Image::build(&labels), workload::REPOSITORY, &tag).await;
    let registry = registry.map_err(PrepareError::Registry)?;
    let reference = registry.reference();
    let own = caller
        .call(None, Request::PullImage(reference.clone()))
        .await;
    own.map_err(|fault| PrepareError::OwnImage {
        fault,
        is_crio: caller.client.version().runtime_name == "cri-o",
    })?;
    Ok(reference)
}

async fn has_image(caller: &RecordingClient, reference: &str) -> bool {
    let status = caller
        .call(None, Request::ImageStatus(reference.to_owned()))
        .await;
    matches!(status, Ok(Reply::Image(Some(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_when_the_image_cannot_be_pulled_fits_the_runtime() {
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
