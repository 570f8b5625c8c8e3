//! The disk as the store sees it.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod file;
mod memory;

pub use file::FileBackend;
pub use memory::{Crash, MemoryBackend};

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Device and file number.
    pub file: (u64, u64),
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of content, nanoseconds.
    pub modified_ns: i128,
    /// Time of the last change of anything, nanoseconds.
    pub changed_ns: i128,
}

/// How a file is opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Created, or emptied first. A symbolic link at the path is replaced, not followed.
    Truncate,
    /// Created; an existing one is [`io::ErrorKind::AlreadyExists`].
    New,
    /// Created, or written at its end.
    Append,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name; entries whose names are not UTF-8 are not listed.
    pub name: String,
    /// Whether it is a directory itself (a link to one is not).
    pub is_dir: bool,
}

/// A lock that is held until this is dropped.
pub struct Held(#[expect(dead_code, reason = "dropping it is its use")] Box<dyn Any + Send>);

impl Held {
    /// Wraps what releases the lock when dropped.
    pub fn new(release: impl Any + Send) -> Self {
        Self(Box::new(release))
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

/// The single steps that everything above is made of. One call is one step: a crash falls between
/// two of them, or inside a write.
pub trait Backend: Send + Sync + fmt::Debug {
    /// The stamp of the file at `path` (links followed); `None` when there is none.
    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>>;

    /// Whether a file with this stamp could still be changed without the stamp showing it, because
    /// the clock of the file system has not moved on since its last change.
    fn is_fresh(&self, stamp: &Stamp) -> bool;

    /// Content of the file, and its stamp from before reading.
    fn read(&self, path: &Path) -> io::Result<Option<(Vec<u8>, Stamp)>>;

    /// The last byte of the file; `None` when it is missing or empty.
    fn last_byte(&self, path: &Path) -> io::Result<Option<u8>>;

    /// Writes the parts in order; with `sync` the content is on the disk when this returns.
    fn write(&self, path: &Path, parts: &[&[u8]], mode: WriteMode, sync: bool) -> io::Result<()>;

    /// Puts the file or directory `from` at `to`, over a file that stands there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// As [`rename`](Self::rename), but `false` and nothing done when anything stands at `to`.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<bool>;

    /// Makes the names in the directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Removes a file (a link itself, not its target); `false` when there was none.
    fn remove(&self, path: &Path) -> io::Result<bool>;

    /// Removes a directory with all that is in it.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Creates a directory and its missing parents; with `sync` their names are durable.
    fn create_dirs(&self, dir: &Path, sync: bool) -> io::Result<()>;

    /// The entries of a directory in order of name; `None` when there is no directory.
    fn list(&self, dir: &Path) -> io::Result<Option<Vec<Entry>>>;

    /// Whether a symbolic link stands at `path` itself; `false` when there is nothing.
    fn is_link(&self, path: &Path) -> io::Result<bool>;

    /// The path without symbolic links, `.` and `..`; parts that do not exist are taken as they
    /// stand (the app-store contract §10).
    fn real_path(&self, path: &Path) -> io::Result<PathBuf>;

    /// Takes the exclusive lock of the lock file at `path`, creating it (mode 0600) if needed.
    /// Waits as long as `wait` says (`None`: without limit); `Ok(None)` when the time ran out.
    fn lock(&self, path: &Path, wait: Option<Duration>) -> io::Result<Option<Held>>;
}
