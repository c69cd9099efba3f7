//! Determines the runtime under test: by the option, the environment, crictl's configuration file,
//! or the first of the usual sockets that exists.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::Fault;
use super::args::ConnectionArgs;
use crate::cri::Endpoint;
use crate::history::{HostInstant, MODEL};
use crate::host::{self, FileTree, HIDDEN_HOST, is_host_hidden};
use crate::limits::{self, TimeoutScale};
use crate::model::Behaviour;
use crate::run::{Endpoints, Target};
use crate::{files, yaml};

/// In crictl's order; then those of k3s and RKE2, k0s, and `MicroK8s`.
const USUAL: [&str; 6] = [
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/var/run/cri-dockerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
];

const DEFAULT_PATH: &str = "/etc/crictl.yaml";

const LARGEST_BYTES: u64 = 64 << 10;

/// The content of the file; other keys of crictl are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    default,
    expecting = "keys and values, such as `runtime-endpoint: unix:///run/containerd/containerd.sock`"
)]
pub(super) struct Config {
    pub(super) runtime_endpoint: String,
    pub(super) image_endpoint: String,
    /// Seconds; 0 for the default.
    timeout: u64,
    #[serde(skip)]
    pub(super) path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
#[error("the configuration file {}: {detail}", path.display())]
pub(super) struct ConfigError {
    path: PathBuf,
    detail: String,
}

/// Checks that the date of this host can be written in HTTP headers: the model, a relay, the image
/// registry and the metrics endpoint write one into each answer.
pub(super) fn require_date(now: HostInstant) -> Result<(), Fault> {
    if now.realtime_ns >= 0 {
        return Ok(());
    }
    let message = "the clock of this host is before 1970, which HTTP cannot write; set it, and \
                   run this again";
    Err(Fault::undecided(message))
}

/// The target, and a note about its choice if the user did not name it. A socket is looked
/// for in the tree of the host, too, if given. A default deadline is multiplied by the scale.
pub(super) fn resolve(
    args: &ConnectionArgs,
    timeout_scale: TimeoutScale,
    host: Option<&FileTree>,
) -> Result<(Target, Option<String>), Fault> {
    let config = Config::read(args.config.as_deref()).map_err(Fault::usage)?;
    // As for crictl, an empty variable counts as not set.
    let given = |flag: &Option<String>, file: &str| {
        let flag = flag.clone().filter(|text| !text.is_empty());
        flag.or_else(|| Some(file.to_owned()).filter(|text| !text.is_empty()))
    };
    let parse = |text: &str, origin: &str| {
        text.parse::<Endpoint>()
            .map_err(|fault| Fault::usage(format!("the runtime endpoint{origin}: {fault}")))
    };
    let deadline = args
        .timeout
        .or(config.timeout())
        .unwrap_or(timeout_scale.scaled(limits::CALL_DEADLINE));
    if given(&args.runtime_endpoint, &config.runtime_endpoint).as_deref() == Some(MODEL) {
        return Ok((model(args, deadline)?, None));
    }
    if let Some(defect) = args.defect.first() {
        return Err(Fault::usage(format!(
            "--defect {0} needs --runtime-endpoint model: only the model can have it{1}",
            defect.name,
            if defect.fault.is_relayable() {
                format!(
                    "; `--inject {}` has it between the suite and a real runtime",
                    defect.name
                )
            } else {
                String::new()
            }
        )));
    }
    let (runtime, note) =
        if let Some(text) = given(&args.runtime_endpoint, &config.runtime_endpoint) {
            let is_given = args.runtime_endpoint.iter().any(|text| !text.is_empty());
            let origin = if is_given {
                String::new()
            } else {
                format!(" from {}", config.path.display())
            };
            let note = (!is_given).then(|| format!("using the runtime endpoint{origin}: {text}"));
            (parse(&text, &origin)?, note)
        } else {
            let found = usual(host)?;
            let note = format!("no endpoint was given; using {found}");
            (found, Some(note))
        };
    let images = match given(&args.image_endpoint, &config.image_endpoint) {
        Some(text) => text
            .parse::<Endpoint>()
            .map_err(|fault| Fault::usage(format!("the image endpoint: {fault}")))?,
        None => runtime.clone(),
    };
    let endpoints = Endpoints {
        runtime,
        images,
        deadline,
    };
    let target = if args.inject.is_empty() {
        Target::Runtime(endpoints)
    } else {
        let defects = args.inject.iter().flatten().copied().collect();
        Target::Relayed { endpoints, defects }
    };
    Ok((target, note))
}

/// The model has its own image service; the configured one belongs to another runtime.
fn model(args: &ConnectionArgs, deadline: Duration) -> Result<Target, Fault> {
    if !args.inject.is_empty() {
        let fault = "--inject needs a real runtime: the model takes --defect NAME";
        return Err(Fault::usage(fault));
    }
    Ok(Target::Model {
        seed: 0,
        behaviour: Box::new(behaviour(args)),
        deadline,
    })
}

/// The model's behaviour with the given defects.
pub(super) fn behaviour(args: &ConnectionArgs) -> Behaviour {
    let mut behaviour = Behaviour::default();
    for defect in &args.defect {
        defect.fault.apply(&mut behaviour);
    }
    behaviour
}

/// The first usual socket that can be used: of this process, else of the host, if given.
fn usual(host: Option<&FileTree>) -> Result<Endpoint, Fault> {
    let (mut missing, mut unusable) = (Vec::new(), Vec::new());
    let own = FileTree::default();
    let trees = [Some(&own), host.filter(|host| **host != own)];
    let usual = trees.into_iter().flatten();
    for (tree, path) in usual.flat_map(|tree| USUAL.map(|path| (tree, Path::new(path)))) {
        let Ok(socket) = tree.locate(path) else {
            missing.push(tree.outside(path).display().to_string());
            continue;
        };
        let endpoint = Endpoint::Socket(socket);
        let Err(fault) = endpoint.check() else {
            return Ok(endpoint);
        };
        match endpoint.socket() {
            Some(socket) if !socket.exists() => missing.push(socket.display().to_string()),
            _ => unusable.push(fault.to_string()),
        }
    }
    if host == Some(&own) && is_host_hidden() {
        return Err(Fault::undecided(format!("{}: {HIDDEN_HOST}", host::name())));
    }
    let missing = (!missing.is_empty()).then(|| format!("no socket is at {}", missing.join(", ")));
    let tried: Vec<String> = unusable.into_iter().chain(missing).collect();
    Err(Fault::undecided(format!(
        "no runtime endpoint was given, and none of the usual ones can be used\n  {}\n\
         name one with --runtime-endpoint or CONTAINER_RUNTIME_ENDPOINT; without a runtime, `run`, \
         `matrix` and `explore` take --runtime-endpoint model",
        tried.join("\n  ")
    )))
}

impl Config {
    /// Reads the given file, or the default one if it exists.
    pub(super) fn read(named: Option<&Path>) -> Result<Self, ConfigError> {
        let path = named.unwrap_or(Path::new(DEFAULT_PATH));
        let failed = |detail: String| ConfigError {
            path: path.to_owned(),
            detail,
        };
        let text = match files::read_text(path, LARGEST_BYTES) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound && named.is_none() => {
                return Ok(Self::default());
            }
            read => read.map_err(|fault| failed(fault.to_string()))?,
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let config = yaml::read(&text).map_err(|fault| failed(fault.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            ..config
        })
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        (self.timeout > 0).then(|| Duration::from_secs(self.timeout))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::super::args::Cli;
    use super::*;

    #[test]
    fn a_clock_before_1970_is_refused_before_anything_is_served() {
        let at = |realtime_ns| HostInstant {
            realtime_ns,
            ..HostInstant::default()
        };
        assert!(require_date(at(0)).is_ok());
        assert!(require_date(at(-1)).is_err());
    }

    #[test]
    fn the_deadline_of_calls_is_stretched_unless_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let config = |text: &str| {
            let path = folder.path().join("crictl.yaml");
            std::fs::write(&path, text).unwrap();
            path.into_os_string().into_string().unwrap()
        };
        let deadline = |config: &str, args: &[&str]| {
            let line = ["suite", "-r", "model", "--config", config];
            let cli = Cli::try_parse_from(line.iter().chain(args)).unwrap();
            match resolve(&cli.connection, cli.run.drive.timeout_scale, None) {
                Ok((Target::Model { deadline, .. }, None)) => deadline,
                _ => panic!("the model was asked for"),
            }
        };
        let seconds = Duration::from_secs;
        let without = config("");
        assert_eq!(deadline(&without, &[]), limits::CALL_DEADLINE);
        let scaled = ["--timeout-scale", "3"];
        assert_eq!(deadline(&without, &scaled), limits::CALL_DEADLINE * 3);
        let given = [&scaled[..], &["--timeout", "7s"]].concat();
        assert_eq!(deadline(&without, &given), seconds(7));
        assert_eq!(deadline(&config("timeout: 5\n"), &scaled), seconds(5));
    }

    #[test]
    fn crictls_own_keys_are_read_and_its_others_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crictl.yaml");
        let text = "runtime-endpoint: unix:///a\nimage-endpoint: unix:///b\ntimeout: 7\n\
                    debug: true\npull-image-on-create: false\n";
        std::fs::write(&path, text).unwrap();
        let config = Config::read(Some(&path)).unwrap();
        assert_eq!(config.runtime_endpoint, "unix:///a");
        assert_eq!(config.image_endpoint, "unix:///b");
        assert_eq!(config.timeout(), Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_named_file_must_be_there_and_be_yaml() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.yaml");
        assert!(Config::read(Some(&missing)).is_err());
        let garbled = folder.path().join("garbled.yaml");
        std::fs::write(&garbled, "timeout: [").unwrap();
        assert!(Config::read(Some(&garbled)).is_err());
        std::fs::write(&garbled, "").unwrap();
        assert_eq!(Config::read(Some(&garbled)).unwrap(), Config::default());
    }
}
