use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use json_text::ParseError;

/// Why the store refused or failed. Cheap to clone: one fault of the disk answers every caller of a
/// group commit.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A collection to be written cannot be read. The text is fixed by the app-store contract §5.
    #[error("{} is corrupt and could not be parsed ({reason}); inspect or restore it before retrying this write.", path.display())]
    Corrupt {
        /// The collection's file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
    },
    /// A collection to be written holds something else than a list.
    #[error("{} holds a value that is not a list; nothing was written: inspect or restore it before retrying", path.display())]
    NotAList {
        /// The collection's file.
        path: PathBuf,
    },
    /// The operating system refused. Nothing of the change is stored, unless the action says that it
    /// came after the change.
    #[error("could not {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: Arc<io::Error>,
    },
    /// Somebody else held the lock of a folder for too long.
    #[error("no lock on {} after {} s; nothing was changed: stop the holder and try again", path.display(), waited.as_secs_f32())]
    LockTimeout {
        /// The lock file.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// A writer of the same group ended without finishing the write.
    #[error("the writer of {} stopped before finishing; nothing was stored: try again", path.display())]
    Abandoned {
        /// The collection's file.
        path: PathBuf,
    },
    /// A record handed over for writing is not JSON the store takes.
    #[error("a record for `{collection}` is not JSON")]
    Record {
        /// The collection.
        collection: String,
        /// What is wrong with the text.
        #[source]
        source: ParseError,
    },
    /// A line handed over for a log is not JSON the store takes.
    #[error("a line for {} is not JSON", path.display())]
    Line {
        /// The log.
        path: PathBuf,
        /// What is wrong with the text.
        #[source]
        source: ParseError,
    },
    /// A change names a position that the collection does not have.
    #[error("`{collection}` has {len} records, there is none at position {position}")]
    Position {
        /// The collection.
        collection: String,
        /// The position asked for, from 0.
        position: usize,
        /// How many records there are.
        len: usize,
    },
    /// A change names a collection that the transaction does not hold.
    #[error("`{collection}` is not part of this transaction; name it when beginning")]
    NotHeld {
        /// The collection.
        collection: String,
    },
    /// A name that cannot stand for a file here.
    #[error("{name:?} cannot be the name of a {what}: use plain file names")]
    Name {
        /// What was to be named.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A path leaves the directory it must stay in, by `..` or through a symbolic link.
    #[error("{} leads out of {}; nothing was touched", path.display(), root.display())]
    Outside {
        /// The path as asked for.
        path: PathBuf,
        /// The directory that confines it.
        root: PathBuf,
    },
    /// A document of a folder is not UTF-8.
    #[error("{} is not UTF-8 text; inspect or restore it", path.display())]
    NotUtf8 {
        /// The document.
        path: PathBuf,
    },
}

/// Puts what was tried, and where, around an error of the system.
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source: Arc::new(source) }
}
