//! The options of `watch`, filled by clap.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::limits;
use crate::oracle::{NO_MISSED_EVENT, PLEGS_AGREE};
use crate::outcome::{Level, Outcome, Profile, RunReport, Verdict};
use crate::plan::{ProfileChoice, Selection};
use crate::run::{Exit, Output, ReportOptions};

// Doc comments of fields are the help of options.
/// The options of `watch`.
#[derive(Args, Clone, Debug)]
pub struct WatchOptions {
    /// Watch for this long, then print the verdict, as a run does [default: until a signal]
    #[arg(long = "for", value_name = "DURATION", value_parser = limits::long_duration)]
    pub duration: Option<Duration>,
    /// The output during the watch; json is one object per line [default: text, or none with --for]
    #[arg(long, short, value_enum)]
    pub output: Option<Output>,
    /// How late an event may arrive before it counts as missed, and how long a pod has to be idle
    /// before the states reported by relists and by events are compared
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = limits::duration)]
    pub within: Duration,
    /// Serve metrics at this address, such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_address: Option<SocketAddr>,
    /// Judge for these consumers only; may be repeated or separated by commas
    #[arg(
        long = "profile",
        value_name = "PROFILE",
        value_delimiter = ',',
        help_heading = "Verdict"
    )]
    pub profiles: Vec<ProfileChoice>,
    /// The conditions for exit code 1; may be repeated or separated by commas [default: must]
    #[arg(long, value_enum, value_delimiter = ',', help_heading = "Verdict")]
    pub fail_on: Vec<FailOn>,
    /// How verdicts are reported.
    #[command(flatten)]
    pub report: ReportOptions,
    /// Record the watch for `check` and `show`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub history: Option<PathBuf>,
    /// Begin a new history file at this size, such as 64MiB; the last full one is kept as FILE.1
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = limits::size,
        requires = "history",
        help_heading = "Output"
    )]
    pub rotate: Option<u64>,
    /// Replace names, labels, annotations and images by hashes, in all that is printed or written
    #[arg(long, help_heading = "Output")]
    pub redact: bool,
    /// Permit actions that can disturb the node
    #[arg(long, value_enum, value_delimiter = ',')]
    pub allow: Vec<WatchAllowance>,
}

/// An action that can disturb the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WatchAllowance {
    /// Taking events from a kubelet: containerd 1.7 sends each event to one subscriber
    EventTheft,
}

/// A condition that makes a watch fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A broken MUST of a selected profile
    Must,
    /// A broken MUST or SHOULD of a selected profile
    Should,
    /// An event that did not arrive, in any profile
    Missed,
    /// A pod about which relists and events disagree, in any profile
    Disagreement,
}

impl WatchOptions {
    /// Whether the user requests a verdict.
    pub(super) fn wants_a_verdict(&self) -> bool {
        let ReportOptions {
            junit,
            json,
            markdown,
            report_dir,
            ..
        } = &self.report;
        let files = [junit, json, markdown, report_dir, &self.history];
        let writes = files.iter().any(|file| file.is_some());
        self.duration.is_some() || !self.fail_on.is_empty() || writes
    }

    /// The displayed kubelet: the one that takes its state from events, unless only the other one's
    /// profile is selected.
    pub(super) fn followed(&self) -> Profile {
        let judged = self.selection().judged();
        if judged.contains(&Profile::Hint) && !judged.contains(&Profile::Cache) {
            Profile::Hint
        } else {
            Profile::Cache
        }
    }

    pub(super) fn selection(&self) -> Selection {
        Selection {
            profiles: self.profiles.clone(),
            ..Selection::default()
        }
    }

    /// The format of notices; `None` to print only the important ones.
    pub(super) fn output(&self) -> Option<Output> {
        let usual = self.duration.is_none().then_some(Output::Text);
        self.output.or(usual)
    }

    /// The exit code for a report.
    pub(super) fn exit(&self, report: &RunReport) -> Exit {
        let exit = Exit::from_report(report);
        if self.fail_on.is_empty() {
            return exit;
        }
        let fails = self.fail_on.iter().any(|on| on.holds_of(report));
        match exit {
            _ if fails => Exit::NonConformant,
            Exit::NonConformant => Exit::Conformant,
            exit => exit,
        }
    }
}

impl FailOn {
    fn holds_of(self, report: &RunReport) -> bool {
        let is_new = |outcome: &&Outcome| outcome.verdict != Verdict::Known;
        let mut outcomes = report.outcomes.iter().filter(is_new);
        match self {
            Self::Must => outcomes.any(|outcome| outcome.verdict == Verdict::Fail),
            Self::Should => outcomes.any(|outcome| {
                let mut advice = outcome.advice.iter();
                let broken = advice.any(|found| found.level >= Level::Should);
                broken || outcome.verdict == Verdict::Fail
            }),
            Self::Missed => outcomes.any(|outcome| is_broken(outcome, NO_MISSED_EVENT)),
            Self::Disagreement => outcomes.any(|outcome| is_broken(outcome, PLEGS_AGREE)),
        }
    }
}

fn is_broken(outcome: &Outcome, rule: &str) -> bool {
    let found = !outcome.violations.is_empty() || !outcome.advice.is_empty();
    *outcome.id == *rule && found
}
