//! Collects the facts about a node, and derives the findings from them: here those about its
//! kernel, its operating system and leftovers of earlier runs of this suite.

use std::io;
use std::path::PathBuf;

use clap::Args;
use tokio::runtime::Runtime;

use super::crio::{self, CrioConfig};
use super::finding::{Area, Diagnosis, FORMAT, Finding, Readiness, RuntimeName, Status};
use super::kubelet::Kubelets;
use super::runtime::{self, RuntimeFacts, Stream};
use crate::cri::{Client, ConnectError, Endpoint};
use crate::drive::{self, RecordingClient};
use crate::history;
use crate::host::{self, FileTree, HIDDEN_HOST, Kernel, is_host_hidden};
use crate::run::{Endpoints, Output};

// Doc comments of fields are the help of options.
/// The options of `doctor`.
#[derive(Args, Clone, Debug, Default)]
pub struct DoctorOptions {
    /// How to print; `schema doctor` prints the schema of json
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub format: Output,
    /// The same as `--format json`
    #[arg(long, hide = true)]
    pub json: bool,
    /// Read the kubelet's effective configuration, which its endpoint /configz serves, through
    /// `kubectl proxy` or from a file
    #[arg(long, value_name = "URL|FILE")]
    pub configz: Option<String>,
    /// Read the kubelet's metrics, which its endpoint /metrics serves, through `kubectl proxy` or
    /// from a file: they prove whether it uses events now
    #[arg(long, value_name = "URL|FILE")]
    pub metrics: Option<String>,
    /// The node's root directory, if this runs in a container that has mounted it [default: /, or
    /// /host in a privileged pod of `kubectl debug`]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl DoctorOptions {
    /// The files of the node.
    pub fn tree(&self) -> FileTree {
        let named = self.root.as_ref().map(FileTree::at);
        named.unwrap_or_else(FileTree::host)
    }
}

/// The displayed endpoint if there is none.
const NO_ENDPOINT: &str = "none";

/// The maximum number of listed leftovers.
const LISTED: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    #[error("start: {0}")]
    System(#[from] io::Error),
    #[error("--root: {path}: {source}")]
    Root { path: PathBuf, source: io::Error },
}

/// All facts about a node.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) node: String,
    /// Whether no runtime is found because this pod hides its node.
    pub(super) is_hidden: bool,
    pub(super) endpoint: String,
    pub(super) root: FileTree,
    pub(super) host: Option<history::Host>,
    /// The error if the runtime cannot be reached.
    pub(super) runtime: Result<RuntimeFacts, String>,
    pub(super) crio: CrioConfig,
    pub(super) kubelets: Kubelets,
    /// Leftovers of earlier runs; `None` if unknown.
    pub(super) leftovers: Option<Vec<String>>,
}

/// Examines a node, without changing anything, given the endpoints of its runtime or the reason for
/// their absence. Fails if it cannot begin. Each fact that cannot be determined is a finding.
pub fn examine(
    endpoints: Result<&Endpoints, &str>,
    options: &DoctorOptions,
) -> Result<Diagnosis, DoctorError> {
    let root = options.tree();
    root.list("/").map_err(|source| {
        let path = root.root().to_owned();
        DoctorError::Root { path, source }
    })?;
    let reactor = Runtime::new()?;
    let facts = reactor.block_on(collect(endpoints, options, root));
    Ok(facts.diagnosis())
}

async fn collect(
    endpoints: Result<&Endpoints, &str>,
    options: &DoctorOptions,
    root: FileTree,
) -> Facts {
    let endpoint = endpoints.map(|endpoints| &endpoints.runtime);
    let socket = endpoint.ok().and_then(Endpoint::socket);
    let mut kubelets = Kubelets::read(&root, socket);
    if let Some(origin) = &options.configz {
        kubelets.read_configz(origin).await;
    }
    if let Some(origin) = &options.metrics {
        kubelets.read_metrics(origin).await;
    }
    let connected = match endpoints {
        Ok(endpoints) => connect(endpoints).await.map_err(|fault| fault.to_string()),
        Err(fault) => Err(fault.to_owned()),
    };
    let (runtime, leftovers) = match (connected, endpoint) {
        (Ok(caller), Ok(endpoint)) => {
            let facts = runtime::ask(&caller.client, endpoint).await;
            let named = socket.map(|socket| root.name_inside(socket));
            let leftovers = drive::list_leftovers(&caller, named.as_deref(), root.root()).await;
            (Ok(facts), leftovers.ok())
        }
        (Err(fault), _) => (Err(fault), None),
        (Ok(_), Err(fault)) => (Err(fault.to_owned()), None),
    };
    Facts {
        node: host::name(),
        is_hidden: endpoints.is_err() && options.root.is_none() && is_host_hidden(),
        endpoint: endpoint.map_or_else(|_| NO_ENDPOINT.to_owned(), ToString::to_string),
        host: Kernel::Host.host(),
        runtime,
        crio: crio::read(&root, socket),
        kubelets,
        leftovers,
        root,
    }
}

async fn connect(endpoints: &Endpoints) -> Result<RecordingClient, ConnectError> {
    endpoints.runtime.check()?;
    let client = Client::connect(&endpoints.runtime, &endpoints.images, endpoints.deadline).await?;
    Ok(RecordingClient::new(client))
}

impl Facts {
    pub(super) fn diagnosis(&self) -> Diagnosis {
        let mut findings = Vec::new();
        match &self.runtime {
            Ok(facts) => {
                findings.extend(facts.findings());
                // One without the call has no such setting.
                if facts.is_crio() && facts.stream != Stream::Unimplemented {
                    findings.extend(self.crio.findings(facts));
                }
            }
            Err(_) if self.is_hidden => findings.push(hidden()),
            Err(fault) => findings.push(unreachable(&self.endpoint, fault)),
        }
        if !self.is_hidden {
            findings.extend(self.kubelets.findings(self.runtime.as_ref().ok()));
        }
        findings.extend(node_findings(self.host.as_ref(), &self.root));
        findings.extend(self.leftovers.as_deref().map(leftovers_finding));
        findings.sort_by_key(|finding| finding.status);
        let version = self.runtime.as_ref().ok().map(|facts| &facts.version);
        Diagnosis {
            format: FORMAT,
            suite: crate::VERSION.to_owned(),
            node: self.node.clone(),
            endpoint: self.endpoint.clone(),
            verdict: Readiness::of(&findings),
            runtime: version.map(|version| RuntimeName {
                name: version.runtime_name.clone(),
                version: version.runtime_version.clone(),
                api_version: version.api_version.clone(),
            }),
            kubelet_version: self.kubelets.version().map(str::to_owned),
            profile: self.kubelets.profile(),
            findings,
        }
    }
}

fn unreachable(endpoint: &str, fault: &str) -> Finding {
    let place = (Area::Runtime, Status::Unknown);
    let finding = format!("the runtime cannot be reached: {fault}");
    Finding::new(place, "runtime-unreachable", finding, endpoint)
        .why("Whether it sends events is unknown.")
        .fix("Start the runtime, run this as root, or name its socket with --runtime-endpoint.")
}

fn hidden() -> Finding {
    let read = "/proc/1/root, which is neither / nor /host";
    Finding::new(
        (Area::Host, Status::Unknown),
        "node-hidden",
        HIDDEN_HOST,
        read,
    )
    .why("The node's processes and files show what its runtime and its kubelet do.")
    .fix("kubectl debug node/NODE --profile=sysadmin --image=IMAGE -- doctor")
}

/// The finding, given one line per leftover.
pub(super) fn leftovers_finding(leftovers: &[String]) -> Finding {
    let read = "ListPodSandbox, ListContainers, ListImages, /var/log, cgroups";
    if leftovers.is_empty() {
        let (id, finding) = (
            "no-leftovers",
            "no earlier run of this suite left anything behind",
        );
        return Finding::new((Area::Leftovers, Status::Ok), id, finding, read);
    }
    let mut listed = leftovers
        .iter()
        .take(LISTED)
        .map(String::as_str)
        .collect::<Vec<_>>();
    let more = leftovers.len().saturating_sub(LISTED);
    let more = format!("{more} more");
    if leftovers.len() > LISTED {
        listed.push(&more);
    }
    let finding = format!(
        "earlier runs of this suite left behind: {}",
        listed.join(", ")
    );
    Finding::new((Area::Leftovers, Status::Note), "leftovers", finding, read)
        .why("They use resources of the node, and a kubelet reports containers that it does not know.")
        .fix("cri-event-conformance cleanup, with --runtime-endpoint of the runtime of the run; where that is gone, remove them by hand")
}

/// The findings, from the kernel's facts and the files of the node.
fn node_findings(facts: Option<&history::Host>, root: &FileTree) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(facts) = facts {
        let cgroup = facts.cgroup.as_deref().unwrap_or("unknown");
        found.push(Finding::new(
            (Area::Host, Status::Ok),
            "kernel",
            format!("kernel {}, cgroup version {cgroup}", facts.kernel),
            "/proc/sys/kernel/osrelease, /proc/self/mounts",
        ));
    }
    if is_openshift(root) {
        found.push(openshift());
    }
    found
}

fn is_openshift(root: &FileTree) -> bool {
    let release = root.read("/etc/os-release").unwrap_or_default();
    let mut lines = release.lines();
    lines.any(|line| line.starts_with("OPENSHIFT_VERSION=") || line == "ID=\"rhcos\"")
}

fn openshift() -> Finding {
    let finding = Finding::new(
        (Area::Host, Status::Note),
        "openshift",
        "this is a node of OpenShift, which has no field of its own for Evented PLEG",
        "/etc/os-release",
    );
    finding
        .why(
            "`nodes.config` was proposed to have one and never got it. What counts are the files \
             that the machine config operator has written on this node.",
        )
        .fix(
            "Switch the gate on by a FeatureGate with `featureSet: CustomNoUpgrade`, and CRI-O's \
             events by a MachineConfig with a file in /etc/crio/crio.conf.d.",
        )
        .source("https://github.com/openshift/enhancements/pull/1368")
}
