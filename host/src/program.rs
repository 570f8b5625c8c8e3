//! The host's own program, for starting it again as a child: to probe an artifact, to run one.

use std::path::PathBuf;
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

/// Tells this program from another build of it, without reading it.
pub(crate) fn fingerprint() -> String {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/exe").map_or_else(
        |_| "unknown".to_owned(),
        |facts| format!("{}-{}.{:09}", facts.len(), facts.mtime(), facts.mtime_nsec()),
    )
}
