//! What the host is told: flags, then environment, then file, into one [`Config`].
//!
//! Each source is a [`Settings`] in which everything is optional; [`Config::resolve`] takes each value from the
//! first source that has it.

mod settings;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::error::HostError;
use crate::plugins::build::Target;
use crate::plugins::{LaneChoice, MOST_VERSIONS};
use crate::sql::{EngineName, Limits};

pub use settings::Settings;
pub(crate) use settings::{LEAST_MEMORY, MOST_MEMORY, sql_seconds};

/// How safe an acknowledged write is; `core-store` documents both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Survives a power cut: acknowledged after the sync.
    #[default]
    Full,
    /// Survives a crash of the host, not of the machine.
    Os,
}

/// What the host runs with.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Folders of sources that were named, in order; the implied ones come after them (see [`Config::only`]).
    pub udfs: Vec<PathBuf>,
    /// Folders of prebuilt artifacts that were named, in order.
    pub plugins: Vec<PathBuf>,
    /// Look in no other folder than the ones named.
    pub only: bool,
    /// Never start cargo: an operation that is not built, or is stale, is refused with that reason.
    pub no_build: bool,
    /// The state folder of calls that name none; absent means the chain of the app-store contract §2.
    pub app_dir: Option<PathBuf>,
    /// How safe an acknowledged write is.
    pub durability: Durability,
    /// The port to bind; 0 takes a free one.
    pub port: u16,
    /// End when the parent process does.
    pub exit_with_parent: bool,
    /// Whether agent tasks run beside serving.
    pub agent: bool,
    /// Answer requests of operations with "no network", and send none. `udf-host check` wants that.
    pub offline: bool,
    /// The tracing filter, if one was given.
    pub log: Option<String>,
    /// The most bytes of a request body.
    pub body_limit: usize,
    /// What a call may take unless its `project.toml` says otherwise.
    pub timeout: Duration,
    /// Calls that may run at one time; the next one is told to come back.
    pub in_flight: usize,
    /// Look again whenever something in the folders changes. Only a host that serves is told to.
    pub watch: bool,
    /// Never do that.
    pub no_watch: bool,
    /// What one step of a build may take: one crate's build script or compiler.
    pub build_timeout: Duration,
    /// How many builds of one operation the host opens in its own process; the next ones run in a worker.
    pub max_versions: usize,
    /// The lane of every operation, if one is forced.
    pub lane: Option<LaneChoice>,
    /// Most worker processes of one project.
    pub workers: usize,
    /// How long a worker process beyond the first of its project stays when it has nothing to do; the first one twenty
    /// times as long.
    pub worker_idle: Duration,
    /// Bytes of memory that a worker process may have.
    pub worker_memory: u64,
    /// Where checked copies of artifacts are kept; made with mode 0700.
    pub cache_dir: PathBuf,
    /// What runs statements.
    pub sql_engine: EngineName,
    /// What one statement may take in the engine.
    pub sql_timeout: Duration,
    /// The folder with libduckdb, if it is not the installed one.
    pub duckdb_lib_dir: Option<PathBuf>,
    /// What webhooks are signed with; without it there is no route for them.
    pub hook_secret: Option<HookSecret>,
    /// Where the runs live that webhooks answer, if not in the usual place.
    pub hook_base_path: Option<String>,
}

/// A secret that two parties share. `Debug` shows nothing of it, so that no log can.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct HookSecret(String);

impl HookSecret {
    /// The secret; it goes into signatures only.
    pub(crate) fn reveal(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<String> for HookSecret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for HookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HookSecret(…)")
    }
}

impl Config {
    /// Takes each value from the first of `sources` (strongest first) that has it.
    #[must_use]
    pub fn resolve(
        sources: &[Settings],
        home: Option<&Path>,
        xdg_cache: Option<&Path>,
        target: Option<&Path>,
    ) -> Self {
        fn first<T>(sources: &[Settings], pick: impl Fn(&Settings) -> Option<T>) -> Option<T> {
            sources.iter().find_map(pick)
        }
        // Search folders add up, strongest source first: a later one never hides that an earlier one was named.
        let udfs = sources.iter().flat_map(|source| source.udfs.clone()).collect();
        let plugins = sources.iter().flat_map(|source| source.plugins.clone()).collect();
        let cache_dir = first(sources, |s| s.cache_dir.clone())
            .unwrap_or_else(|| default_cache(home, xdg_cache, target));
        // Copies in it are opened later, perhaps by a process that stands elsewhere by then.
        let cache_dir = std::path::absolute(&cache_dir).unwrap_or(cache_dir);
        Self {
            udfs,
            plugins,
            only: first(sources, |s| s.only).unwrap_or(false),
            no_build: first(sources, |s| s.no_build).unwrap_or(false),
            // Empty means absent, as everywhere with this folder.
            app_dir: first(sources, |s| {
                s.app_dir.clone().filter(|dir| !dir.as_os_str().is_empty())
            }),
            durability: first(sources, |s| s.durability).unwrap_or_default(),
            port: first(sources, |s| s.port).unwrap_or(0),
            exit_with_parent: first(sources, |s| s.exit_with_parent).unwrap_or(false),
            agent: first(sources, |s| s.agent).unwrap_or(false),
            log: first(sources, |s| s.log.clone()),
            body_limit: first(sources, |s| s.body_limit).map_or(2 << 20, NonZeroUsize::get),
            timeout: Duration::from_millis(first(sources, |s| s.timeout_ms).unwrap_or(30_000)),
            in_flight: first(sources, |s| s.in_flight).map_or(256, NonZeroUsize::get),
            offline: false,
            watch: false,
            no_watch: first(sources, |s| s.no_watch).unwrap_or(false),
            build_timeout: Duration::from_secs(
                first(sources, |s| s.build_timeout).unwrap_or(600).max(1).into(),
            ),
            max_versions: first(sources, |s| s.max_versions)
                .map_or(MOST_VERSIONS, NonZeroUsize::get),
            lane: first(sources, |s| s.lane),
            workers: first(sources, |s| s.workers).map_or(4, NonZeroUsize::get),
            worker_idle: Duration::from_secs(
                first(sources, |s| s.worker_idle).unwrap_or(30).max(1).into(),
            ),
            worker_memory: first(sources, |s| s.worker_memory).unwrap_or(1024) << 20,
            cache_dir,
            sql_engine: first(sources, |s| s.sql_engine).unwrap_or_default(),
            sql_timeout: first(sources, |s| s.sql_timeout)
                // Every source has looked at it.
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .filter(|time| !time.is_zero())
                .unwrap_or(Limits::default().time),
            duckdb_lib_dir: first(sources, |s| s.duckdb_lib_dir.clone()),
            hook_secret: first(sources, |s| s.hook_secret.clone().filter(|s| !s.0.is_empty())),
            hook_base_path: first(sources, |s| s.hook_base_path.clone()),
        }
    }

    /// `flags`, then this process's environment, then `$XDG_CONFIG_HOME/udf-host/config.toml` (else below
    /// `~/.config`).
    ///
    /// # Errors
    /// A variable or file that does not parse.
    pub fn from_process(flags: Settings) -> Result<Self, HostError> {
        let var = |name: &str| {
            std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        let home = var("HOME");
        let folder =
            var("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
        let env = Settings::from_env(|name| std::env::var(name).ok())?;
        let file = match folder {
            Some(folder) => Settings::from_file(&folder.join("udf-host/config.toml"))?,
            None => Settings::default(),
        };
        let xdg_cache = var("XDG_CACHE_HOME");
        let target = std::env::current_exe().ok().and_then(|exe| Target::around(&exe));
        let target = target.map(|target| target.own_folder());
        Ok(Self::resolve(
            &[flags, env, file],
            home.as_deref(),
            xdg_cache.as_deref(),
            target.as_deref(),
        ))
    }
}

/// A host that runs where cargo built it keeps its copies there as well, in `target`: they go with a `cargo clean`, and
/// a `HOME` that is not the user's own (a sandbox, a state folder under test) gets no files of ours.
fn default_cache(home: Option<&Path>, xdg_cache: Option<&Path>, target: Option<&Path>) -> PathBuf {
    match (xdg_cache, target.map(|target| target.join("cache")), home) {
        // The XDG rule: a relative value is invalid and to be ignored.
        (Some(cache), _, _) if cache.is_absolute() => cache.join("udf-host"),
        (_, Some(cache), _) => cache,
        (_, None, Some(home)) => home.join(".cache/udf-host"),
        (_, None, None) => {
            // No home at all: a folder per user, checked to be ours before it is trusted (`artifact.rs`).
            std::env::temp_dir().join(format!("udf-host-{}", rustix::process::getuid().as_raw()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_source_wins_and_folders_add_up() {
        let flags = Settings { port: Some(7), udfs: vec!["a".into()], ..Settings::default() };
        let env = Settings::from_env(|name| match name {
            "UDF_HOST_PORT" => Some("8".to_owned()),
            "UDF_HOST_UDFS" => Some("b::c".to_owned()),
            "UDF_HOST_TIMEOUT_MS" => Some("1500".to_owned()),
            _ => None,
        })
        .unwrap();
        let file: Settings =
            toml::from_str("in-flight = 3\ntimeout-ms = 9\ndurability = \"os\"\napp-dir = \"\"")
                .unwrap();
        let config = Config::resolve(&[flags, env, file], Some(Path::new("/h")), None, None);
        assert_eq!(config.port, 7);
        assert_eq!(config.udfs, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(config.timeout, Duration::from_millis(1500));
        assert_eq!((config.in_flight, config.durability), (3, Durability::Os));
        assert_eq!(config.app_dir, None);
        assert_eq!(config.cache_dir, Path::new("/h/.cache/udf-host"));
    }

    #[test]
    fn a_bad_variable_is_named() {
        for (name, value) in [
            ("UDF_HOST_PORT", "x"),
            ("UDF_HOST_DURABILITY", "none"),
            ("UDF_HOST_ONLY", "maybe"),
            ("UDF_HOST_WORKER_IDLE", "0"),
            ("UDF_HOST_WORKER_MEMORY", "63"),
            ("UDF_HOST_WORKER_MEMORY", "99999999999999"),
            ("UDF_HOST_SQL_TIMEOUT", "-1"),
            ("UDF_HOST_SQL_TIMEOUT", "NaN"),
            ("UDF_HOST_SQL_TIMEOUT", "100000"),
        ] {
            let error =
                Settings::from_env(|asked| (asked == name).then(|| value.to_owned())).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(value), "{text}");
        }
    }

    #[test]
    fn an_unknown_key_of_the_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(&path, "prot = 1").unwrap();
        assert!(Settings::from_file(&path).unwrap_err().to_string().contains("prot"));
        for text in ["worker-idle = 0", "worker-memory = 99999999999999", "sql-timeout = -1.0"] {
            #[expect(clippy::disallowed_methods, reason = "a test's own file")]
            std::fs::write(&path, text).unwrap();
            let error = Settings::from_file(&path).unwrap_err().to_string();
            let (key, value) = text.split_once(" = ").unwrap();
            let value = value.trim_end_matches(".0");
            assert!(error.contains(&format!("`{key}`: `{value}` is not")), "{error}");
        }
        assert_eq!(Settings::from_file(&folder.path().join("none")).unwrap(), Settings::default());
    }

    #[test]
    fn a_host_in_a_target_folder_keeps_its_copies_there() {
        let cache = |xdg: Option<&str>| {
            Config::resolve(
                &[],
                Some(Path::new("/h")),
                xdg.map(Path::new),
                Some(Path::new("/t/udf-host")),
            )
            .cache_dir
        };
        assert_eq!(cache(None), Path::new("/t/udf-host/cache"));
        assert_eq!(cache(Some("/c")), Path::new("/c/udf-host"), "what is asked for wins");
    }

    #[test]
    fn a_relative_cache_home_is_ignored() {
        let config = Config::resolve(&[], Some(Path::new("/h")), Some(Path::new("rel")), None);
        assert_eq!(config.cache_dir, Path::new("/h/.cache/udf-host"));
        let config = Config::resolve(&[], None, Some(Path::new("/c")), Some(Path::new("/t")));
        assert_eq!(config.cache_dir, Path::new("/c/udf-host"));
    }
}
