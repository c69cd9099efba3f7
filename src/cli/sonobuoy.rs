//! The command `sonobuoy`: a run or a watch as a plugin of Sonobuoy.
//!
//! A plugin writes its results into a directory, then the path of the results into the file `done`
//! there. It must not exit before it gets a signal, or its pod would restart it. So this command
//! writes both even if the run or the watch fails, and then waits.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::chroot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tokio::runtime::Builder;

use super::{Cli, Fault, commands};
use crate::files::{self, Draft, Folder};
use crate::host::InterruptSignals;
use crate::run::{Exit, JUNIT, RunOptions};
use crate::watch::WatchOptions;
use crate::{report, terminal};

/// The file that contains the path of the results.
const DONE: &str = "done";

/// The directory of the results.
const REPORTS: &str = "reports";

// Doc comments of fields are the help of options.
/// The options of `sonobuoy`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct SonobuoyArgs {
    #[command(subcommand)]
    instead: Option<Instead>,
    /// The directory in which Sonobuoy waits for results
    #[arg(long, global = true, value_name = "DIR", env = "SONOBUOY_RESULTS_DIR")]
    #[arg(default_value = "/tmp/sonobuoy/results", help_heading = "Sonobuoy")]
    results_dir: PathBuf,
    /// Change the root directory to the node's, such as /host, mounted as a volume; all other paths
    /// are then those of the node
    #[arg(long, global = true, value_name = "DIR", help_heading = "Sonobuoy")]
    host_root: Option<PathBuf>,
    /// The options of the run.
    #[command(flatten)]
    pub(super) run: RunOptions,
}

/// A command that replaces the run of cases.
#[derive(Debug, Subcommand)]
enum Instead {
    /// Watch the node's own pods, and judge their events.
    Watch(Box<WatchOptions>),
}

/// Runs cases or watches, hands the reports over, and waits for a signal. Fails if the results
/// cannot be handed over. A failed run is no error: its reports contain the failure.
pub(super) fn execute(cli: &Cli, args: &SonobuoyArgs) -> Result<Exit, Fault> {
    let undecided = |fault: io::Error| Fault::undecided(format!("start: {fault}"));
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(undecided)?;
    // From the beginning, so that a signal during the run also ends the wait after it.
    let signals = {
        let _within = runtime.enter();
        InterruptSignals::listen()
    };
    let mut signals = signals.map_err(undecided)?;
    let results = ResultsDirectory::open(args)?;
    if results.is_handed_over() {
        terminal::say("the results are there already, of an earlier start: nothing is run");
    } else {
        let reports = results.path.join(REPORTS);
        let run = || match &args.instead {
            None => commands::run_cases(cli, Some(&reports)),
            Some(Instead::Watch(options)) => {
                let mut options = WatchOptions::clone(options);
                options.report.report_dir = Some(reports.clone());
                commands::watch_node(cli, &options)
            }
        };
        let fault = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(_)) => None,
            Ok(Err(fault)) => Some(fault),
            Err(_) => Some(Fault::undecided("the suite panicked, see its log")),
        };
        results.hand_over(fault)?;
    }
    let place = results.named.join(REPORTS);
    terminal::say(&format!(
        "the reports are in {}; waiting for SIGTERM",
        place.display()
    ));
    runtime.block_on(signals.first());
    Ok(Exit::Conformant)
}

struct ResultsDirectory {
    named: PathBuf,
    /// Its path in this process, which may have changed its root directory.
    path: PathBuf,
    folder: Folder,
}

impl ResultsDirectory {
    /// Opens it, and changes the root directory if requested.
    fn open(args: &SonobuoyArgs) -> Result<Self, Fault> {
        let named = args.results_dir.clone();
        let usage = |what: &str, path: &Path, fault: &dyn std::error::Error| {
            Fault::usage(format!("{what} {}: {fault}", path.display()))
        };
        let folder = Folder::make(&named, None).and_then(|it| it.must_be_own().map(|()| it));
        let folder = folder.map_err(|fault| usage("open the results directory", &named, &fault))?;
        let mut path = named.clone();
        if let Some(root) = &args.host_root {
            let changed = chroot(root).and_then(|()| std::env::set_current_dir("/"));
            let what = "change the root directory to";
            changed.map_err(|fault| usage(what, root, &fault))?;
            // The link leads out of the new root directory.
            path = folder.path_of(OsStr::new(""));
            let there = Folder::open(&path);
            there.map_err(|fault| usage("use a root directory without /proc,", root, &fault))?;
        }
        let results = Self {
            named,
            path,
            folder,
        };
        // An unwritable directory is reported before anything runs.
        drop(results.done()?);
        Ok(results)
    }

    fn done(&self) -> Result<Draft, Fault> {
        let done = Draft::open("path of the results", &self.path.join(DONE));
        done.map_err(Fault::usage)
    }

    fn is_handed_over(&self) -> bool {
        self.folder.stat(OsStr::new(DONE)).is_ok()
    }

    /// Writes the path of the reports. A run without reports gets one with the reason.
    fn hand_over(&self, fault: Option<Fault>) -> Result<(), Fault> {
        let written = |fault: &dyn std::error::Error| {
            Fault::undecided(format!("hand the reports over: {fault}"))
        };
        let reports = self.folder.make_own(OsStr::new(REPORTS), 0o755);
        let reports = reports.map_err(|fault| written(&fault))?;
        if let Some(fault) = fault {
            let _ = fault.report();
            let draft = Draft::open("JUnit report", &reports.path_of(OsStr::new(JUNIT)));
            let draft = draft.map_err(|fault| written(&fault))?;
            let report =
                |out: &mut dyn io::Write| report::junit::write_undecided(&fault.message, out);
            draft.complete(report).map_err(|fault| written(&fault))?;
        }
        share(&reports).map_err(|fault| written(&fault))?;
        let path = self.named.join(REPORTS);
        let write = |out: &mut dyn io::Write| write!(out, "{}", path.display());
        self.done()?
            .complete(write)
            .map_err(|fault| written(&fault))?;
        // Until then, Sonobuoy tries to read it again.
        permit(&self.folder, OsStr::new(DONE)).map_err(|fault| written(&fault))
    }
}

/// The maximum number of shared entries of the reports.
const ENTRIES: usize = 100;

/// Lets the container that collects the directory read it and add an archive: it is of the same
/// pod, but runs as another user.
fn share(reports: &Folder) -> io::Result<()> {
    for name in reports.names(ENTRIES)? {
        permit(reports, &name)?;
    }
    // As `/tmp`: an entry can be removed by its owner alone.
    reports.permit(0o1777)
}

/// Makes a file that this run has written world-readable; other files keep their modes.
fn permit(folder: &Folder, name: &OsStr) -> io::Result<()> {
    let Ok(file) = folder.read(name) else {
        return Ok(());
    };
    files::permit_own(&file, 0o644)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn only_files_of_the_run_are_shared() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let reports = Folder::open(folder.path()).unwrap();
        let reports = reports.make_own(OsStr::new(REPORTS), 0o755).unwrap();
        for name in ["secret", "secret-too", "reports/own"] {
            fs::write(path(name), "").unwrap();
            fs::set_permissions(
                path(name),
                std::os::unix::fs::PermissionsExt::from_mode(0o600),
            )
            .unwrap();
        }
        symlink(path("secret"), path("reports/link")).unwrap();
        fs::hard_link(path("secret-too"), path("reports/second-name")).unwrap();
        share(&reports).unwrap();
        let mode = |name: &str| fs::metadata(path(name)).unwrap().mode() & 0o7777;
        let modes = ["secret", "secret-too", "reports/own", "reports"].map(mode);
        assert_eq!(modes, [0o600, 0o600, 0o644, 0o1777]);
    }

    #[test]
    fn reports_do_not_go_into_a_directory_of_another_user() {
        let folder = tempfile::tempdir().unwrap();
        let reports = folder.path().join(REPORTS);
        fs::create_dir(&reports).unwrap();
        if !files::tests::give_away(&reports) {
            return;
        }
        let results = Folder::open(folder.path()).unwrap();
        let refused = results.make_own(OsStr::new(REPORTS), 0o755).unwrap_err();
        assert!(
            refused.to_string().contains("belongs to user 65534"),
            "{refused}"
        );
    }
}
