//! Options that say how the host runs. Each one may stand before or after the command.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::config::{Durability, LEAST_MEMORY, MOST_MEMORY, Settings, sql_seconds};
use crate::plugins::LaneChoice;
use crate::sql::EngineName;

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Host options")]
pub(super) struct HostOptions {
    /// A folder of operations, `<project>/<op>/` in it [repeatable; env: UDF_HOST_UDFS]
    #[arg(long, global = true, value_name = "DIR")]
    udfs: Vec<PathBuf>,
    /// A folder of prebuilt operations, as `udf-host pack` writes it [repeatable]
    #[arg(long, global = true, value_name = "DIR")]
    plugins: Vec<PathBuf>,
    /// Look in no other folder than those [env: UDF_HOST_ONLY]
    #[arg(long, global = true)]
    only: bool,
    /// Never start cargo; what is not built cannot be called [env: UDF_HOST_NO_BUILD]
    #[arg(long, global = true)]
    no_build: bool,
    /// What one step of a build may take, a build script or a compiler, in seconds [default: 600]
    /// [env: UDF_HOST_BUILD_TIMEOUT]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    build_timeout: Option<u32>,
    /// The folder of records and transcripts [env: OPENFUSED_APP_DIR_STATE] [default: ~/.openfused/app]
    #[arg(long, global = true, value_name = "DIR")]
    app_dir: Option<PathBuf>,
    /// `full`: an acknowledged write survives a power cut; `os`: a crash of the host [env: UDF_HOST_DURABILITY]
    #[arg(long, global = true, value_name = "full|os", value_parser = durability)]
    durability: Option<Durability>,
    /// What a call may take, in milliseconds [default: 30000] [env: UDF_HOST_TIMEOUT_MS]
    #[arg(long, global = true, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: Option<u64>,
    /// Calls that may run at one time [default: 256] [env: UDF_HOST_IN_FLIGHT]
    #[arg(long, global = true, value_name = "N")]
    in_flight: Option<NonZeroUsize>,
    /// Where operations run, whatever their project.toml says: `inline` or `worker` [env: UDF_HOST_LANE]
    #[arg(long, global = true, value_name = "LANE", hide_possible_values = true)]
    lane: Option<LaneChoice>,
    /// Most worker processes of one project [default: 4] [env: UDF_HOST_WORKERS]
    #[arg(long, global = true, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// How long a worker process stays that is not needed, in seconds [default: 30] [env: UDF_HOST_WORKER_IDLE]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    worker_idle: Option<u32>,
    /// Memory that a worker process may have, in MiB [default: 1024] [env: UDF_HOST_WORKER_MEMORY]
    #[arg(long, global = true, value_name = "MIB", value_parser = clap::value_parser!(u64).range(LEAST_MEMORY..MOST_MEMORY))]
    worker_memory: Option<u64>,
    /// What runs SQL: `sqlite` or `duckdb` [default: sqlite] [env: UDF_HOST_SQL_ENGINE]
    #[arg(long, global = true, value_name = "ENGINE")]
    sql_engine: Option<EngineName>,
    /// What one SQL statement may take, in seconds [default: 5] [env: UDF_HOST_SQL_TIMEOUT]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = sql_seconds)]
    sql_timeout: Option<f64>,
    /// Log level: off, error, warn, info, debug or trace; also directives as `info,host=debug` [env: UDF_HOST_LOG]
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<String>,
}

/// Options of `serve`; also accepted before `dev serve`, since some clients can only put them there.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Options of serve")]
pub(super) struct ServeOptions {
    /// The port of 127.0.0.1 (and of ::1); 0 takes a free one [default: 0] [env: UDF_HOST_PORT]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// End when the process that started this one does (also when a pipe on standard input closes)
    #[arg(long)]
    exit_with_parent: bool,
    /// Serve what is there at the start; do not watch the folders for changes [env: UDF_HOST_NO_WATCH]
    #[arg(long)]
    no_watch: bool,
    /// Builds of one operation that the host opens in its own process; the next ones run in a worker [default: 64]
    /// [env: UDF_HOST_MAX_VERSIONS]
    #[arg(long, value_name = "N")]
    max_versions: Option<NonZeroUsize>,
    /// The most bytes of a request body [default: 2097152] [env: UDF_HOST_BODY_LIMIT]
    #[arg(long, value_name = "BYTES", alias = "body-limit")]
    max_body: Option<NonZeroUsize>,
    /// Run agent tasks as well, as `agent serve` does [env: UDF_HOST_AGENT; the model's: UDF_HOST_LLM_PROVIDER,
    /// UDF_HOST_LLM_MODEL, UDF_HOST_LLM_BASE_URL, UDF_HOST_LLM_KEY]
    #[arg(long)]
    agent: bool,
}

impl ServeOptions {
    /// Both, where the ones of `later` win.
    pub(super) fn or(self, later: Self) -> Self {
        Self {
            port: later.port.or(self.port),
            exit_with_parent: later.exit_with_parent || self.exit_with_parent,
            no_watch: later.no_watch || self.no_watch,
            max_versions: later.max_versions.or(self.max_versions),
            max_body: later.max_body.or(self.max_body),
            agent: later.agent || self.agent,
        }
    }

    /// The name of an option that was given, if one was.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        [
            (self.port.is_some(), "--port"),
            (self.exit_with_parent, "--exit-with-parent"),
            (self.no_watch, "--no-watch"),
            (self.max_versions.is_some(), "--max-versions"),
            (self.max_body.is_some(), "--max-body"),
            (self.agent, "--agent"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

impl HostOptions {
    /// What the flags say, as the strongest source of the configuration.
    pub(super) fn settings(self, serve: ServeOptions) -> Settings {
        Settings {
            udfs: self.udfs,
            plugins: self.plugins,
            only: self.only.then_some(true),
            no_build: self.no_build.then_some(true),
            app_dir: self.app_dir,
            durability: self.durability,
            timeout_ms: self.timeout_ms,
            build_timeout: self.build_timeout,
            in_flight: self.in_flight,
            lane: self.lane,
            workers: self.workers,
            worker_idle: self.worker_idle,
            worker_memory: self.worker_memory,
            log: self.log,
            sql_engine: self.sql_engine,
            sql_timeout: self.sql_timeout,
            port: serve.port,
            exit_with_parent: serve.exit_with_parent.then_some(true),
            no_watch: serve.no_watch.then_some(true),
            max_versions: serve.max_versions,
            body_limit: serve.max_body,
            agent: serve.agent.then_some(true),
            ..Settings::default()
        }
    }
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "full" => Ok(Durability::Full),
        "os" => Ok(Durability::Os),
        _ => Err("expected `full` or `os`".to_owned()),
    }
}
