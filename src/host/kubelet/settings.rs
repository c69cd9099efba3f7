//! How a kubelet is configured: by its configuration file, its drop-ins and its flags.
//!
//! Precedence, lowest first: the file of `--config`, the drop-ins of `--config-dir` in the order of
//! their paths, flags. Feature gates are merged one by one.
//! See <https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/>.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{FileTree, KubeletProcess, absolute};

/// The endpoint that a kubelet uses if none is configured, since 1.27:
/// <https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/>.
pub(super) const DEFAULT_ENDPOINT: &str = "unix:///run/containerd/containerd.sock";
/// Drop-ins are read to this depth.
const DEPTH: usize = 4;
/// The maximum number of entries among which drop-ins are looked for.
const ENTRIES: usize = 1_000;

/// A setting, and where it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// Its value.
    pub value: T,
    /// The path of a file, or a flag.
    pub origin: String,
}

/// A configuration file of a kubelet that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether it was read, but a kubelet would refuse it.
    pub is_invalid: bool,
    /// Why not.
    pub reason: String,
}

/// The settings of a kubelet that matter for events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletSettings {
    /// Its feature gates.
    pub feature_gates: BTreeMap<String, Setting<bool>>,
    /// The runtime's endpoint.
    pub endpoint: Option<Setting<String>>,
    /// The cgroup driver.
    pub cgroup_driver: Option<Setting<String>>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// The files that cannot be used.
    pub unusable: Vec<UnusableFile>,
    /// How many entries of directories were looked at.
    entries: usize,
}

/// A configuration file or a part of one. Other keys are the kubelet's business.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConfigFile {
    feature_gates: Option<BTreeMap<String, bool>>,
    container_runtime_endpoint: Option<String>,
    cgroup_driver: Option<String>,
}

impl KubeletSettings {
    pub(super) fn read(kubelet: &KubeletProcess) -> Self {
        let mut settings = Self::default();
        if let Some(path) = kubelet
            .flag("config")
            .last()
            .filter(|path| !path.is_empty())
        {
            settings.add_file(&kubelet.files, absolute(path));
        }
        if let Some(path) = kubelet
            .flag("config-dir")
            .last()
            .filter(|path| !path.is_empty())
        {
            settings.add_directory(&kubelet.files, &absolute(path), DEPTH);
        }
        settings.add_flags(kubelet);
        settings
    }

    /// The endpoint of the runtime that the kubelet uses; none if that is unknown, as where a file
    /// cannot be read or the kubelet is part of a larger program.
    pub(super) fn runtime_endpoint(&self, kubelet: &KubeletProcess) -> Option<String> {
        let is_known = kubelet.is_kubelet_only() && self.unusable.is_empty();
        let configured = self
            .endpoint
            .as_ref()
            .map(|endpoint| endpoint.value.clone());
        let is_flag = |setting: &Setting<String>| setting.origin.starts_with("--");
        if self.endpoint.as_ref().is_some_and(is_flag) {
            return configured;
        }
        is_known.then(|| configured.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned()))
    }

    fn add_file(&mut self, files: &FileTree, path: PathBuf) {
        let text = match files.read(&path) {
            Ok(text) => text,
            Err(fault) => return self.cannot_use(path, false, &fault),
        };
        // An empty document is no mapping.
        match serde_yaml::from_str::<Option<ConfigFile>>(&text) {
            Ok(config) => self.merge(config.unwrap_or_default(), &path),
            Err(fault) => return self.cannot_use(path, true, &fault),
        }
        self.files.push(path);
    }

    fn cannot_use(&mut self, path: PathBuf, is_invalid: bool, fault: &dyn std::error::Error) {
        self.unusable.push(UnusableFile {
            path,
            is_invalid,
            reason: fault.to_string(),
        });
    }

    /// Adds the drop-ins, as the kubelet finds them: files named `*.conf`, also in subdirectories.
    fn add_directory(&mut self, files: &FileTree, directory: &Path, depth: usize) {
        let entries = match files.list(directory) {
            Ok(entries) => entries,
            Err(fault) => return self.cannot_use(directory.to_owned(), false, &fault),
        };
        for path in entries {
            self.entries += 1;
            if self.entries > ENTRIES {
                let fault = std::io::Error::other("it has too many entries");
                return self.cannot_use(directory.to_owned(), false, &fault);
            }
            if files.list(&path).is_ok() {
                if depth > 0 {
                    self.add_directory(files, &path, depth - 1);
                }
            } else if path.extension().is_some_and(|ending| ending == "conf") {
                self.add_file(files, path);
            }
        }
    }

    fn merge(&mut self, config: ConfigFile, path: &Path) {
        let origin = path.display().to_string();
        let of = |value| Setting {
            value,
            origin: origin.clone(),
        };
        for (gate, value) in config.feature_gates.unwrap_or_default() {
            let origin = origin.clone();
            self.feature_gates.insert(gate, Setting { value, origin });
        }
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(endpoint) = given(config.container_runtime_endpoint) {
            self.endpoint = Some(of(endpoint));
        }
        if let Some(driver) = given(config.cgroup_driver) {
            self.cgroup_driver = Some(of(driver));
        }
    }

    fn add_flags(&mut self, kubelet: &KubeletProcess) {
        let text = |flag: &'static str| {
            let value = kubelet
                .flag(flag)
                .last()
                .filter(|value| !value.is_empty())?;
            Some(Setting {
                value: value.to_owned(),
                origin: format!("--{flag}"),
            })
        };
        self.endpoint = text("container-runtime-endpoint").or(self.endpoint.take());
        self.cgroup_driver = text("cgroup-driver").or(self.cgroup_driver.take());
        for gate in kubelet
            .flag("feature-gates")
            .flat_map(|gates| gates.split(','))
        {
            let Some((gate, value)) = gate.split_once('=') else {
                continue;
            };
            // As Go parses booleans.
            let value = match value.trim() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                _ => continue,
            };
            let origin = "--feature-gates".to_owned();
            let setting = Setting { value, origin };
            self.feature_gates.insert(gate.trim().to_owned(), setting);
        }
    }
}
