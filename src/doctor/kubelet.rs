//! The kubelet: the one that uses the runtime, its version, its feature gate, and its log.

use std::collections::BTreeSet;
use std::path::Path;

use super::configz::{self, KubeletConfig};
use super::finding::{Area, Finding, Status};
use super::kubelet_traces::{self, KubeletMetrics, Log};
use super::runtime::RuntimeFacts;
use crate::history::CgroupDriver;
use crate::host::{FileTree, KubeletProcess, KubeletSettings, kubelets, socket_clients};
use crate::outcome::Profile;

const GATE: &str = "EventedPLEG";
/// The gate that enables all alpha gates, unless they are set individually.
const ALL_ALPHA: &str = "AllAlpha";
/// The first version with the gate.
const FIRST: (u64, u64) = (1, 26);
/// The first version that treats STOPPED as a hint, and otherwise relists:
/// <https://github.com/kubernetes/kubernetes/pull/139262>.
const FIRST_WITH_HINTS: (u64, u64) = (1, 37);
const KEP: &str = "https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/3386-kubelet-evented-pleg";

const SWITCH_ON: &str = "Put this into the kubelet's configuration file, often \
     /var/lib/kubelet/config.yaml, and restart the kubelet:\n\
     featureGates:\n\
     \u{20}\u{20}EventedPLEG: true";

#[derive(Clone, Debug, Default)]
pub(super) struct Kubelets {
    /// The kubelet that uses the runtime.
    own: Option<Kubelet>,
    others: usize,
    /// The effective configuration, if requested.
    configz: Option<(String, Result<KubeletConfig, String>)>,
    /// The metrics, if requested.
    metrics: Option<(String, Result<KubeletMetrics, String>)>,
}

/// Facts about the kubelet that uses the runtime.
#[derive(Clone, Debug)]
struct Kubelet {
    process: KubeletProcess,
    settings: KubeletSettings,
    /// Such as `v1.36.1`.
    version: Result<String, String>,
    log: Log,
}

/// The state of the gate, and where it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gate {
    is_on: bool,
    origin: String,
}

impl Kubelets {
    pub(super) fn read(root: &FileTree, socket: Option<&Path>) -> Self {
        let clients = socket.and_then(socket_clients);
        Self::read_among(root, socket, clients.as_ref())
    }

    /// As `read`, given the peers connected to the runtime's socket.
    pub(super) fn read_among(
        root: &FileTree,
        socket: Option<&Path>,
        clients: Option<&BTreeSet<u64>>,
    ) -> Self {
        let all = kubelets(root, clients);
        let uses = |kubelet: &&KubeletProcess| socket.is_none_or(|socket| kubelet.uses(socket));
        let own = all.iter().find(uses).map(|process| Kubelet {
            settings: process.settings(),
            version: process.version(root).map_err(|fault| fault.to_string()),
            log: kubelet_traces::read(root, process),
            process: process.clone(),
        });
        Self {
            others: all.len() - usize::from(own.is_some()),
            own,
            configz: None,
            metrics: None,
        }
    }

    pub(super) async fn read_configz(&mut self, origin: &str) {
        self.configz = Some((origin.to_owned(), configz::read(origin).await));
    }

    pub(super) async fn read_metrics(&mut self, origin: &str) {
        let text = configz::text(origin).await;
        let metrics = text.and_then(|text| KubeletMetrics::parse(&text));
        self.metrics = Some((origin.to_owned(), metrics));
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.own.as_ref()?.version.as_deref().ok()
    }

    /// The profile of a run that judges the runtime for the kubelet.
    pub(super) fn profile(&self) -> Option<Profile> {
        let version = minor(self.version()?)?;
        Some(if version < FIRST_WITH_HINTS {
            Profile::Cache
        } else {
            Profile::Hint
        })
    }

    /// The findings, given the runtime's behaviour; `None` if it cannot be reached.
    pub(super) fn findings(&self, runtime: Option<&RuntimeFacts>) -> Vec<Finding> {
        let mut found = Vec::new();
        match &self.own {
            Some(kubelet) => {
                found.push(kubelet.running());
                found.push(kubelet.version());
                found.extend(kubelet.unusable_files());
                found.extend(kubelet.cgroup_driver(runtime.and_then(|it| it.cgroup_driver)));
                found.extend(kubelet.misspelt_gates());
            }
            None => found.push(self.missing()),
        }
        if let Some((origin, Err(fault))) = &self.configz {
            let finding = format!("the kubelet's effective configuration cannot be read: {fault}");
            let finding = Finding::new(UNKNOWN, "configz-unreadable", finding, origin.clone());
            found.push(
                finding
                    .why("Files and flags say only how the kubelet is to start.")
                    .fix("kubectl get --raw /api/v1/nodes/NODE/proxy/configz > FILE, then --configz FILE"),
            );
        }
        found.extend(self.of_a_larger_program());
        let gate = self.gate();
        found.extend(self.use_of_events(gate.as_ref()));
        if let Some(gate) = gate {
            found.extend(self.changed_since_start(&gate));
            found.push(gate.finding(runtime));
        }
        found
    }

    /// Whether the kubelet uses events now, by its metrics or else by its log. If neither proves
    /// it, that is unknown when the gate is on.
    fn use_of_events(&self, gate: Option<&Gate>) -> Vec<Finding> {
        const METRICS: &str =
            "kubectl get --raw /api/v1/nodes/NODE/proxy/metrics > FILE, then --metrics FILE";
        let mut found = Vec::new();
        let mut proven = false;
        match &self.metrics {
            Some((origin, Ok(metrics))) => {
                let finding = metrics.finding(origin);
                proven = finding.is_some();
                found.extend(finding);
            }
            Some((origin, Err(fault))) => {
                let finding = format!("the kubelet's metrics cannot be read: {fault}");
                let finding = Finding::new(UNKNOWN, "metrics-unreadable", finding, origin.clone());
                let why = "They prove whether the kubelet uses events now.";
                found.push(finding.why(why).fix(METRICS));
            }
            None => {}
        }
        let Some(kubelet) = &self.own else {
            return found;
        };
        if !proven {
            proven = kubelet.log.is_telling();
            found.push(kubelet.log.finding());
        }
        if !proven && gate.is_some_and(|gate| gate.is_on) {
            let finding = "whether the kubelet uses events now is not known";
            let read = "its metrics and its log, as far as they were found";
            found.push(
                Finding::new(UNKNOWN, "use-of-events-unknown", finding, read)
                    .why("A kubelet that has given up the stream relists only, until a restart.")
                    .fix(METRICS),
            );
        }
        found
    }

    /// The gate, by the effective configuration if known, else by files and flags; `None` if
    /// neither sets it.
    fn gate(&self) -> Option<Gate> {
        if let Some((origin, Ok(config))) = &self.configz {
            let of = |gate: &str| config.feature_gates.get(gate).copied();
            let is_on = of(GATE).or(of(ALL_ALPHA)).unwrap_or(false);
            let origin = origin.clone();
            return Some(Gate { is_on, origin });
        }
        if let Some((origin, Ok(metrics))) = &self.metrics
            && let Some(is_on) = metrics.gate
        {
            let origin = format!("kubernetes_feature_enabled in {origin}");
            return Some(Gate { is_on, origin });
        }
        self.own.as_ref()?.gate()
    }

    fn of_a_larger_program(&self) -> Option<Finding> {
        let process = &self.own.as_ref()?.process;
        let has_metrics = matches!(&self.metrics, Some((_, Ok(metrics))) if metrics.gate.is_some());
        let is_served = has_metrics || matches!(self.configz, Some((_, Ok(_))));
        if process.is_kubelet_only() || is_served {
            return None;
        }
        let finding = format!(
            "the kubelet is part of {}, which has its own settings",
            process.name
        );
        let read = format!("/proc/{}", process.pid);
        let finding = Finding::new(UNKNOWN, "kubelet-in-another-program", finding, read);
        let finding = finding.why("Whether its gate is on cannot be read from flags and files.");
        Some(
            finding.fix(
                "kubectl get --raw /api/v1/nodes/NODE/proxy/configz > FILE, then --configz FILE",
            ),
        )
    }

    fn changed_since_start(&self, effective: &Gate) -> Option<Finding> {
        let configured = self.own.as_ref()?.gate()?;
        if configured.is_on == effective.is_on {
            return None;
        }
        let word = |is_on| if is_on { "on" } else { "off" };
        let (was, will) = (word(effective.is_on), word(configured.is_on));
        let finding = format!("the gate {GATE} is {was} now, but {will} in the files and flags");
        let read = format!("{}; {}", effective.origin, configured.origin);
        let finding = Finding::new(WRONG, "kubelet-not-restarted", finding, read);
        let why = format!("The next start of the kubelet switches it {will}.");
        Some(
            finding
                .why(why)
                .fix("Restart the kubelet, or correct its configuration."),
        )
    }

    fn missing(&self) -> Finding {
        let read = "/proc: names of processes, their flags and configuration files";
        if self.others > 0 {
            let finding = "no kubelet on this node uses this runtime, but another one";
            return Finding::new(UNKNOWN, "kubelet-of-another-runtime", finding, read)
                .why("Which of the node's runtimes will serve a kubelet with EventedPLEG?")
                .fix("Name the socket that the kubelet uses with --runtime-endpoint.");
        }
        Finding::new(
            UNKNOWN,
            "kubelet-missing",
            "no kubelet was found among the processes seen here",
            read,
        )
        .why("Whether its gate is on, and which version it has, is unknown.")
        .fix(
            "Run this on the node while its kubelet runs; in a container, with the host's PID \
                 namespace.",
        )
    }
}

const WRONG: (Area, Status) = (Area::Kubelet, Status::Wrong);
const UNKNOWN: (Area, Status) = (Area::Kubelet, Status::Unknown);
const NOTE: (Area, Status) = (Area::Kubelet, Status::Note);
const OK: (Area, Status) = (Area::Kubelet, Status::Ok);

impl Kubelet {
    fn running(&self) -> Finding {
        let (pid, name) = (self.process.pid, &self.process.name);
        let unit = self.process.unit.as_deref().unwrap_or("no unit of systemd");
        let files = self.settings.files.iter();
        let files: Vec<_> = files.map(|path| path.display().to_string()).collect();
        let files = match &files[..] {
            [] => "no configuration file".to_owned(),
            files => files.join(", "),
        };
        let flags = self.process.arguments.join(" ");
        let read = format!("/proc/{pid}; its configuration: {files}; its flags: {flags}");
        let finding = format!("process {pid} is `{name}`, {unit}");
        Finding::new(OK, "kubelet-running", finding, read)
    }

    fn version(&self) -> Finding {
        let read = format!("/proc/{}/exe --version", self.process.pid);
        let parsed = self.version.as_deref().ok().and_then(minor);
        let Some(parsed) = parsed else {
            let version = self.version.as_deref().unwrap_or_else(|fault| fault);
            let finding = format!("the kubelet's version is unknown: {version}");
            return Finding::new(UNKNOWN, "kubelet-version-unknown", finding, read)
                .why("It determines how the kubelet handles an event.")
                .fix("Run this as root; for k3s and the like, see its own documentation.");
        };
        let version = self.version.as_deref().unwrap_or_default();
        if parsed < FIRST {
            let finding = format!("kubelet {version} does not have the gate {GATE}");
            return Finding::new(WRONG, "kubelet-too-old", finding, read)
                .why("A kubelet does not start with a gate that it does not know.")
                .fix("Upgrade the kubelet: the gate exists since 1.26.")
                .source(KEP);
        }
        let contract = if parsed < FIRST_WITH_HINTS {
            "trusts the content of events (1.26 to 1.36)"
        } else {
            "takes STOPPED as a hint to relist the pod (1.37 and later)"
        };
        let finding = format!("kubelet {version} {contract}; the gate is alpha and off by default");
        Finding::new(OK, "kubelet-version", finding, read).source(KEP)
    }

    fn unusable_files(&self) -> Vec<Finding> {
        let files = self.settings.unusable.iter();
        let findings = files.map(|file| {
            let path = file.path.display().to_string();
            let finding = format!("{path}: {}", file.reason);
            if file.is_invalid {
                let finding = Finding::new(WRONG, "kubelet-config-invalid", finding, path);
                return finding
                    .why("The kubelet does not start with such a file.")
                    .fix("Correct it. Gates are written `EventedPLEG: true`, without quotes.");
            }
            Finding::new(UNKNOWN, "kubelet-config-unreadable", finding, path)
                .why("The gate may be set there.")
                .fix("Run this as root, with the files of the kubelet's container if it has one.")
        });
        findings.collect()
    }

    /// Gates that are unknown to every kubelet, and resemble the right one.
    fn misspelt_gates(&self) -> Vec<Finding> {
        let gates = self.settings.feature_gates.iter();
        let alike = |name: &str| {
            let (name, meant) = (name.to_ascii_lowercase(), GATE.to_ascii_lowercase());
            strsim::jaro_winkler(&name, &meant) > 0.9
        };
        let misspelt = gates.filter(|(name, _)| *name != GATE && alike(name));
        let findings = misspelt.map(|(name, set)| {
            let finding = format!("{} sets the gate {name}, which no kubelet has", set.origin);
            Finding::new(WRONG, "gate-misspelt", finding, set.origin.clone())
                .why("A kubelet does not start with a gate that it does not know.")
                .fix(format!("Write {GATE}."))
        });
        findings.collect()
    }

    fn cgroup_driver(&self, of_runtime: Option<CgroupDriver>) -> Option<Finding> {
        let own = self.settings.cgroup_driver.as_ref()?;
        let theirs = of_runtime?.name();
        if own.value == theirs {
            return None;
        }
        let (value, origin) = (&own.value, &own.origin);
        let finding = format!("the kubelet's cgroup driver is {value}, the runtime's {theirs}");
        let finding = Finding::new(NOTE, "cgroup-drivers-differ", finding, origin.clone());
        let why = "A kubelet that does not take the driver from the runtime starts no pods then.";
        Some(
            finding
                .why(why)
                .fix("Give both the same driver: systemd where systemd is PID 1."),
        )
    }

    /// The gate, by files and flags; `None` if those that can be read do not set it, and others
    /// exist.
    fn gate(&self) -> Option<Gate> {
        let gates = &self.settings.feature_gates;
        match gates.get(GATE).or_else(|| gates.get(ALL_ALPHA)) {
            Some(set) => Some(Gate {
                is_on: set.value,
                origin: format!("featureGates in {}", set.origin),
            }),
            None if !self.process.is_kubelet_only() => None,
            None => self.settings.unusable.is_empty().then(|| Gate {
                is_on: false,
                origin: "featureGates in none of the kubelet's files and flags".to_owned(),
            }),
        }
    }
}

impl Gate {
    fn finding(&self, runtime: Option<&RuntimeFacts>) -> Finding {
        let read = match runtime {
            Some(facts) => format!("{}; {}", self.origin, facts.stream.read()),
            None => self.origin.clone(),
        };
        let new = |place, id, finding: &str| Finding::new(place, id, finding, read.clone());
        let lag = "The kubelet notices changes by its relists only, as without this feature.";
        match (self.is_on, runtime.and_then(RuntimeFacts::sends_events)) {
            (true, Some(true)) => {
                let finding = "the kubelet's gate is on, and the runtime sends events";
                new(OK, "on-at-both-ends", finding)
            }
            (true, Some(false)) => {
                let finding = "the kubelet's gate is on, but the runtime sends no events";
                new(WRONG, "gate-on-events-off", finding)
                    .why("The kubelet falls back to relists after some failed attempts.")
                    .fix("Make the runtime send events, then restart the kubelet.")
            }
            (false, Some(true)) => {
                let finding = "the runtime sends events, but the kubelet's gate is off";
                new(WRONG, "gate-off-events-on", finding)
                    .why(lag)
                    .fix(SWITCH_ON)
                    .source(KEP)
            }
            (false, Some(false)) => {
                let finding = "the kubelet's gate is off, and the runtime sends no events";
                new(WRONG, "off-at-both-ends", finding)
                    .why(lag)
                    .fix(format!("First make the runtime send events. {SWITCH_ON}"))
                    .source(KEP)
            }
            (true, None) => new(OK, "gate-on", "the kubelet's gate is on"),
            (false, None) => new(WRONG, "gate-off", "the kubelet's gate is off")
                .why(lag)
                .fix(SWITCH_ON)
                .source(KEP),
        }
    }
}

/// The first two numbers of a version, such as `v1.36.1`.
fn minor(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
