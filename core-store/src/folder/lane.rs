//! Threads of one process that want the same folder take turns.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Threads of this process that want one folder wait here, where waking is prompt, not at the lock.
#[derive(Debug, Default)]
pub(super) struct Lane {
    state: Mutex<LaneState>,
    free: Condvar,
}

#[derive(Debug, Default)]
struct LaneState {
    busy: bool,
    /// Whether left-overs of a crash have been removed.
    swept: bool,
}

/// The lanes of all folders in use.
#[derive(Debug, Default)]
pub(crate) struct FolderLanes(Mutex<HashMap<PathBuf, Arc<Lane>>>);

/// Lanes kept before those that nobody holds are dropped.
const MAX_LANES: usize = 256;

impl FolderLanes {
    pub(super) fn get(&self, path: &Path) -> Arc<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= MAX_LANES {
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        Arc::clone(lanes.entry(path.to_owned()).or_default())
    }
}

pub(super) struct LaneTurn(Arc<Lane>);

impl Drop for LaneTurn {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).busy = false;
        self.0.free.notify_one();
    }
}

impl Lane {
    pub(super) fn enter(self: &Arc<Self>, until: Instant) -> Option<LaneTurn> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.busy {
            let left = until.checked_duration_since(Instant::now())?;
            state = self.free.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.busy = true;
        Some(LaneTurn(Arc::clone(self)))
    }

    /// Whether this is the first holder in this process.
    pub(super) fn first(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut state.swept, true)
    }
}
