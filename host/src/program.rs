//! The host's own program, for starting it again as a child: to probe an artifact, to run one.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_HOST: AtomicBool = AtomicBool::new(false);

/// Says that this process is `udf-host` itself, not a test or a bench that uses the host as a library.
pub(crate) fn this_is_the_host() {
    IS_HOST.store(true, Ordering::Relaxed);
}

/// What to start. None in a process that is not the host: its own program knows none of the host's commands.
pub(crate) fn own() -> Option<PathBuf> {
    // Not the path of the file: a build may have put another one there while this one runs.
    IS_HOST.load(Ordering::Relaxed).then(|| PathBuf::from("/proc/self/exe"))
}

/// Settings of the host that plugins must not see: they may hold keys, and none of them is meant for a plugin.
const HIDDEN: &str = "UDF_HOST_";
/// The keys with which the host itself pays for answers of a model.
const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

/// Takes the host's own settings from a child that runs what others wrote.
pub(crate) fn hide_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with(HIDDEN) || KEYS.contains(&&*text) {
            command.env_remove(&name);
        }
    }
}

/// Tells this program from another build of it, without reading it.
pub(crate) fn fingerprint() -> String {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/exe").map_or_else(
        |_| "unknown".to_owned(),
        |facts| format!("{}-{}.{:09}", facts.len(), facts.mtime(), facts.mtime_nsec()),
    )
}
