//! The command line: one file for each command.
//!
//! A command is a struct of its arguments with a `run`; to add one, write its file and one arm of [`Command`].
//! Options of the host stand before or after the command; what they say goes into one [`Config`].

mod agent;
mod build;
mod check;
mod describe;
mod doctor;
mod exec;
mod exit;
mod figures;
mod given;
mod inbox;
mod list;
mod new;
mod operation;
mod options;
mod output;
mod pack;
mod probe;
mod progress;
mod remote;
mod run_feedback;
mod selection;
mod serve;
mod sql;
mod visible;
mod widget;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use self::exit::Exit;
use self::options::{HostOptions, ServeOptions};
use crate::config::Config;
use crate::error::HostError;
use crate::sql::engine::duckdb;
use crate::{logging, program, tether, worker};

/// Runs operations that lie as Rust crates in a folder: over HTTP on this machine, and from here.
#[derive(Debug, Parser)]
#[command(name = "udf-host", version, max_term_width = 100, after_help = exit::ALL)]
struct Cli {
    #[command(flatten)]
    host: HostOptions,
    #[command(flatten)]
    serve: ServeOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve operations over HTTP (the same as `serve`).
    Dev(Dev),
    Serve(serve::Serve),
    List(list::List),
    Describe(describe::Describe),
    Exec(exec::Exec),
    Sql(sql::Sql),
    Widget(widget::Widget),
    Inbox(inbox::Inbox),
    New(new::New),
    Build(build::Build),
    Probe(probe::Probe),
    Pack(pack::Pack),
    Check(check::Check),
    Doctor(doctor::Doctor),
    RunFeedback(run_feedback::RunFeedback),
    Agent(agent::Agent),
    Worker(Worker),
    Tether(Tether),
    SqlEngine(SqlEngine),
}

/// Runs SQL statements for the host that started it.
#[derive(Debug, Args)]
#[command(hide = true)]
struct SqlEngine {
    /// Bytes that the database may take.
    memory: usize,
    /// The library of the engine.
    library: PathBuf,
}

/// Runs a program that ends with the host.
#[derive(Debug, Args)]
#[command(hide = true)]
struct Tether {
    /// The process id of the host.
    host: u32,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Runs operations for the host that started it.
#[derive(Debug, Args)]
#[command(hide = true)]
struct Worker {
    /// Whose operations; for listings of processes.
    #[arg(value_name = "PROJECT", default_value = "")]
    project: String,
}

/// Serve operations over HTTP.
#[derive(Debug, Args)]
struct Dev {
    #[command(flatten)]
    options: ServeOptions,
    #[command(subcommand)]
    command: DevCommand,
}

#[derive(Debug, Subcommand)]
enum DevCommand {
    Serve(serve::Serve),
}

impl Command {
    /// `dev serve` is `serve`, wherever its options stand.
    fn plain(self) -> Self {
        match self {
            Self::Dev(Dev { options, command: DevCommand::Serve(serve) }) => {
                Self::Serve(serve::Serve { options: options.or(serve.options) })
            }
            other => other,
        }
    }
}

/// [`run`] for `udf-host` itself, which starts its own program again where it does not trust what it opens.
///
/// # Errors
/// As [`run`].
pub fn run_as_program(arguments: impl IntoIterator<Item = OsString>) -> Result<Exit, HostError> {
    program::this_is_the_host();
    run(arguments)
}

/// Runs the command that `arguments` (the program's name first) ask for.
///
/// # Errors
/// Whatever the command could not do; [`Exit::of`] says which exit code that is.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<Exit, HostError> {
    let parsed = Cli::command().try_get_matches_from(arguments).and_then(|matches| {
        let given = given::options(&Cli::command(), &matches);
        let cli = Cli::from_arg_matches(&matches);
        Ok((cli.map_err(|error| error.format(&mut Cli::command()))?, given))
    });
    let (cli, given) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Also `--help` and `--version`, which go to standard output. A closed terminal has nobody to tell.
            let _closed = error.print();
            return Ok(if error.use_stderr() { Exit::Usage } else { Exit::Done });
        }
    };
    let command = cli.command.plain();
    if let Command::Worker(Worker { project: _shown }) = command {
        match worker::run()? {}
    }
    if let Command::Tether(Tether { host, words }) = &command {
        let (program, arguments) =
            words.split_first().unwrap_or_else(|| unreachable!("it is required"));
        let ran = tether::run(*host, program, arguments);
        let code = ran.map_err(|error| HostError::Internal {
            message: "nothing can be started that ends with the host".to_owned(),
            detail: error.to_string(),
        })?;
        std::process::exit(code);
    }
    if let Command::SqlEngine(SqlEngine { memory, library }) = &command {
        let served = duckdb::serve(library, *memory);
        return served.map(|()| Exit::Done).map_err(|error| HostError::Internal {
            message: "this is no process of the duckdb engine".to_owned(),
            detail: error.to_string(),
        });
    }
    if let Command::Serve(serve) = command {
        let options = cli.serve.or(serve.options);
        return serve::run(Config::from_process(cli.host.settings(options))?);
    }
    if let Some(option) = cli.serve.first_given() {
        return Err(HostError::BadRequest {
            message: format!("`{option}` is an option of `serve` alone"),
        });
    }
    let config = Config::from_process(cli.host.settings(ServeOptions::default()))?;
    logging::start_command(config.log.as_deref())?;
    match command {
        Command::Dev(_)
        | Command::Serve(_)
        | Command::Worker(_)
        | Command::Tether(_)
        | Command::SqlEngine(_) => {
            unreachable!("they have been served above")
        }
        Command::List(list) => list.run(config),
        Command::Describe(describe) => describe.run(config),
        Command::Exec(exec) => exec.run(config),
        Command::Sql(sql) => sql.run(config),
        Command::Widget(widget) => widget.run(config),
        Command::Inbox(inbox) => inbox.run(config, &given),
        Command::New(new) => new.run(&config),
        Command::Build(build) => build.run(config),
        Command::Probe(probe) => probe.run(&config),
        Command::Pack(pack) => pack.run(config),
        Command::Check(check) => check.run(config),
        Command::Doctor(doctor) => doctor.run(config),
        Command::RunFeedback(run_feedback) => run_feedback.run(config),
        Command::Agent(agent) => agent.run(config),
    }
}

#[cfg(test)]
mod tests;
