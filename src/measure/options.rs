//! The options of `measure`, filled by clap.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::MeasureError;
use super::measurement::{Load, Watching};
use crate::drive::PodOptions;
use crate::limits;

/// The options of `measure`.
#[derive(Args, Clone, Debug)]
pub struct MeasureOptions {
    /// The measurement.
    #[command(subcommand)]
    pub command: MeasureCommand,
}

/// A measurement.
#[derive(Clone, Debug, Subcommand)]
pub enum MeasureCommand {
    /// The latency of events, and the rate of changes at which they lag.
    ///
    /// Kills containers one after the other, then ever more at once, and measures the time from a
    /// process's end to the arrival of its STOPPED event.
    Events(EventsOptions),
    /// The costs and delays of a kubelet that relists, and of one that listens to events.
    ///
    /// Watches the same pods by relists every second, by events with relists every five minutes,
    /// and by events alone, both while nothing happens and while containers die.
    Pleg(PlegOptions),
}

// Comments of fields are the help of options.
/// The options of `measure events`.
#[derive(Args, Clone, Debug)]
pub struct EventsOptions {
    /// Numbers of open event streams
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    #[arg(default_value = "1,2,8")]
    #[arg(value_parser = up_to(limits::MEASURED_SUBSCRIBERS))]
    pub subscribers: Vec<usize>,
    /// Number of containers to kill for each figure
    #[arg(long, value_name = "N", default_value = "100")]
    #[arg(value_parser = up_to(limits::MEASURED_CHANGES))]
    pub changes: usize,
    /// Maximum time to raise the rate of changes, for each number of pods and of streams
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = limits::duration)]
    pub ramp: Duration,
    /// The node and the output.
    #[command(flatten)]
    pub node: NodeOptions,
}

// Comments of fields are the help of options.
/// The options of `measure pleg`.
#[derive(Args, Clone, Debug)]
pub struct PlegOptions {
    /// Number of containers in each pod
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = up_to(limits::MEASURED_IN_POD))]
    pub containers: usize,
    /// Let each container write a line of 64 bytes this often [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub write_every: Option<Duration>,
    /// Duration of each way of watching, idle and busy each
    #[arg(long = "for", value_name = "TIME", default_value = "30s")]
    #[arg(value_parser = limits::duration)]
    pub duration: Duration,
    /// The node and the output.
    #[command(flatten)]
    pub node: NodeOptions,
}

// Comments of fields are the help of options.
/// The options of both measurements.
#[derive(Args, Clone, Debug)]
pub struct NodeOptions {
    /// Numbers of pods that the suite creates on the node
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    #[arg(default_value = "10,66,110")]
    #[arg(value_parser = up_to(limits::MEASURED_PODS))]
    pub pods: Vec<usize>,
    /// Write all figures as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with the figures as charts and tables
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Permit actions that can disturb the node
    #[arg(long, value_enum, value_delimiter = ',')]
    pub allow: Vec<MeasureAllowance>,
    /// How pods are made.
    #[command(flatten)]
    pub made: PodOptions,
}

/// An action that can disturb the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MeasureAllowance {
    /// Running on a node with a kubelet, which removes pods that it does not know
    Kubelet,
}

impl PlegOptions {
    /// The approximate size of all container logs after the last cell.
    fn log_bytes(&self) -> u128 {
        /// A line, and the runtime's prefix: time, stream and tag.
        const LINE: u128 = 64 + 45;
        let Some(every) = self.write_every else {
            return 0;
        };
        let pods = ascending(&self.node.pods);
        let windows = pods.len() * Load::ALL.len() * Watching::ALL.len();
        let window = self.duration + limits::EVENT_WAIT;
        let lines = window.as_nanos() * windows as u128 / every.as_nanos();
        let most = pods.last().copied().unwrap_or_default() * self.containers;
        lines * most as u128 * LINE
    }
}

/// Parses the interval at which a container writes.
fn interval(text: &str) -> Result<Duration, String> {
    let every = limits::duration(text)?;
    if every < limits::WRITE_PACE {
        return Err(format!("it must be at least {:?}", limits::WRITE_PACE));
    }
    Ok(every)
}

/// Parses a number from 1 to `most`.
fn up_to(most: u32) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=u64::from(most))
}

impl MeasureOptions {
    pub(super) fn node(&self) -> &NodeOptions {
        match &self.command {
            MeasureCommand::Events(options) => &options.node,
            MeasureCommand::Pleg(options) => &options.node,
        }
    }

    /// Checks the combination of the options.
    pub(super) fn check(&self) -> Result<(), MeasureError> {
        let in_pod = match &self.command {
            MeasureCommand::Events(_) => 1,
            MeasureCommand::Pleg(options) => options.containers,
        };
        let pods = self.node().pods.iter().copied().max().unwrap_or_default();
        if pods * in_pod > limits::MEASURED_CONTAINERS as usize {
            return Err(MeasureError::TooMany { pods, in_pod });
        }
        match &self.command {
            MeasureCommand::Pleg(options) if options.log_bytes() > limits::MEASURED_LOG_BYTES => {
                Err(MeasureError::LongLogs)
            }
            MeasureCommand::Pleg(_) | MeasureCommand::Events(_) => Ok(()),
        }
    }
}

/// The given numbers, sorted and unique: pods and streams are only added.
pub(super) fn ascending(given: &[usize]) -> Vec<usize> {
    let mut numbers = given.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        measure: MeasureOptions,
    }

    fn parse(line: &str) -> Result<MeasureOptions, clap::Error> {
        let line = Line::try_parse_from(line.split(' '))?;
        Ok(line.measure)
    }

    #[test]
    fn numbers_are_lists_with_limits() {
        let MeasureCommand::Events(options) = parse("measure events").unwrap().command else {
            panic!("events were asked for");
        };
        assert_eq!(options.subscribers, [1, 2, 8]);
        assert_eq!(options.node.pods, [10, 66, 110]);
        for wrong in [
            "measure events --pods 0",
            "measure events --pods 501",
            "measure events --subscribers 1,65",
            "measure events --changes 10001",
            "measure pleg --containers 21",
            "measure pleg --for 2h",
            "measure pleg --write-every 9ms",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pods_times_containers_have_a_limit() {
        let check = |line: &str| parse(line).unwrap().check();
        assert!(check("measure pleg --pods 50,10 --containers 20").is_ok());
        let fault = check("measure pleg --pods 10,51 --containers 20").unwrap_err();
        assert!(fault.to_string().contains("51 pods"), "{fault}");
        let logs = "measure pleg --pods 66 --containers 7 --write-every 100ms";
        assert!(check(logs).is_ok());
        let long = check(&format!("{logs} --for 10m")).unwrap_err();
        assert!(matches!(long, MeasureError::LongLogs), "{long}");
    }

    #[test]
    fn numbers_are_measured_once_and_in_order() {
        assert_eq!(ascending(&[66, 10, 66]), [10, 66]);
    }
}
