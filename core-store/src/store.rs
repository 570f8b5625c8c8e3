//! `Store`: the process's one way to state, and the directories it has open.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::StoreError;
use crate::backend::{Backend, FileBackend};
use crate::collection::check_name;
use crate::commit::Slot;
use crate::folder::{Folder, FolderLanes};
use crate::log::Log;
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Loss of power: content is synced before the rename, the rename before the answer.
    #[default]
    Full,
    /// The end of the process, not of the system: no syncs.
    Os,
}

/// How a [`Store`] works.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreOptions {
    /// See [`Durability`].
    pub durability: Durability,
}

/// What everything opened from one store has in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) durability: Durability,
}

/// Process-wide owner of all caches and queues. Cheap to clone. Have one per process: two would be
/// right too, but each would parse for itself and not share commits.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    apps: Mutex<HashMap<PathBuf, AppStore>>,
    folders: FolderLanes,
}

/// State directories kept open; callers may name any number of them.
const MAX_APPS: usize = 64;

impl Store {
    /// A store on the local file system.
    pub fn open(options: StoreOptions) -> Self {
        Self::with_backend(Arc::new(FileBackend::default()), options)
    }

    /// A store on another disk.
    pub fn with_backend(backend: Arc<dyn Backend>, options: StoreOptions) -> Self {
        Self(Arc::new(Inner {
            shared: Arc::new(Shared { backend, durability: options.durability }),
            apps: Mutex::default(),
            folders: FolderLanes::default(),
        }))
    }

    /// The state directory `dir`, taken as it stands; see [`resolve_app_dir`]. Touches nothing.
    pub fn app(&self, dir: &Path) -> AppStore {
        let mut apps = self.0.apps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(app) = apps.get(dir) {
            return app.clone();
        }
        if apps.len() >= MAX_APPS {
            // Only what nobody holds: a second cache beside a used one would split its groups.
            apps.retain(|_, app| Arc::strong_count(&app.0) > 1);
        }
        let app = AppStore(Arc::new(App {
            dir: dir.to_owned(),
            shared: Arc::clone(&self.0.shared),
            slots: Mutex::default(),
        }));
        apps.insert(dir.to_owned(), app.clone());
        app
    }

    /// The directory `relative` below `root`, confined to it, with the lock file `lock_name` inside.
    /// Touches nothing. `relative` is made of plain names; `root` may be a symbolic link.
    pub fn folder(
        &self,
        root: &Path,
        relative: &str,
        lock_name: &str,
    ) -> Result<Folder, StoreError> {
        Folder::new(Arc::clone(&self.0.shared), &self.0.folders, root, relative, lock_name)
    }
}

/// One state directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AppStore(Arc<App>);

#[derive(Debug)]
struct App {
    dir: PathBuf,
    shared: Arc<Shared>,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

impl AppStore {
    /// The directory, as it was named.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// The collection as it is on disk now. Never locks and never waits for writers; another
    /// program's change shows in the next call. What cannot be parsed reads as the default, and
    /// [`Snapshot::state`] says so (the app-store contract §5).
    pub fn read(&self, collection: &str) -> Result<Snapshot, StoreError> {
        check_name(collection)?;
        self.slot(collection).read()
    }

    /// Waits, without limit, for the exclusive right to change these collections (the app-store
    /// contract §5). A corrupt one among them is [`StoreError::Corrupt`]. A thread that holds a
    /// transaction must not begin a second one on the same collection.
    pub fn begin(&self, collections: &[&str]) -> Result<Transaction, StoreError> {
        Transaction::begin(self, collections)
    }

    /// The log `id` in the directory `dir` of this state directory; `None` when the id is unusable
    /// or leads out of it (the app-store contract §10, S25).
    pub fn log(&self, dir: &str, id: &str) -> Option<Log> {
        Log::open(&self.0.shared, &self.0.dir.join(dir), id)
    }

    /// Creates the directory of logs `dir`, as ops that write logs do early (the app-store contract
    /// §3).
    pub fn create_log_dir(&self, dir: &str) -> Result<(), StoreError> {
        let dir = self.0.dir.join(dir);
        let sync = self.0.shared.durability == Durability::Full;
        self.0
            .shared
            .backend
            .create_dirs(&dir, sync)
            .map_err(crate::error::io_error("create the directory", &dir))
    }

    pub(crate) fn slot(&self, name: &str) -> Arc<Slot> {
        let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(name) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot::new(Arc::clone(&self.0.shared), &self.0.dir, name));
        slots.insert(name.to_owned(), Arc::clone(&slot));
        slot
    }
}

/// The state directory to use (the app-store contract §2): the parameter, else the environment
/// variable `OPENFUSED_APP_DIR_STATE`, else `.openfused/app` in the home directory. Empty counts as
/// absent; nothing is expanded or normalised.
pub fn resolve_app_dir(param: Option<&str>) -> PathBuf {
    // An empty `HOME` is one; only without any is the account's looked up.
    let home = || std::env::var_os("HOME").map(PathBuf::from).or_else(std::env::home_dir);
    resolve(param, std::env::var_os("OPENFUSED_APP_DIR_STATE"), home)
}

fn resolve(
    param: Option<&str>,
    variable: Option<OsString>,
    home: impl FnOnce() -> Option<PathBuf>,
) -> PathBuf {
    if let Some(dir) = param.filter(|dir| !dir.is_empty()) {
        return dir.into();
    }
    if let Some(dir) = variable.filter(|dir| !dir.is_empty()) {
        return dir.into();
    }
    match home().filter(|home| !home.as_os_str().is_empty()) {
        Some(home) => home.join(".openfused/app"),
        // As `$HOME/.openfused/app` reads when HOME is empty.
        None => "/.openfused/app".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_directory_comes_from_parameter_then_variable_then_home() {
        for (param, variable, home, want) in [
            (Some("~/x/../y "), Some("/env"), Some("/home/u"), "~/x/../y "),
            (Some(""), Some("relative/env/"), Some("/home/u"), "relative/env/"),
            (None, Some(""), Some("/home/u"), "/home/u/.openfused/app"),
            (None, None, Some("/home/u"), "/home/u/.openfused/app"),
            (None, None, Some(""), "/.openfused/app"),
        ] {
            let dir = resolve(param, variable.map(OsString::from), || home.map(PathBuf::from));
            assert_eq!(dir.as_os_str(), want, "{param:?} {variable:?} {home:?}");
        }
    }

    #[test]
    fn directories_in_use_keep_their_caches() {
        let store = Store::open(StoreOptions::default());
        let used = store.app(Path::new("used"));
        let slot = used.slot("cards");
        for n in 0..3 * MAX_APPS {
            store.app(&PathBuf::from(n.to_string()));
        }
        assert!(Arc::ptr_eq(&store.app(Path::new("used")).slot("cards"), &slot));
        assert!(store.0.apps.lock().unwrap().len() <= MAX_APPS + 1);
    }
}
