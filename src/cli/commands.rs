//! Executes the commands.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use clap::ColorChoice;
use clap::builder::StyledStr;
use clap_mangen::Man;
use tokio::runtime::Runtime;

use super::args::{ArchiveFormat, Cli, Command, ConnectionArgs, ExplainArgs, RelayArgs, injected};
use super::{Fault, chain, mistakes, reports, sonobuoy, target};
use crate::case::Tier;
use crate::catalogue::Catalogue;
use crate::cri::{Client, Endpoint};
use crate::doctor::{DoctorOptions, examine};
use crate::drive::{self, RecordingClient};
use crate::escape::printable;
use crate::explore::{ExploreError, ExploreOptions, explore};
use crate::files::{self, Draft, OutputError};
use crate::history::RunId;
use crate::host::{self, FileTree, LogDirectory};
use crate::matrix::MatrixOptions;
use crate::measure::measure;
use crate::model::{self, Behaviour, Relay, ServeError};
use crate::run::{self, Endpoints, Exit, Format, Output, RunError, RunOptions, Target};
use crate::terminal;
use crate::watch::{WatchOptions, watch};
use crate::workload::{Image, imported_name};

pub(super) fn execute(cli: &Cli) -> Result<Exit, Fault> {
    match &cli.command {
        None | Some(Command::Run(_)) => run_cases(cli, None),
        Some(Command::Sonobuoy(args)) => sonobuoy::execute(cli, args),
        Some(Command::Cleanup { run_id, log_dir }) => {
            let run = run_id.as_deref().map(RunId::from);
            cleanup(
                &connected(cli, &cli.connection)?,
                run.as_ref(),
                log_dir.as_deref(),
            )
        }
        Some(Command::Image {
            output,
            format,
            tag,
            suite,
        }) => image(output, *format, tag, *suite),
        Some(Command::Check(options)) => Ok(run::check(options)?),
        Some(Command::Show {
            history,
            filters,
            perfetto: Some(perfetto),
        }) => print(run::trace(history, filters, perfetto)?.as_bytes()),
        Some(Command::Show {
            history, filters, ..
        }) => show(history, filters),
        Some(Command::Explain(args)) => explain(cli, args),
        Some(Command::Watch(options)) => watch_node(cli, options),
        Some(Command::Measure(options)) => Ok(measure(&target(cli)?, options)?),
        Some(Command::Doctor(options)) => diagnose(cli, options),
        Some(Command::Model { listen }) => serve_model(listen, target::behaviour(&cli.connection)),
        Some(Command::Relay(args)) => serve_relay(cli, args),
        Some(Command::Defects) => print_wrapped(&reports::defects()?),
        Some(Command::Matrix(options)) => try_defects(cli, options),
        Some(Command::Explore(options)) => take_walks(cli, options),
        Some(Command::Compare(args)) => {
            let (text, exit) = reports::compare(args)?;
            match args.format {
                Output::Text => print_wrapped(&text),
                Output::Json => print(text.as_bytes()),
            }
            .map(|_| exit)
        }
        Some(Command::Gate(args)) => {
            let (text, exit) = reports::gate(args)?;
            print_wrapped(&text).map(|_| exit)
        }
        Some(Command::MatrixReport(args)) => print(reports::matrix_report(args)?.as_bytes()),
        Some(Command::Schema { of }) => print(reports::schema(*of).as_bytes()),
        Some(Command::Growth { samples }) => print(reports::growth(samples)?.as_bytes()),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            let mut cli = Cli::completed(&catalogue(None)?);
            clap_complete::generate(*shell, &mut cli, "cri-event-conformance", &mut script);
            // clap_complete 4.6 writes the hyphens of the name in two ways, so that bash would
            // complete no command.
            let script = String::from_utf8_lossy(&script);
            let name = "cri__subcmd__event__subcmd__conformance";
            print(script.replace(name, "cri__event__conformance").as_bytes())
        }
        Some(Command::Man { output_dir }) => manual(output_dir),
    }
}

/// Runs the selected cases; writes all reports to `reports`, if given.
pub(super) fn run_cases(cli: &Cli, reports: Option<&Path>) -> Result<Exit, Fault> {
    let mut options = cli.base_run_options();
    if let Some(reports) = reports {
        options.report.report_dir = Some(reports.to_owned());
    }
    let cases = run::read_cases(options.cases.as_deref())?;
    let selection = &mut options.selection;
    mistakes::refuse_commands(&selection.filters, &cases)?;
    if let Some(report) = &options.rerun_failed {
        selection.only = Some(run::failed_in(report, &cases).map_err(RunError::from)?);
    }
    if options.list {
        let mut listed = Vec::new();
        let requirements = run::read_requirements(options.cases.as_deref())?;
        let format = options.report.look.format;
        run::list(cases, &requirements, selection, format, &mut listed)?;
        return match format {
            Format::Json => print(&listed),
            _ => print_wrapped(&String::from_utf8_lossy(&listed)),
        };
    }
    run::validate(&options, &cases)?;
    options.target = target(cli)?;
    Ok(run::run(&options, cases)?)
}

/// Watches the node until the configured end, or a signal.
pub(super) fn watch_node(cli: &Cli, options: &WatchOptions) -> Result<Exit, Fault> {
    let target = target(cli)?;
    if matches!(target, Target::Model { .. }) {
        return Err(RunError::Unserved.into());
    }
    Ok(watch(&target, options)?)
}

fn diagnose(cli: &Cli, options: &DoctorOptions) -> Result<Exit, Fault> {
    let endpoints = match connected(cli, &cli.connection) {
        // That no usual socket can be used is a finding, and not the user's mistake.
        Err(fault) if fault.exit == Exit::Undecided => Err(fault.in_one_line()),
        endpoints => Ok(endpoints?),
    };
    let found = examine(endpoints.as_ref().map_err(String::as_str), options)?;
    let printed = if options.json || options.format == Output::Json {
        print(reports::diagnosis(&found).as_bytes())
    } else {
        print_wrapped(&found.text())
    };
    printed.map(|_| found.exit())
}

fn take_walks(cli: &Cli, options: &ExploreOptions) -> Result<Exit, Fault> {
    let target = target(cli)?;
    let requirements = run::read_requirements(None)?;
    match explore(options, &target, &requirements, &mut terminal::Output) {
        Ok(explored) => Ok(explored.exit()),
        Err(ExploreError::Run(fault)) => Err(fault.into()),
        Err(fault @ ExploreError::Expectations { .. }) => Err(Fault::usage(fault)),
        Err(fault) => Err(Fault::undecided(chain(&fault))),
    }
}

fn catalogue(cases: Option<&Path>) -> Result<Catalogue, Fault> {
    let requirements = run::read_requirements(cases)?;
    let cases = run::read_cases(cases)?;
    Ok(Catalogue::new(
        cases,
        requirements,
        reports::load_defects()?,
    ))
}

fn explain(cli: &Cli, args: &ExplainArgs) -> Result<Exit, Fault> {
    let cases = args.cases.as_deref().or(cli.run.cases.as_deref());
    let catalogue = catalogue(cases)?;
    if let Some(directory) = &args.pages {
        return write_pages(&catalogue, directory);
    }
    let id = args.id.as_deref().unwrap_or_default();
    if args.issue {
        return print(catalogue.issue(id).map_err(Fault::usage)?.as_bytes());
    }
    let columns = terminal::columns().unwrap_or(usize::MAX);
    print_wrapped(&catalogue.explain(id, columns).map_err(Fault::usage)?)
}

fn write_pages(catalogue: &Catalogue, directory: &Path) -> Result<Exit, Fault> {
    files::create_directory("pages", directory)?;
    for page in catalogue.pages() {
        let draft = Draft::open("page", &directory.join(page.file))?;
        draft.complete(|file| file.write_all(page.text.as_bytes()))?;
    }
    Ok(Exit::Conformant)
}

/// The runtime under test; prints a note if it was chosen by default.
fn target(cli: &Cli) -> Result<Target, Fault> {
    target::require_date(host::now())?;
    resolved(cli, &cli.connection)
}

fn resolved(cli: &Cli, connection: &ConnectionArgs) -> Result<Target, Fault> {
    // Only commands that read look for the host in a pod: what others create, such as logs, would
    // have another path there.
    let (host, is_named_later) = match &cli.command {
        Some(Command::Doctor(options)) => (Some(options.tree()), true),
        Some(Command::Watch(_)) => (Some(FileTree::host()), false),
        _ => (None, false),
    };
    let timeout_scale = cli.options_of_run().drive.timeout_scale;
    let (target, note) = target::resolve(connection, timeout_scale, host.as_ref())?;
    if let Some(note) = note.filter(|_| !is_named_later) {
        terminal::say(&note);
    }
    Ok(target)
}

/// The endpoints of a runtime that is already running.
fn connected(cli: &Cli, connection: &ConnectionArgs) -> Result<Endpoints, Fault> {
    match resolved(cli, connection)? {
        Target::Runtime(endpoints) => Ok(endpoints),
        Target::Model { .. } | Target::Relayed { .. } => Err(RunError::Unserved.into()),
    }
}

fn serve_model(listen: &str, behaviour: Behaviour) -> Result<Exit, Fault> {
    let endpoint = socket(listen)?;
    target::require_date(host::now())?;
    served(model::serve(&endpoint, behaviour))
}

fn serve_relay(cli: &Cli, args: &RelayArgs) -> Result<Exit, Fault> {
    let endpoint = socket(&args.listen)?;
    let mut connection = cli.connection.clone();
    let mut defects: Vec<_> = connection.inject.drain(..).flatten().collect();
    for defect in connection.defect.drain(..) {
        let refused = |fault| Fault::usage(format!("--defect {}: {fault}", defect.name));
        defects.extend(injected(defect.name).map_err(refused)?);
    }
    let real = connected(cli, &connection)?;
    if [&real.runtime, &real.images].contains(&&endpoint) {
        let fault = format!("{endpoint} is the runtime's own: choose another path for --listen");
        return Err(Fault::usage(fault));
    }
    let relay = Relay::new(real.runtime, real.images, real.deadline, &defects);
    served(relay.serve(&endpoint, args.faulty()))
}

fn socket(listen: &str) -> Result<Endpoint, Fault> {
    listen.parse().map_err(|fault| Fault::usage(chain(&fault)))
}

fn served(ended: Result<(), ServeError>) -> Result<Exit, Fault> {
    match ended {
        Ok(()) => Ok(Exit::Conformant),
        Err(fault @ ServeError::Listen(_)) => Err(Fault::usage(chain(&fault))),
        Err(fault) => Err(Fault::undecided(chain(&fault))),
    }
}

/// Tries the defects of the model, or those that a relay can give to a real runtime.
fn try_defects(cli: &Cli, options: &MatrixOptions) -> Result<Exit, Fault> {
    if let Some(defect) = cli.connection.defect.first() {
        let name = defect.name;
        let fault = format!("matrix tries all defects; for this one alone: matrix {name}");
        return Err(Fault::usage(fault));
    }
    let mut options = options.clone();
    options.cases = options.cases.or(cli.run.cases.clone());
    let cases = run::read_cases(options.cases.as_deref())?;
    let endpoints = match cli.connection.runtime_endpoint {
        Some(_) => relayed(cli)?,
        None => None,
    };
    reports::matrix(&options, endpoints, &cases)
}

/// The endpoints of the runtime behind a relay; `None` for the model.
fn relayed(cli: &Cli) -> Result<Option<Endpoints>, Fault> {
    match target(cli)? {
        Target::Runtime(endpoints) | Target::Relayed { endpoints, .. } => Ok(Some(endpoints)),
        Target::Model { .. } => Ok(None),
    }
}

impl Cli {
    pub fn run_options(&self) -> Result<RunOptions, Fault> {
        Ok(RunOptions {
            target: target(self)?,
            ..self.base_run_options()
        })
    }

    /// The options of a run, given to `run` or without a command.
    fn options_of_run(&self) -> &RunOptions {
        match &self.command {
            Some(Command::Run(options)) => options,
            Some(Command::Sonobuoy(args)) => &args.run,
            _ => &self.run,
        }
    }

    /// The options of a run, without its target.
    fn base_run_options(&self) -> RunOptions {
        let mut options = self.options_of_run().clone();
        // The failed cases may be of any tier.
        if options.rerun_failed.is_none() {
            options.selection.tier.get_or_insert(Tier::Extended);
        }
        options
    }

    /// Applies `--color` to diagnostics, too.
    pub(super) fn choose_color(&self) {
        let color = match &self.command {
            Some(Command::Check(options)) => options.report.color,
            _ => self.options_of_run().report.color,
        };
        match color {
            ColorChoice::Auto => {}
            ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
            ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
        }
    }
}

fn cleanup(endpoints: &Endpoints, run: Option<&RunId>, logs: Option<&Path>) -> Result<Exit, Fault> {
    let undecided = |fault: &dyn std::error::Error| Fault::undecided(chain(fault));
    let directories =
        LogDirectory::found(logs).map_err(|fault| Fault::usage(format!("--log-dir: {fault}")))?;
    let runtime = Runtime::new().map_err(|fault| undecided(&fault))?;
    let (swept, any) = runtime.block_on(async {
        let client =
            Client::connect(&endpoints.runtime, &endpoints.images, endpoints.deadline).await;
        let client = client.map_err(|fault| undecided(&fault))?;
        let caller = RecordingClient::new(client);
        let (lines, mut received) = tokio::sync::mpsc::unbounded_channel();
        let place = (&caller, endpoints.runtime.socket());
        let sweeping = drive::sweep_host(place, run, directories, lines);
        let printing = async {
            let (mut any, mut printed) = (false, Ok(Exit::Conformant));
            while let Some(line) = received.recv().await {
                any = true;
                printed = printed.and(print_wrapped(&(printable(&line) + "\n")));
            }
            printed.map(|_| any)
        };
        let (swept, any) = tokio::join!(sweeping, printing);
        Ok::<_, Fault>((swept.map_err(|fault| undecided(&fault))?, any?))
    })?;
    match &swept.failures[..] {
        [] if any => Ok(Exit::Conformant),
        [] => {
            let of_run = run.map(|run| format!(" of run {}", printable(run.as_str())));
            print(format!("nothing to remove{}\n", of_run.unwrap_or_default()).as_bytes())
        }
        failures => Err(Fault::undecided(format!(
            "not removed:\n  {}\nrestart the runtime, then run this again",
            failures.join("\n  ")
        ))),
    }
}

fn image(
    output: &Path,
    format: ArchiveFormat,
    tags: &[String],
    suite: bool,
) -> Result<Exit, Fault> {
    let (image, name) = if suite {
        suite_image()?
    } else {
        (Image::build(&BTreeMap::new()), imported_name())
    };
    let tags = if tags.is_empty() {
        vec![name]
    } else {
        tags.to_owned()
    };
    let written = Draft::open("image", output).and_then(|draft| {
        draft.complete(|out| match format {
            ArchiveFormat::OciArchive => image.write_oci_archive(&tags, out),
            ArchiveFormat::DockerArchive => image.write_docker_archive(&tags, out),
        })
    });
    written.map_err(Fault::usage)?;
    print(format!("{}: {}\n", output.display(), tags.join(", ")).as_bytes())
}

/// The image of this program, and its name.
fn suite_image() -> Result<(Image, String), Fault> {
    if cfg!(not(target_feature = "crt-static")) {
        return Err(Fault::usage(
            "this program is linked dynamically, and its image would lack the libraries: use the one \
             of a release, or build it with RUSTFLAGS='-C target-feature=+crt-static'",
        ));
    }
    let program = std::fs::read("/proc/self/exe")
        .map_err(|fault| Fault::usage(format!("read this program as /proc/self/exe: {fault}")))?;
    let name = concat!(
        "localhost/",
        env!("CARGO_PKG_NAME"),
        ":",
        env!("CARGO_PKG_VERSION")
    );
    Ok((Image::of_suite(&program), name.to_owned()))
}

/// Writes the manual pages to a directory, which is created if it is missing.
fn manual(directory: &Path) -> Result<Exit, Fault> {
    fn write(command: &clap::Command, directory: &Path) -> Result<(), OutputError> {
        let shown = |inner: &&clap::Command| !inner.is_hide_set();
        for inner in command.get_subcommands().filter(shown) {
            write(inner, directory)?;
        }
        let page = Man::new(command.clone());
        let draft = Draft::open("manual page", &directory.join(page.get_filename()))?;
        draft.complete(|out| page.render(out))
    }
    files::create_directory("manual pages", directory)?;
    let mut command = Cli::shown();
    command.build();
    write(&command, directory)?;
    Ok(Exit::Conformant)
}

fn show(history: &Path, filters: &[String]) -> Result<Exit, Fault> {
    let (text, damage) = run::timeline(history, filters)?;
    let printed = print_wrapped(&text)?;
    damage.map_or(Ok(printed), |damage| Err(RunError::from(damage).into()))
}

pub(super) fn print_help(help: &StyledStr) -> Result<Exit, Fault> {
    printed(terminal::print_styled(&help.ansi().to_string()))
}

/// Prints a text for people, wrapped on a terminal.
fn print_wrapped(text: &str) -> Result<Exit, Fault> {
    printed(terminal::print_wrapped(text))
}

fn print(text: &[u8]) -> Result<Exit, Fault> {
    printed(terminal::print(&String::from_utf8_lossy(text)))
}

/// The result of printing; a closed pipe, as after `| head`, is no error.
fn printed(result: io::Result<()>) -> Result<Exit, Fault> {
    match result {
        Ok(()) => Ok(Exit::Conformant),
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Conformant),
        Err(fault) => Err(Fault::undecided(format!("print: {fault}"))),
    }
}
