//! [`Holder`]: who holds a lock that somebody waits for.

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pid: u32,
    name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.name)
    }
}

impl Holder {
    /// Who holds a `flock` on the file now, as far as the system tells.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        Self::among(&fs::metadata(file).ok()?, &all())
    }

    /// The same from the text of [`all`].
    pub(crate) fn among(file: &Metadata, locks: &str) -> Option<Self> {
        let inode = file.ino().to_string();
        // `1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF`; a waiter has `->` before the kind.
        let pid = locks.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, "FLOCK", _, _, pid, place, ..] = fields[..] else { return None };
            // The device is left out: some file systems report another one here than by stat.
            (place.rsplit(':').next() == Some(&inode)).then(|| pid.parse().ok())?
        })?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some(Self { pid, name: name.trim().to_owned() })
    }
}

/// All locks of the system, as it lists them; empty where it does not.
pub(crate) fn all() -> String {
    fs::read_to_string("/proc/locks").unwrap_or_default()
}
