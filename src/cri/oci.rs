//! The OCI runtime and the cgroup driver of a CRI runtime, if verbose `Status` reports them, and
//! the pid of a container.

use std::collections::HashMap;
use std::path::Path;

use k8s_cri::v1;
use serde::Deserialize;

use crate::history::{CgroupDriver, OciRuntime};

/// The maximum length of JSON that is parsed: the configuration of a node or a container has some
/// kilobytes.
const LONGEST_CONFIG: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beneath {
    pub oci: Option<OciRuntime>,
    pub cgroup_driver: Option<CgroupDriver>,
}

/// The relevant configuration of a runtime: `config` in the reply's `info`, JSON. containerd 1.7:
/// `pkg/cri/server/status.go`; 2.x: `internal/cri/server/status.go`. CRI-O: `createRuntimeInfo` in
/// `server/runtime_status.go`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Config {
    Containerd(Containerd),
    Crio(Crio),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Containerd {
    default_runtime_name: String,
    runtimes: HashMap<String, Handler>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handler {
    runtime_type: String,
    #[serde(default)]
    options: Option<Options>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Options {
    #[serde(default)]
    binary_name: String,
    #[serde(default)]
    systemd_cgroup: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Crio {
    default_runtime: String,
    runtimes: HashMap<String, CrioHandler>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CrioHandler {
    #[serde(default)]
    runtime_path: String,
}

/// Converts the driver of `RuntimeConfig`.
pub(super) fn cgroup_driver(driver: v1::CgroupDriver) -> CgroupDriver {
    match driver {
        v1::CgroupDriver::Systemd => CgroupDriver::Systemd,
        v1::CgroupDriver::Cgroupfs => CgroupDriver::Cgroupfs,
    }
}

/// The pid of a container, by the `info` of its verbose status; 0 if missing. containerd:
/// `toCRIContainerInfo` in `internal/cri/server/container_status.go`. CRI-O: `createContainerInfo`
/// in `server/container_status.go`.
pub(super) fn pid(info: &HashMap<String, String>) -> u32 {
    #[derive(Deserialize)]
    struct Info {
        pid: u32,
    }
    let info = info.get("info").filter(|info| info.len() <= LONGEST_CONFIG);
    let info: Option<Info> = info.and_then(|info| serde_json::from_str(info).ok());
    info.map_or(0, |info| info.pid)
}

impl Beneath {
    /// From the `info` of a verbose `Status`, for a handler, empty for the default one. The CRI
    /// does not report the version of the OCI runtime.
    pub(super) fn from_info(info: &HashMap<String, String>, handler: &str) -> Self {
        let config = info
            .get("config")
            .filter(|config| config.len() <= LONGEST_CONFIG);
        config
            .and_then(|config| Self::from_config(config, handler))
            .unwrap_or_default()
    }

    fn from_config(config: &str, handler: &str) -> Option<Self> {
        let config: serde_json::Map<_, _> = serde_json::from_str(config).ok()?;
        let known = config.into_iter().find_map(|(key, value)| {
            serde_json::from_value(serde_json::json!({ key: value })).ok()
        })?;
        let chosen = |default: String| match handler {
            "" => default,
            named => named.to_owned(),
        };
        let (handler, name, cgroup_driver) = match known {
            Config::Containerd(containerd) => {
                let handler = chosen(containerd.default_runtime_name);
                let found = containerd.runtimes.get(&handler)?;
                (handler, found.program(), found.cgroup_driver())
            }
            Config::Crio(crio) => {
                let handler = chosen(crio.default_runtime);
                let found = crio.runtimes.get(&handler)?;
                let name = Path::new(&found.runtime_path).file_name();
                // Without a path CRI-O looks for a program of the handler's name.
                let name = name.map_or(handler.clone(), |name| name.to_string_lossy().into_owned());
                (handler, Some(name), None)
            }
        };
        let version = None;
        let oci = Some(OciRuntime {
            handler,
            name,
            version,
        });
        Some(Self { oci, cgroup_driver })
    }
}

impl Handler {
    /// containerd 1.7 has no `RuntimeConfig`. Handlers without runc's options do not set the cgroup
    /// driver this way.
    fn cgroup_driver(&self) -> Option<CgroupDriver> {
        let options = self.options.as_ref()?;
        Some(if options.systemd_cgroup {
            CgroupDriver::Systemd
        } else {
            CgroupDriver::Cgroupfs
        })
    }

    /// The name of the program that it starts.
    fn program(&self) -> Option<String> {
        // containerd's pkg/process/utils.go: its shim for runc starts `runc` by default.
        const RUNC: &str = "io.containerd.runc.v2";
        let options = self.options.as_ref();
        let binary = options.map_or("", |options| &options.binary_name);
        let name = match binary {
            "" if self.runtime_type == RUNC => "runc",
            "" => return None,
            binary => Path::new(binary).file_name()?.to_str()?,
        };
        Some(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"containerd": {"defaultRuntimeName": "runc", "runtimes": {
        "runc": {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": true}},
        "plain": {"runtimeType": "io.containerd.runc.v2", "options": null},
        "crun": {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/crun"}},
        "kata": {"runtimeType": "io.containerd.kata.v2"}}}, "enableSelinux": false}"#;

    const CRIO: &str = r#"{"sandboxImage": "pause", "crio": {"DefaultRuntime": "crun",
        "CgroupManagerName": "cgroupfs", "Runtimes": {"crun": {"RuntimePath": ""},
        "runc": {"RuntimePath": "/usr/libexec/crio/runc", "RuntimeType": "oci"}}}}"#;

    fn of(info: &HashMap<String, String>, handler: &str) -> Option<OciRuntime> {
        Beneath::from_info(info, handler).oci
    }

    #[track_caller]
    fn check(config: &str, handler: &str, expect: Option<(&str, Option<&str>)>) {
        let info = HashMap::from([("config".to_owned(), config.to_owned())]);
        let expect = expect.map(|(handler, name)| OciRuntime {
            handler: handler.to_owned(),
            name: name.map(str::to_owned),
            version: None,
        });
        assert_eq!(of(&info, handler), expect);
    }

    #[test]
    fn the_handlers_program_is_found() {
        check(CONFIG, "", Some(("runc", Some("runc"))));
        check(CONFIG, "plain", Some(("plain", Some("runc"))));
        check(CONFIG, "crun", Some(("crun", Some("crun"))));
    }

    #[test]
    fn cri_o_has_its_own_words() {
        check(CRIO, "", Some(("crun", Some("crun"))));
        check(CRIO, "runc", Some(("runc", Some("runc"))));
        check(CRIO, "kata", None);
    }

    #[test]
    fn containerd_1_7_shows_who_makes_cgroups() {
        let driver = |handler| {
            let info = HashMap::from([("config".to_owned(), CONFIG.to_owned())]);
            Beneath::from_info(&info, handler).cgroup_driver
        };
        assert_eq!(driver("runc"), Some(CgroupDriver::Systemd));
        assert_eq!(driver("crun"), Some(CgroupDriver::Cgroupfs));
        assert_eq!(driver("plain"), None);
    }

    #[test]
    fn the_pid_of_a_container_stands_in_its_info() {
        let of = |info: &str| pid(&HashMap::from([("info".to_owned(), info.to_owned())]));
        assert_eq!(
            of(r#"{"sandboxID": "a", "pid": 7, "runtimeSpec": {"a": [1]}}"#),
            7
        );
        for nothing in ["", "{}", r#"{"pid": -1}"#, r#"{"pid": "7"}"#, "7"] {
            assert_eq!(of(nothing), 0, "{nothing}");
        }
        assert_eq!(
            of(&format!(r#"{{"pid": 7}}{}"#, " ".repeat(LONGEST_CONFIG))),
            0
        );
        assert_eq!(pid(&HashMap::new()), 0);
    }

    #[test]
    fn nothing_is_guessed() {
        check(CONFIG, "kata", Some(("kata", None)));
        check(CONFIG, "other", None);
        check("{}", "", None);
        check("default_runtime = \"crun\"", "", None);
        check(&format!("{CONFIG}{}", " ".repeat(LONGEST_CONFIG)), "", None);
        assert_eq!(of(&HashMap::new(), ""), None);
    }
}
