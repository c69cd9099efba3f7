//! The configuration of CRI-O: its main file, the drop-ins in the order of their names, the
//! environment and the flags of its process; each overrides those before it.
//! See <https://github.com/cri-o/cri-o/blob/main/docs/crio.conf.d.5.md>.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::Value;

use super::finding::{Area, Finding, Status};
use super::runtime::{RuntimeFacts, WHY_EVENTS_OFF_IS_WRONG};
use crate::escape::printable;
use crate::host::{Daemon, FileTree, daemons};

const DEFAULT_FILE: &str = "/etc/crio/crio.conf";
const DEFAULT_DIRECTORY: &str = "/etc/crio/crio.conf.d";
const DEFAULT_SOCKET: &str = "/var/run/crio/crio.sock";
const KEY: &str = "enable_pod_events";

/// Overrides the files; the flag overrides it.
const VARIABLE: &str = "ENABLE_POD_EVENTS";
const FLAG: &str = "--enable-pod-events";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CrioConfig {
    /// The process with this configuration; `None` if not found.
    pid: Option<u32>,
    /// The files that were read, in order.
    files: Vec<PathBuf>,
    /// The file to create if no file contains the setting.
    new_file: PathBuf,
    /// The effective setting of `enable_pod_events`, and its origin.
    events: Option<(bool, Origin)>,
    listen: Option<String>,
    invalid: Vec<Invalid>,
}

/// The origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    File(PathBuf),
    /// With its value, such as `ENABLE_POD_EVENTS=true`.
    Variable(String),
    /// With its value if it has one, such as `--enable-pod-events=true`.
    Flag(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Invalid {
    id: &'static str,
    path: PathBuf,
    reason: String,
}

/// The configuration of the CRI-O at this socket, from the flags and the environment of its
/// process, or else from the usual files.
pub(super) fn read(root: &FileTree, socket: Option<&Path>) -> CrioConfig {
    let here = FileTree::default();
    let own = daemons(root, &["crio"]).into_iter().find_map(|daemon| {
        let config = CrioConfig::of(&daemon, root);
        let listens = config.listen.as_deref().unwrap_or(DEFAULT_SOCKET);
        let socket = socket?;
        let is_own = daemon.has_socket(listens, (&here, socket)).unwrap_or(false);
        is_own.then_some(config)
    });
    own.unwrap_or_else(|| CrioConfig::read(root, DEFAULT_FILE, DEFAULT_DIRECTORY))
}

impl CrioConfig {
    fn of(daemon: &Daemon, host: &FileTree) -> Self {
        let option = |name, short: &str, variable, default: &str| {
            let mut words = daemon.arguments.iter().skip_while(|word| *word != short);
            let short = words.nth(1).map(String::as_str);
            let flag = daemon.flag(name).last().or(short).map(str::to_owned);
            let set = flag.or_else(|| daemon.variable(host, variable));
            set.unwrap_or_else(|| default.to_owned())
        };
        let file = option("config", "-c", "CONTAINER_CONFIG", DEFAULT_FILE);
        let directory = option(
            "config-dir",
            "-d",
            "CONTAINER_CONFIG_DIR",
            DEFAULT_DIRECTORY,
        );
        let mut config = Self::read(&daemon.files, &file, &directory);
        config.pid = Some(daemon.pid);
        let listen = daemon.flag("listen").last().map(str::to_owned);
        let listen = listen.or_else(|| daemon.variable(host, "CONTAINER_LISTEN"));
        config.listen = listen.or(config.listen);
        if let Some(value) = daemon.variable(host, VARIABLE)
            && let Some(on) = parse_bool(&value)
        {
            config.events = Some((on, Origin::Variable(format!("{VARIABLE}={value}"))));
        }
        for word in &daemon.arguments {
            let on = match word.strip_prefix(FLAG) {
                Some("") => Some(true),
                Some(value) => value.strip_prefix('=').and_then(parse_bool),
                None => None,
            };
            if let Some(on) = on {
                config.events = Some((on, Origin::Flag(word.clone())));
            }
        }
        config
    }

    fn read(files: &FileTree, file: &str, directory: &str) -> Self {
        let mut config = Self::default();
        let drop_ins = match directory {
            "" => {
                config.new_file = PathBuf::from(file);
                Vec::new()
            }
            directory => {
                config.new_file = Path::new(directory).join("90-events.conf");
                files.list(directory).unwrap_or_default()
            }
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
            Err(fault) => {
                let text = fault.to_string();
                let place = text.lines().next().unwrap_or_default();
                return invalid("crio-not-toml", format!("{place}: {}", fault.message()));
            }
        };
        let section = |name: &str| table.get("crio")?.as_table()?.get(name)?.as_table();
        let runtime = section("runtime");
        match runtime.and_then(|runtime| runtime.get(KEY)) {
            Some(Value::Boolean(on)) => self.events = Some((*on, Origin::File(path.to_owned()))),
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

    /// The findings, given the runtime's behaviour.
    pub(super) fn findings(&self, runtime: &RuntimeFacts) -> Vec<Finding> {
        let mut found: Vec<_> = self.invalid.iter().map(Invalid::finding).collect();
        let set = self.events.as_ref();
        let set = set.map(|(on, origin)| (*on, format!("{KEY} is set to {on} {origin}")));
        let read = format!("{}; {}", self.origins(), runtime.stream.read());
        let new = |status, id, finding: String| {
            Finding::new((Area::Crio, status), id, finding, read.clone())
        };
        found.extend(match (set, runtime.sends_events()) {
            (Some((true, set)), Some(false)) => {
                let finding = format!("{set}, but CRI-O sends no events");
                let finding = new(Status::Wrong, "crio-not-restarted", finding)
                    .why("CRI-O reads this setting only when it starts.");
                Some(finding.fix("Restart CRI-O, on most nodes with `systemctl restart crio`."))
            }
            (Some((true, set)), _) => Some(new(Status::Ok, "crio-events-on", set)),
            (Some((false, set)), Some(true)) => {
                let finding = format!("{set}, though CRI-O sends events now");
                let why = "The setting was changed since CRI-O started: its next start switches \
                           events off.";
                let finding = new(Status::Wrong, "crio-off-after-restart", finding).why(why);
                Some(finding.fix(self.switch_on()))
            }
            (None, Some(true)) => {
                let finding = format!("CRI-O sends events, but no file that was found sets {KEY}");
                let finding = new(Status::Note, "crio-setting-not-found", finding)
                    .why("The setting may be in a file that this process cannot see.");
                Some(finding.fix("Run this on the node, or name its root directory with --root."))
            }
            (set, _) if found.is_empty() => {
                let set = set.map(|(_, set)| set);
                let set = set.unwrap_or_else(|| format!("{KEY} is not set, and off by default"));
                let finding =
                    new(Status::Wrong, "crio-events-off", set).why(WHY_EVENTS_OFF_IS_WRONG);
                Some(finding.fix(self.switch_on()))
            }
            _ => None,
        });
        found
    }

    fn origins(&self) -> String {
        let files = self.files.iter().map(|path| path.display().to_string());
        let files = match &files.collect::<Vec<_>>()[..] {
            [] => "no file of CRI-O's configuration was found".to_owned(),
            files => files.join(", "),
        };
        match self.pid {
            Some(pid) => format!("{files}; flags and environment of process {pid}"),
            None => files,
        }
    }

    /// How to enable events, if they are disabled.
    fn switch_on(&self) -> String {
        match &self.events {
            Some((_, Origin::Flag(flag))) => format!("Start CRI-O with {FLAG} in place of {flag}."),
            Some((_, Origin::Variable(variable))) => {
                format!("Start CRI-O with {VARIABLE}=true in place of {variable}.")
            }
            Some((_, Origin::File(path))) => switch_on_in(path),
            None => switch_on_in(&self.new_file),
        }
    }
}

fn switch_on_in(file: &Path) -> String {
    let file = file.display().to_string();
    let file = printable(&file);
    format!("Write this in {file}, and restart CRI-O:\n[crio.runtime]\n{KEY} = true")
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "in {}", path.display()),
            Self::Variable(variable) => write!(f, "by the environment variable {variable}"),
            Self::Flag(flag) => write!(f, "by the flag {flag}"),
        }
    }
}

/// A value of a flag or a variable, parsed as in Go; only a variable can be empty.
fn parse_bool(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" | "" => Some(false),
        _ => None,
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
        finding.why(why).fix(switch_on_in(&self.path))
    }
}

/// Whether a table contains the key at any depth.
fn has_key(value: &Value) -> bool {
    let Value::Table(table) = value else {
        return false;
    };
    table.contains_key(KEY) || table.values().any(has_key)
}
