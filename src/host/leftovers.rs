//! Finds processes that have outlived their container or sandbox.
//!
//! A process belongs to a container or sandbox if a cgroup in its path is named by the id, or if it
//! is a shim or a monitor started for the id; and if it began after the call that made the object.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroup::Hierarchies;
use super::command_line::{CONMON, CommandLine};
use super::container_process::began;
use super::is_alive;
use super::owner::{OwnId, OwnIds, Owner, SHORTEST_ID, id_in};
use crate::files;
use crate::history::RunId;

/// The mount point of procfs.
const PROC: &str = "/proc";

/// A process that has outlived its container or sandbox, with a handle on it.
#[derive(Debug)]
pub struct Leftover {
    pid: Pid,
    handle: OwnedFd,
    program: String,
    belongs: Ownership,
}

/// Why a process belongs to a container or sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ownership {
    id: String,
    /// The evidence: the cgroup or the command line.
    seen_in: String,
}

impl Leftover {
    /// Kills it. It is no error if it has already ended.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Lets it run on, if SIGSTOP has frozen it.
    pub fn thaw(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.handle, signal) {
            Err(rustix::io::Errno::SRCH) | Ok(()) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ownership { id, seen_in } = &self.belongs;
        let (pid, program) = (self.pid.as_raw_nonzero(), &self.program);
        write!(f, "process {pid} ({program}) of {id}, as {seen_in} shows")
    }
}

/// The processes of these containers and sandboxes.
pub(super) fn find(ids: &OwnIds) -> Vec<Leftover> {
    find_in(Path::new(PROC), ids)
}

/// Removes the empty cgroups of these containers and sandboxes; returns whether no visible one is
/// left.
pub(super) fn remove_cgroups(ids: &OwnIds) -> bool {
    match Hierarchies::mounted() {
        Ok(hierarchies) if !ids.is_empty() => hierarchies.remove_by_ids(ids),
        Ok(_) | Err(_) => true,
    }
}

fn find_in(proc: &Path, ids: &OwnIds) -> Vec<Leftover> {
    let entries = match std::fs::read_dir(proc) {
        Ok(entries) if !ids.is_empty() => entries,
        Ok(_) | Err(_) => return Vec::new(),
    };
    let pids = entries.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(pid)
    });
    pids.filter_map(|pid| hold(proc, pid, ids)).collect()
}

/// Opens a handle on a process before finally checking its owner, so that a reused pid does no
/// harm.
fn hold(proc: &Path, pid: Pid, ids: &OwnIds) -> Option<Leftover> {
    let own = proc.join(pid.as_raw_nonzero().to_string());
    belongs(&own, ids)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let belongs = belongs(&own, ids)?;
    let program = std::fs::read_to_string(own.join("comm")).unwrap_or_default();
    Some(Leftover {
        pid,
        handle,
        program: program.trim().to_owned(),
        belongs,
    })
}

fn belongs(process: &Path, ids: &OwnIds) -> Option<Ownership> {
    let began = began(process)?;
    let is_one = |id: &str| ids.may_own(id, began);
    let cgroups = std::fs::read_to_string(process.join("cgroup")).unwrap_or_default();
    by_cgroup(&cgroups, is_one).or_else(|| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        by_command(&String::from_utf8_lossy(&command), is_one)
    })
}

/// Finds an id in `/proc/PID/cgroup`, whose lines have a number, controllers and a path.
fn by_cgroup(cgroups: &str, is_one: impl Fn(&str) -> bool) -> Option<Ownership> {
    cgroups.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        let id = path.split('/').map(id_in).find(|id| is_one(id))?;
        Some(Ownership {
            id: id.to_owned(),
            seen_in: format!("its cgroup {path}"),
        })
    })
}

/// Finds an id in a command line: of a containerd shim, of CRI-O's monitor, or of an OCI runtime
/// that creates the container.
fn by_command(command: &str, is_one: impl Fn(&str) -> bool) -> Option<Ownership> {
    let command = CommandLine::parse(command)?;
    let id = command.monitors().or_else(|| command.creates())?;
    is_one(id).then(|| Ownership {
        id: id.to_owned(),
        seen_in: "its command line".to_owned(),
    })
}

/// The ids of containers and sandboxes with a shim or monitor whose log path belongs to one of
/// these runs, and that began after the run did. If the runtime or its client was killed during a
/// creation, no list contains them.
pub(super) fn monitored(runs: &[Owner]) -> OwnIds {
    let entries = std::fs::read_dir(PROC).into_iter().flatten();
    let processes = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let equal = processes.filter(|process| is_equal(process));
    equal
        .filter_map(|process| monitored_by(&process, runs))
        .collect()
}

/// The shims that began after one of these runs did, for a sandbox that is not among these ids and
/// of which no file is left: nothing shows who made it. One sentence each.
pub fn unexplained_shims(runs: &[Owner], listed: &BTreeSet<String>) -> Vec<String> {
    let Some(since) = runs.iter().filter_map(Owner::began).min() else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(PROC).into_iter().flatten();
    let processes = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let shims = processes.filter_map(|process| {
        let command = std::fs::read(process.join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command);
        let command = CommandLine::parse(&command)?;
        let id = command.monitors().filter(|id| !listed.contains(*id))?;
        let has_files = command.program == CONMON || process.join("cwd/config.json").exists();
        if has_files || began(&process)? < since || !is_equal(&process) {
            return None;
        }
        let (program, pid) = (command.program, process.file_name()?.to_str()?);
        Some(format!(
            "process {pid} ({program}) of sandbox {id} stays: the runtime does not list it and its \
             files are gone, so that nothing shows whether a run made it; if nothing else did, end \
             it with kill {pid}"
        ))
    });
    shims.collect()
}

/// The number of shims and monitors that were started for these ids. Zombies have no command line.
pub(super) fn monitors_of(ids: &BTreeSet<String>) -> usize {
    let entries = std::fs::read_dir(PROC).into_iter().flatten();
    let commands =
        entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    let is_one = |command: &Vec<u8>| {
        let command = String::from_utf8_lossy(command);
        let command = CommandLine::parse(&command);
        let id = command.as_ref().and_then(CommandLine::monitors);
        id.is_some_and(|id| ids.contains(id))
    };
    commands.filter(is_one).count()
}

/// The monitors of runs that have ended and of which no record was found, a sentence each; but only
/// of this run, if one is given.
pub fn unrecorded_monitors(recorded: &[Owner], run: Option<&RunId>) -> Vec<String> {
    let entries = std::fs::read_dir(PROC).into_iter().flatten();
    let processes = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let unrecorded = processes.filter_map(|process| {
        let (owner, OwnId { id, .. }, above) = monitor(&process)?;
        let is_one = run.map_or_else(
            || !is_alive(owner.process()),
            |run| run.as_str() == owner.run(),
        );
        if !is_one || recorded.contains(&owner) || !is_equal(&process) {
            return None;
        }
        let (run, pid, above) = (owner.run(), process.file_name()?.to_str()?, above.display());
        Some(format!(
            "process {pid} of {id} stays: no record was found of its run {run}, whose logs are in \
             {above}; clean up with --log-dir '{above}'"
        ))
    });
    unrecorded.collect()
}

/// The container or sandbox that this process monitors, if its logs belong to one of the given
/// runs.
fn monitored_by(process: &Path, runs: &[Owner]) -> Option<OwnId> {
    let (owner, id, _) = monitor(process)?;
    runs.contains(&owner).then_some(id)
}

/// The run of the container or sandbox that this process monitors, as its logs show, its id, and
/// the parent of the run's log directory.
fn monitor(process: &Path) -> Option<(Owner, OwnId, PathBuf)> {
    let command = std::fs::read(process.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command);
    let command = CommandLine::parse(&command)?;
    let id = command.monitors().filter(|id| id.len() >= SHORTEST_ID)?;
    let log = if command.program == CONMON {
        PathBuf::from(command.after("-l")?)
    } else {
        log_directory(&process.join("cwd/config.json"))?
    };
    let (owner, above) = log.ancestors().find_map(|logs| {
        let owner = Owner::from_name(logs.file_name()?.to_str()?)?;
        Some((owner, logs.parent()?.to_owned()))
    })?;
    let (id, since) = (id.to_owned(), owner.began()?);
    (began(process)? >= since).then_some((owner, OwnId { id, since }, above))
}

/// The log directory of a sandbox, from an annotation in the OCI specification in the working
/// directory of containerd's shim: `pkg/cri/annotations` (1.7), `internal/cri/annotations` (2.x).
fn log_directory(specification: &Path) -> Option<PathBuf> {
    /// The maximum size; that of a sandbox has some ten kilobytes.
    const LONGEST: u64 = 1 << 20;
    let text = files::read(specification, LONGEST).ok()?;
    let specification: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let annotations = specification.get("annotations")?;
    let directory = annotations.get("io.kubernetes.cri.sandbox-log-directory")?;
    Some(PathBuf::from(directory.as_str()?))
}

/// Whether this process has our user and PID namespace, and so may kill whatever we may: another
/// process could name a foreign container in order to have us kill it.
fn is_equal(process: &Path) -> bool {
    let namespace = |process: &Path| std::fs::read_link(process.join("ns/pid")).ok();
    let same_user = std::fs::metadata(process)
        .is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
    let own = namespace(&Path::new(PROC).join("self"));
    same_user && own.is_some() && namespace(process) == own
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use super::*;
    use crate::host::BootTicks;

    const ID: &str = "0d4e4a3df1f4c1b3ad9a7d1c54dbb8b0c0f1a9d3d4ad2a51f4e1c9be2f1d6a11";
    const OTHER: &str = "1d4e4a3df1f4c1b3ad9a7d1c54dbb8b0c0f1a9d3d4ad2a51f4e1c9be2f1d6a11";

    /// When the process of the run began, and the call that made the objects.
    const SINCE: BootTicks = BootTicks(345);

    fn own(id: &str) -> OwnId {
        let (id, since) = (id.to_owned(), SINCE);
        OwnId { id, since }
    }

    fn is_one(id: &str) -> bool {
        id == ID
    }

    /// The line of a process that began then, in `stat`.
    fn stat(state: char, began: BootTicks) -> String {
        format!("1 (a) b) {state} 1{} {began} 0\n", " 0".repeat(17))
    }

    #[test]
    fn a_cgroup_with_the_id_in_its_path_is_of_the_container() {
        for path in [
            format!("0::/k8s.io/{ID}"),
            format!("9:cpu:/\n8:memory:/pods/crio-{ID}.scope"),
            format!("0::/system.slice/cri-containerd-{ID}.scope"),
            format!("0::/pods/crio-conmon-{ID}.scope"),
            format!("0::/k8s.io/{ID}/below"),
        ] {
            let owner = by_cgroup(&path, is_one);
            assert_eq!(owner.unwrap().id, ID, "{path}");
        }
        for path in [
            format!("0::/k8s.io/{OTHER}"),
            format!("0::/k8s.io/{ID}0"),
            format!("0::/k8s.io/{}", &ID[..63]),
            format!("0::/k8s.io/x.{ID}"),
            format!("0::/user.slice/{ID}.service"),
            format!("0::/user.slice/app-1-{ID}.scope"),
            format!("8:name={ID}:/"),
        ] {
            assert_eq!(by_cgroup(&path, is_one), None, "{path}");
        }
    }

    #[test]
    fn a_shim_or_a_monitor_is_of_the_container_that_it_was_started_for() {
        let of = |arguments: &[&str]| by_command(&arguments.join("\0"), is_one).is_some();
        let shim = "/usr/bin/containerd-shim-runc-v2";
        assert!(of(&[
            shim,
            "-namespace",
            "k8s.io",
            "-id",
            ID,
            "-address",
            "/run/c.sock"
        ]));
        assert!(of(&["conmon", "-b", "/run/bundle", "-c", ID]));
        assert!(!of(&[shim, "-namespace", "k8s.io", "-id", OTHER]));
        assert!(!of(&[shim, "-namespace", "moby", "-id", ID]));
        assert!(!of(&[shim, "-namespace", "k8s.io", "-address", ID]));
        assert!(!of(&["/usr/bin/tail", "-namespace", "k8s.io", "-id", ID]));
        assert!(of(&[
            "/usr/bin/crun",
            "--root",
            "/r",
            "create",
            "--bundle",
            "/b",
            ID
        ]));
        assert!(!of(&[
            "/usr/bin/crun",
            "--root",
            "/r",
            "create",
            "--bundle",
            ID,
            OTHER
        ]));
        assert!(!of(&["/usr/bin/crun", "--root", "/r", "state", ID]));
        assert!(!of(&["crictl", "-c", ID]));
        assert!(!of(&[""]));
    }

    const LOG: &str = "/var/log/cri-event-conformance-6f1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d.12-345";

    /// What a process with this command line monitors, whose sandbox has this log directory.
    fn monitors(command: &[&str], log_directory: &str) -> Option<String> {
        let process = tempfile::tempdir().unwrap();
        fs::write(process.path().join("cmdline"), command.join("\0") + "\0").unwrap();
        fs::create_dir(process.path().join("cwd")).unwrap();
        let annotations = serde_json::json!({
            "io.kubernetes.cri.sandbox-log-directory": log_directory
        });
        let specification = serde_json::json!({ "annotations": annotations }).to_string();
        fs::write(process.path().join("cwd/config.json"), specification).unwrap();
        let runs =
            [
                Owner::from_name(
                    "cri-event-conformance-6f1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d.12-345",
                )
                .unwrap(),
            ];
        let mut found = [BootTicks(344), SINCE].map(|began| {
            fs::write(process.path().join("stat"), stat('S', began)).unwrap();
            monitored_by(process.path(), &runs)
        });
        assert_eq!(found[0], None, "older than the run");
        found[1].take().map(|own| own.id)
    }

    #[test]
    fn a_monitor_is_of_the_run_that_its_log_is_of() {
        let of = |program: &str, log: &str, id: &str| {
            monitors(&[program, "-b", "/run/bundle", "-c", id, "-l", log], LOG)
        };
        let log = format!("{LOG}/pod_c_0.log");
        assert_eq!(of("/usr/bin/conmon", &log, ID).as_deref(), Some(ID));
        let other = "/var/log/cri-event-conformance-7a1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d.12-345/pod_c_0.log";
        for (program, log, id) in [
            ("conmon", other, ID),
            ("conmon", "/var/log/pods/pod_c_0.log", ID),
            ("conmon", &log, "short"),
            ("tail", &log, ID),
        ] {
            assert_eq!(of(program, log, id), None, "{program} {log} {id}");
        }
    }

    #[test]
    fn a_shim_is_of_the_run_that_its_sandboxs_log_directory_is_of() {
        let shim = "/usr/bin/containerd-shim-runc-v2";
        let of = |namespace: &str, log: &str| {
            monitors(
                &[shim, "-namespace", namespace, "-id", ID, "-address", "s"],
                log,
            )
        };
        assert_eq!(of("k8s.io", LOG).as_deref(), Some(ID));
        assert_eq!(of("moby", LOG), None);
        assert_eq!(of("k8s.io", "/var/log/pods/kube-system_a_b"), None);
        assert_eq!(of("k8s.io", &LOG.replace("6f1c", "7a1c")), None);
    }

    #[test]
    fn a_process_of_ours_is_equal_to_us_and_one_that_is_gone_is_not() {
        assert!(is_equal(&Path::new(PROC).join("self")));
        assert!(!is_equal(&Path::new(PROC).join("0")));
    }

    /// A process that waits, and is shown in a `/proc` of the test's own, in this cgroup.
    fn sleeper(proc: &Path, id: &str, began: BootTicks) -> Child {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let own = proc.join(child.id().to_string());
        fs::create_dir(&own).unwrap();
        fs::write(own.join("cgroup"), format!("0::/k8s.io/{id}\n")).unwrap();
        fs::write(own.join("comm"), "sleep\n").unwrap();
        fs::write(own.join("stat"), stat('S', began)).unwrap();
        child
    }

    #[test]
    fn what_is_found_is_killed_and_nothing_else() {
        let proc = tempfile::tempdir().unwrap();
        let mut ours = sleeper(proc.path(), ID, SINCE);
        let older = sleeper(proc.path(), ID, BootTicks(344));
        let another = sleeper(proc.path(), OTHER, SINCE);
        fs::create_dir(proc.path().join("self")).unwrap();
        let wanted = [own(ID), own("short")].into_iter().collect();
        let found = find_in(proc.path(), &wanted);
        let message: Vec<_> = found.iter().map(ToString::to_string).collect();
        let pid = ours.id();
        let expected = format!("process {pid} (sleep) of {ID}, as its cgroup /k8s.io/{ID} shows");
        assert_eq!(message, [expected]);
        for found in found {
            found.kill().unwrap();
        }
        assert_eq!(ours.wait().unwrap().signal(), Some(9));
        for mut spared in [older, another] {
            assert_eq!(spared.try_wait().unwrap(), None);
            spared.kill().unwrap();
            spared.wait().unwrap();
        }
    }

    #[test]
    fn nothing_is_found_by_no_id() {
        let proc = tempfile::tempdir().unwrap();
        let mut child = sleeper(proc.path(), ID, SINCE);
        assert!(find_in(proc.path(), &OwnIds::default()).is_empty());
        let short = [own("k8s.io"), own("io")].into_iter().collect();
        assert!(find_in(proc.path(), &short).is_empty());
        let shown = proc.path().join(format!("{}/stat", child.id()));
        fs::write(shown, stat('Z', SINCE)).unwrap();
        let wanted = [own(ID)].into_iter().collect();
        assert!(find_in(proc.path(), &wanted).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
