//! One collection's file: cached state, and the way from a staged state to the disk.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::backend::{Stamp, WriteMode};
use crate::collection::{default_text, gives_way};
use crate::error::io_error;
use crate::group::Lane;
use crate::lock::{self, Guard};
use crate::snapshot::{Snapshot, State};
use crate::store::Shared;
use crate::{Durability, StoreError};

/// A collection of one state directory, shared by all that use it in this process.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) lane: Lane,
    state_dir: PathBuf,
    temp: PathBuf,
    sentinel: PathBuf,
    shared: Arc<Shared>,
    cache: RwLock<Cache>,
    loading: Mutex<()>,
}

#[derive(Debug, Default)]
struct Cache {
    current: Option<Known>,
    /// A state whose rename is under way: readers may meet its file before it is `current`.
    arriving: Option<Known>,
}

#[derive(Debug)]
struct Known {
    /// `None`: there is no file.
    stamp: Option<Stamp>,
    /// Whether an equal stamp proves equal content. Not so for a file of another program that was
    /// read within the clock tick it was written in.
    sure: bool,
    snapshot: Snapshot,
}

impl Slot {
    pub(crate) fn new(shared: Arc<Shared>, app_dir: &Path, name: &str) -> Self {
        let state_dir = app_dir.join("state");
        Self {
            name: name.to_owned(),
            path: state_dir.join(format!("{name}.json")),
            lane: Lane::default(),
            temp: state_dir.join(format!("{name}.json.tmp")),
            sentinel: lock::sentinel(&state_dir, name),
            state_dir,
            shared,
            cache: RwLock::default(),
            loading: Mutex::default(),
        }
    }

    /// The state on disk now. Takes no lock and parses only what another program has written.
    pub(crate) fn read(&self) -> Result<Snapshot, StoreError> {
        if let Some(snapshot) = self.cached()? {
            return Ok(snapshot);
        }
        // One thread parses, the others wait for it and find the result.
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = self.cached()? {
            return Ok(snapshot);
        }
        let default = default_text(&self.name);
        let content = self.shared.backend.read(&self.path).map_err(io_error("read", &self.path))?;
        let known = match content {
            None => Known { stamp: None, sure: true, snapshot: Snapshot::missing(default) },
            Some((content, stamp)) => Known {
                // Asked before parsing: later the file may have aged, but not what was read.
                sure: !self.shared.backend.is_fresh(&stamp),
                stamp: Some(stamp),
                snapshot: Snapshot::of_file(content, default),
            },
        };
        let snapshot = known.snapshot.clone();
        self.cache_mut().current = Some(known);
        Ok(snapshot)
    }

    fn cached(&self) -> Result<Option<Snapshot>, StoreError> {
        let stamp = self.shared.backend.stamp(&self.path).map_err(io_error("read", &self.path))?;
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &cache.current
            && known.sure
            && known.stamp == stamp
        {
            return Ok(Some(known.snapshot.clone()));
        }
        if let (Some(known), Some(stamp)) = (&cache.arriving, stamp)
            && known.stamp.is_some_and(|arriving| arriving.is_before_rename_of(&stamp))
        {
            return Ok(Some(known.snapshot.clone()));
        }
        Ok(None)
    }

    fn cache_mut(&self) -> std::sync::RwLockWriteGuard<'_, Cache> {
        self.cache.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the sentinel and reads what may be written over.
    pub(crate) fn lock(&self) -> Result<(Guard, Snapshot), StoreError> {
        let guard = Guard::take(&self.shared, &self.state_dir, &self.sentinel)?;
        Ok((guard, self.read()?))
    }

    /// Refuses what must not be written over.
    pub(crate) fn check_writable(&self, base: &Snapshot) -> Result<(), StoreError> {
        match base.state() {
            State::Missing | State::Stored | State::Falsy => Ok(()),
            State::Odd if gives_way(&self.name) => Ok(()),
            State::Odd => Err(StoreError::NotAList { path: self.path.clone() }),
            State::Corrupt(reason) => {
                Err(StoreError::Corrupt { path: self.path.clone(), reason: reason.clone() })
            }
        }
    }

    /// Puts a staged state on the disk and shows it to readers; `false` when it was there already.
    /// The guard of the collection is needed to call this.
    pub(crate) fn save(
        &self,
        _guard: &Guard,
        base: &Snapshot,
        staged: Snapshot,
    ) -> Result<bool, StoreError> {
        if !staged.differs_from(base) {
            return Ok(false);
        }
        let snapshot = staged.settle(base);
        let backend = &self.shared.backend;
        let sync = self.shared.durability == Durability::Full;
        let result = self.replace(&snapshot, sync);
        let mut cache = self.cache_mut();
        let arriving = cache.arriving.take();
        if let Err(error) = result {
            // Best effort: a left-over is never read and the next write replaces it.
            drop(cache);
            let _ = backend.remove(&self.temp);
            return Err(error);
        }
        // The stamp of what we renamed, if it still stands there. Our own bytes need no second look.
        cache.current = match (backend.stamp(&self.path), arriving) {
            (Ok(Some(stamp)), Some(Known { stamp: Some(ours), .. }))
                if ours.is_before_rename_of(&stamp) =>
            {
                Some(Known { stamp: Some(stamp), sure: true, snapshot })
            }
            _ => None,
        };
        Ok(true)
    }

    fn replace(&self, snapshot: &Snapshot, sync: bool) -> Result<(), StoreError> {
        let backend = &self.shared.backend;
        backend
            .write(&self.temp, &snapshot.pieces(), WriteMode::Truncate, sync)
            .map_err(io_error("write", &self.temp))?;
        let stamp = backend.stamp(&self.temp).map_err(io_error("read", &self.temp))?;
        self.cache_mut().arriving = Some(Known { stamp, sure: true, snapshot: snapshot.clone() });
        backend.rename(&self.temp, &self.path).map_err(io_error("replace", &self.path))?;
        if sync {
            backend
                .sync_dir(&self.state_dir)
                .map_err(io_error("make durable the new content of", &self.path))?;
        }
        Ok(())
    }
}

impl Stamp {
    /// Whether `renamed` is the same content after a rename, which moves only the time of change.
    fn is_before_rename_of(&self, renamed: &Stamp) -> bool {
        Stamp { changed_ns: renamed.changed_ns, ..*self } == *renamed
    }
}
