//! The configuration of CRI-O: its main file, and the drop-ins in the order of their names.
//! See <https://github.com/cri-o/cri-o/blob/main/docs/crio.conf.d.5.md>.

use std::path::{Path, PathBuf};

use toml::Value;

use super::finding::{Area, Finding, Status};
use crate::host::{Daemon, FileTree, daemons};

/// How to switch events on.
pub(super) const SWITCH_ON: &str = "Put this into /etc/crio/crio.conf.d/90-events.conf, and restart CRI-O:\n\
     [crio.runtime]\n\
     enable_pod_events = true";
const DEFAULT_FILE: &str = "/etc/crio/crio.conf";
const DEFAULT_DIRECTORY: &str = "/etc/crio/crio.conf.d";
const DEFAULT_SOCKET: &str = "/var/run/crio/crio.sock";
const KEY: &str = "enable_pod_events";

/// What the configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CrioConfig {
    /// The files that were read, in order.
    files: Vec<PathBuf>,
    /// The last setting of `enable_pod_events`, and where it is.
    events: Option<(bool, String)>,
    listen: Option<String>,
    invalid: Vec<Invalid>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Invalid {
    id: &'static str,
    path: PathBuf,
    reason: String,
}

/// The configuration of the CRI-O at this socket: by the flags of its process, or else in the usual
/// files.
pub(super) fn read(root: &FileTree, socket: Option<&Path>) -> CrioConfig {
    let here = FileTree::default();
    let own = daemons(root, &["crio"]).into_iter().find_map(|daemon| {
        let config = CrioConfig::of(&daemon);
        let flag = daemon.flag("listen").last();
        let listens = flag.or(config.listen.as_deref()).unwrap_or(DEFAULT_SOCKET);
        let socket = socket?;
        let is_own = daemon.has_socket(listens, (&here, socket)).unwrap_or(false);
        is_own.then_some(config)
    });
    own.unwrap_or_else(|| CrioConfig::read(root, DEFAULT_FILE, DEFAULT_DIRECTORY))
}

impl CrioConfig {
    fn of(daemon: &Daemon) -> Self {
        let flag = |name, short: &str, default| {
            let mut words = daemon.arguments.iter().skip_while(|word| *word != short);
            let short = words.nth(1).map(String::as_str);
            daemon.flag(name).last().or(short).unwrap_or(default)
        };
        let file = flag("config", "-c", DEFAULT_FILE);
        let directory = flag("config-dir", "-d", DEFAULT_DIRECTORY);
        let mut config = Self::read(&daemon.files, file, directory);
        for word in &daemon.arguments {
            match word.strip_prefix("--enable-pod-events") {
                Some("" | "=true") => config.events = Some((true, word.clone())),
                Some("=false") => config.events = Some((false, word.clone())),
                Some(_) | None => {}
            }
        }
        config
    }

    fn read(files: &FileTree, file: &str, directory: &str) -> Self {
        let mut config = Self::default();
        let drop_ins = match directory {
            "" => Vec::new(),
            directory => files.list(directory).unwrap_or_default(),
        };
        for path in [PathBuf::from(file)].into_iter().chain(drop_ins) {
            if let Ok(text) = files.read(&path) {
                config.add(&text, &path);
                config.files.push(path);
            }
        }
        config
    }

    fn add(&mut self, text: &str, path: &Path) {
        let mut invalid = |id, reason| {
            let path = path.to_owned();
            self.invalid.push(Invalid { id, path, reason });
        };
        let table = match text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(fault) => return invalid("crio-not-toml", fault.to_string().trim().to_owned()),
        };
        let section = |name: &str| table.get("crio")?.as_table()?.get(name)?.as_table();
        let runtime = section("runtime");
        match runtime.and_then(|runtime| runtime.get(KEY)) {
            Some(Value::Boolean(on)) => self.events = Some((*on, path.display().to_string())),
            Some(other) => {
                let reason = format!("{KEY} is a {}, not true or false", other.type_str());
                invalid("crio-not-boolean", reason);
            }
            None if has_key(&Value::Table(table.clone())) => {
                let reason = format!("{KEY} is not in the table [crio.runtime]");
                invalid("crio-key-misplaced", reason);
            }
            None => {}
        }
        let listen = section("api").and_then(|api| api.get("listen")?.as_str());
        if let Some(listen) = listen {
            self.listen = Some(listen.to_owned());
        }
    }

    /// The findings, given whether the runtime sends events now.
    pub(super) fn findings(&self, sends_events: Option<bool>) -> Vec<Finding> {
        let mut found: Vec<_> = self.invalid.iter().map(Invalid::finding).collect();
        let read = match &self.files[..] {
            [] => format!("{DEFAULT_FILE} and {DEFAULT_DIRECTORY}: there are none"),
            files => {
                let paths: Vec<_> = files
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                paths.join(", ")
            }
        };
        let new = |status, id, finding: String| {
            Finding::new((Area::Crio, status), id, finding, read.clone())
        };
        let set = self.events.as_ref();
        let set = set.map(|(on, origin)| (*on, format!("{KEY} is {on} by {origin}")));
        found.extend(match (set, sends_events) {
            (Some((true, set)), Some(false)) => Some(
                new(
                    Status::Wrong,
                    "crio-not-restarted",
                    format!("{set}, but CRI-O sends no events"),
                )
                .why("CRI-O reads this setting only when it starts.")
                .fix("systemctl restart crio"),
            ),
            (Some((true, set)), _) => Some(new(Status::Ok, "crio-events-on", set)),
            (Some((false, set)), Some(true)) => Some(
                new(
                    Status::Wrong,
                    "crio-off-after-restart",
                    format!("{set}, though CRI-O sends events now"),
                )
                .why(
                    "The file was changed since CRI-O started: its next start switches events off.",
                )
                .fix(SWITCH_ON),
            ),
            (None, Some(true)) => Some(
                new(
                    Status::Note,
                    "crio-setting-not-found",
                    format!("CRI-O sends events, but no file that was found sets {KEY}"),
                )
                .why("The setting may be in a file that this process cannot see.")
                .fix("Run this on the node, or name its root directory with --root."),
            ),
            (set, _) if found.is_empty() => {
                let set = set.map_or_else(|| format!("no file sets {KEY}"), |(_, set)| set);
                let finding = new(Status::Wrong, "crio-events-off", set);
                Some(
                    finding
                        .why("Events are off by default in CRI-O.")
                        .fix(SWITCH_ON),
                )
            }
            _ => None,
        });
        found
    }
}

impl Invalid {
    fn finding(&self) -> Finding {
        let path = self.path.display();
        let finding = Finding::new(
            (Area::Crio, Status::Wrong),
            self.id,
            format!("{path}: {}", self.reason),
            path.to_string(),
        );
        let why = match self.id {
            "crio-key-misplaced" => "CRI-O ignores the key there, and events stay off.",
            "crio-not-toml" => {
                "CRI-O does not start with such a file. Documentation shows the setting as \
                 `enable_pod_events: true`, which is not TOML."
            }
            _ => "CRI-O does not start with such a file.",
        };
        finding.why(why).fix(SWITCH_ON)
    }
}

/// Whether a table contains the key at any depth.
fn has_key(value: &Value) -> bool {
    let Value::Table(table) = value else {
        return false;
    };
    table.contains_key(KEY) || table.values().any(has_key)
}
