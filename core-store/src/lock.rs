//! The sentinels that exclude writers of other processes and programs (the app-store contract §5).

use std::io;
use std::path::{Path, PathBuf};

use crate::backend::Held;
use crate::error::io_error;
use crate::store::Shared;
use crate::{Durability, StoreError};

/// Exclusive right to write one collection, across processes. Released when dropped; the sentinel
/// file stays.
#[derive(Debug)]
pub(crate) struct Guard(#[expect(dead_code, reason = "dropping it is its use")] Held);

impl Guard {
    /// Waits for the sentinel of a collection, without limit. Creates it and the directory.
    pub(crate) fn take(shared: &Shared, state: &Path, sentinel: &Path) -> Result<Self, StoreError> {
        let lock = || shared.backend.lock(sentinel, None);
        let held = match lock() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let sync = shared.durability == Durability::Full;
                shared
                    .backend
                    .create_dirs(state, sync)
                    .map_err(io_error("create the directory", state))?;
                lock()
            }
            other => other,
        };
        match held.map_err(io_error("lock", sentinel))? {
            Some(held) => Ok(Self(held)),
            // Waiting without limit has no other end.
            None => Err(io_error("lock", sentinel)(io::ErrorKind::TimedOut.into())),
        }
    }
}

/// Where the sentinel of a collection is.
pub(crate) fn sentinel(state: &Path, collection: &str) -> PathBuf {
    state.join(format!(".{collection}.lock"))
}
