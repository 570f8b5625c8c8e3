//! [`Settings`]: what one source says, the environment or a file.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Durability, HookSecret};
use crate::error::HostError;
use crate::plugins::LaneChoice;
use crate::sql::EngineName;

/// MiB of memory that a worker needs to do anything at all.
pub(crate) const LEAST_MEMORY: u64 = 64;
/// Too many MiB for that.
pub(crate) const MOST_MEMORY: u64 = 1 << 24;

/// Seconds that a statement may be given: a day.
const LONGEST_SQL: f64 = 86_400.0;

/// One source of settings; what it does not say is `None` or empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// `--udfs`, `UDF_HOST_UDFS` (separated by `:`): folders of sources.
    pub udfs: Vec<PathBuf>,
    /// `--plugins`: folders of prebuilt artifacts.
    pub plugins: Vec<PathBuf>,
    /// `--only`, `UDF_HOST_ONLY`: look in no other folder than the ones given.
    pub only: Option<bool>,
    /// `--no-build`, `UDF_HOST_NO_BUILD`: never start cargo.
    pub no_build: Option<bool>,
    /// `--app-dir`: the state folder of calls that name none.
    pub app_dir: Option<PathBuf>,
    /// `--durability full|os`, `UDF_HOST_DURABILITY`.
    pub durability: Option<Durability>,
    /// `--port`, `UDF_HOST_PORT`: 0 takes a free one.
    pub port: Option<u16>,
    /// `--exit-with-parent`.
    pub exit_with_parent: Option<bool>,
    /// `--agent`, `UDF_HOST_AGENT`: run agent tasks beside serving.
    pub agent: Option<bool>,
    /// `--log`, `UDF_HOST_LOG`: a tracing filter, for example `info` or `host=debug`.
    pub log: Option<String>,
    /// `--body-limit`, `UDF_HOST_BODY_LIMIT`: bytes of a request body.
    pub body_limit: Option<NonZeroUsize>,
    /// `--timeout-ms`, `UDF_HOST_TIMEOUT_MS`: what a call may take unless its `project.toml` says otherwise.
    pub timeout_ms: Option<u64>,
    /// `--in-flight`, `UDF_HOST_IN_FLIGHT`: calls that may run at one time.
    pub in_flight: Option<NonZeroUsize>,
    /// `--no-watch`, `UDF_HOST_NO_WATCH`: serve what is there at the start.
    pub no_watch: Option<bool>,
    /// `--build-timeout`, `UDF_HOST_BUILD_TIMEOUT`: seconds that one step of a build may take.
    pub build_timeout: Option<u32>,
    /// `--max-versions`, `UDF_HOST_MAX_VERSIONS`: builds of one operation that the host may open in its own process.
    pub max_versions: Option<NonZeroUsize>,
    /// `--lane inline|worker`, `UDF_HOST_LANE`: the lane of every operation, whatever its `project.toml` says.
    pub lane: Option<LaneChoice>,
    /// `--workers`, `UDF_HOST_WORKERS`: most worker processes of one project.
    pub workers: Option<NonZeroUsize>,
    /// `--worker-idle`, `UDF_HOST_WORKER_IDLE`: seconds that a worker process stays which is not needed.
    pub worker_idle: Option<u32>,
    /// `--worker-memory`, `UDF_HOST_WORKER_MEMORY`: MiB that a worker process may have.
    pub worker_memory: Option<u64>,
    /// `UDF_HOST_CACHE`: where checked copies of artifacts are kept.
    pub cache_dir: Option<PathBuf>,
    /// `--sql-engine sqlite|duckdb`, `UDF_HOST_SQL_ENGINE`.
    pub sql_engine: Option<EngineName>,
    /// `--sql-timeout`, `UDF_HOST_SQL_TIMEOUT`: seconds that one statement may take.
    pub sql_timeout: Option<f64>,
    /// `DUCKDB_LIB_DIR`: the folder with libduckdb, if it is not the installed one.
    pub duckdb_lib_dir: Option<PathBuf>,
    /// `UDF_HOST_HOOK_SECRET`: what webhooks are signed with. Never a flag: everybody may read those.
    pub hook_secret: Option<HookSecret>,
    /// `UDF_HOST_HOOK_BASE_PATH`: where the runs live that webhooks answer, if not in the usual place.
    pub hook_base_path: Option<String>,
}

impl Settings {
    /// Reads the environment through `get`, so that a test needs no real one.
    ///
    /// # Errors
    /// A variable that is set and does not parse, by name.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<Self, HostError> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let flag = |name: &str| -> Result<Option<bool>, HostError> {
            match get(name).as_deref() {
                None => Ok(None),
                Some("1" | "true" | "yes") => Ok(Some(true)),
                Some("0" | "false" | "no") => Ok(Some(false)),
                Some(other) => Err(bad(name, other, "1 or 0")),
            }
        };
        let durability = match get("UDF_HOST_DURABILITY").as_deref() {
            None => None,
            Some("full") => Some(Durability::Full),
            Some("os") => Some(Durability::Os),
            Some(other) => return Err(bad("UDF_HOST_DURABILITY", other, "`full` or `os`")),
        };
        let paths = get("UDF_HOST_UDFS").unwrap_or_default();
        let settings = Self {
            udfs: paths.split(':').filter(|part| !part.is_empty()).map(PathBuf::from).collect(),
            plugins: Vec::new(),
            only: flag("UDF_HOST_ONLY")?,
            no_build: flag("UDF_HOST_NO_BUILD")?,
            // `OPENFUSED_APP_DIR_STATE` is not read here: the store's own chain does it for each call.
            app_dir: None,
            durability,
            port: number(&get, "UDF_HOST_PORT")?,
            exit_with_parent: None,
            agent: flag("UDF_HOST_AGENT")?,
            log: get("UDF_HOST_LOG"),
            body_limit: number(&get, "UDF_HOST_BODY_LIMIT")?,
            timeout_ms: number(&get, "UDF_HOST_TIMEOUT_MS")?,
            in_flight: number(&get, "UDF_HOST_IN_FLIGHT")?,
            no_watch: flag("UDF_HOST_NO_WATCH")?,
            build_timeout: number(&get, "UDF_HOST_BUILD_TIMEOUT")?,
            max_versions: number(&get, "UDF_HOST_MAX_VERSIONS")?,
            lane: match get("UDF_HOST_LANE").as_deref() {
                None => None,
                Some("inline") => Some(LaneChoice::Inline),
                Some("worker") => Some(LaneChoice::Worker),
                Some(other) => return Err(bad("UDF_HOST_LANE", other, "`inline` or `worker`")),
            },
            workers: number(&get, "UDF_HOST_WORKERS")?,
            worker_idle: number(&get, "UDF_HOST_WORKER_IDLE")?,
            worker_memory: number(&get, "UDF_HOST_WORKER_MEMORY")?,
            cache_dir: get("UDF_HOST_CACHE").map(PathBuf::from),
            sql_engine: get("UDF_HOST_SQL_ENGINE")
                .map(|name| {
                    name.parse()
                        .map_err(|_| bad("UDF_HOST_SQL_ENGINE", &name, "`sqlite` or `duckdb`"))
                })
                .transpose()?,
            sql_timeout: number(&get, "UDF_HOST_SQL_TIMEOUT")?,
            duckdb_lib_dir: get("DUCKDB_LIB_DIR").map(PathBuf::from),
            hook_secret: get("UDF_HOST_HOOK_SECRET").map(HookSecret),
            hook_base_path: get("UDF_HOST_HOOK_BASE_PATH"),
        };
        settings.checked(|key, value, expected| {
            let name = key.to_ascii_uppercase().replace('-', "_");
            bad(&format!("UDF_HOST_{name}"), value, expected)
        })
    }

    /// These, if every number is one that can be used.
    fn checked(self, bad: impl Fn(&str, &str, &str) -> HostError) -> Result<Self, HostError> {
        let memory = LEAST_MEMORY..MOST_MEMORY;
        if self.worker_idle == Some(0) {
            return Err(bad("worker-idle", "0", "a number of seconds from 1 on"));
        }
        if let Some(mib) = self.worker_memory.filter(|mib| !memory.contains(mib)) {
            let expected =
                format!("a number of MiB from {LEAST_MEMORY} on, and below {MOST_MEMORY}");
            return Err(bad("worker-memory", &mib.to_string(), &expected));
        }
        if let Some(seconds) = self.sql_timeout.filter(|seconds| !is_sql_time(*seconds)) {
            let expected = format!("a number of seconds above 0, and at most {LONGEST_SQL}");
            return Err(bad("sql-timeout", &seconds.to_string(), &expected));
        }
        Ok(self)
    }

    /// Reads a settings file (TOML; the keys are the flags' names). A missing file says nothing.
    ///
    /// # Errors
    /// An unreadable file, broken TOML, an unknown key.
    pub fn from_file(path: &Path) -> Result<Self, HostError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(HostError::io("read", path, &error)),
        };
        let fault =
            |message: String| HostError::Config { place: path.display().to_string(), message };
        let settings: Self = toml::from_str(&text)
            .map_err(|error| fault(error.to_string().trim_end().to_owned()))?;
        settings
            .checked(|key, value, expected| fault(format!("`{key}`: `{value}` is not {expected}")))
    }
}

/// Seconds that a statement may take: above zero, and short enough to be waited for.
pub(crate) fn sql_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if is_sql_time(seconds) => Ok(seconds),
        _ => Err("expected a number of seconds, above 0".to_owned()),
    }
}

fn is_sql_time(seconds: f64) -> bool {
    seconds > 0.0 && seconds <= LONGEST_SQL
}

fn number<T: std::str::FromStr>(
    get: &impl Fn(&str) -> Option<String>,
    name: &str,
) -> Result<Option<T>, HostError> {
    get(name).map(|text| text.parse().map_err(|_| bad(name, &text, "a number"))).transpose()
}

fn bad(name: &str, value: &str, expected: &str) -> HostError {
    HostError::Config { place: name.to_owned(), message: format!("`{value}` is not {expected}") }
}
