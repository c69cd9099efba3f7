//! Which OCI runtime stands beneath a runtime, as far as its verbose `Status` tells.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::history::OciRuntime;

/// A longer configuration is not looked at: that of a node has some kilobytes.
const LONGEST_CONFIG: usize = 1 << 20;

/// The part of containerd's configuration that tells it; `config` in the answer's `info`, JSON.
/// containerd 1.7: `pkg/cri/server/status.go`; 2.x: `internal/cri/server/status.go`.
#[derive(Deserialize)]
struct Config {
    containerd: Containerd,
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
struct Options {
    #[serde(default, rename = "BinaryName")]
    binary_name: String,
}

/// The OCI runtime of a handler, empty for the default one, by the `info` of a verbose `Status`.
/// The CRI tells nothing of its version.
pub(super) fn of(info: &HashMap<String, String>, handler: &str) -> Option<OciRuntime> {
    let config = info.get("config")?;
    if config.len() > LONGEST_CONFIG {
        return None;
    }
    let Config { containerd } = serde_json::from_str(config).ok()?;
    let handler = match handler {
        "" => containerd.default_runtime_name,
        named => named.to_owned(),
    };
    let found = containerd.runtimes.get(&handler)?;
    Some(OciRuntime {
        name: found.program(),
        handler,
        version: None,
    })
}

impl Handler {
    /// The name of the program that it starts.
    fn program(&self) -> Option<String> {
        // containerd's pkg/process/utils.go: its shim for runc starts `runc` unless told otherwise.
        const RUNC: &str = "io.containerd.runc.v2";
        let options = self.options.as_ref();
        let told = options.map_or("", |options| &options.binary_name);
        let name = match told {
            "" if self.runtime_type == RUNC => "runc",
            "" => return None,
            told => Path::new(told).file_name()?.to_str()?,
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
    fn the_handlers_program_is_told() {
        check(CONFIG, "", Some(("runc", Some("runc"))));
        check(CONFIG, "plain", Some(("plain", Some("runc"))));
        check(CONFIG, "crun", Some(("crun", Some("crun"))));
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
