//! A confined directory under one lock: documents that are replaced whole, files that are created
//! once, files that only grow.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::{Entry, Held, WriteMode};
use crate::error::io_error;
use crate::store::Shared;
use crate::{Durability, StoreError};

/// One directory below a root it cannot leave, by `..` or through a symbolic link. Names are plain,
/// joined by `/` (`events/001-start.json`). Reading needs no lock, as documents are renamed into
/// place; writing takes a [`FolderGuard`].
#[derive(Debug, Clone)]
pub struct Folder {
    shared: Arc<Shared>,
    lane: Arc<Lane>,
    root: PathBuf,
    path: PathBuf,
    lock_path: PathBuf,
}

/// The exclusive right to write one folder, across processes. Released when dropped; the lock file
/// stays, as removing it would let two holders in.
pub struct FolderGuard {
    folder: Folder,
    // The lock goes before the lane: fields drop in order.
    _held: Held,
    _turn: LaneTurn,
}

/// Files of a folder that is being built, in order to appear whole.
#[derive(Debug)]
pub struct Draft<'a> {
    folder: &'a Folder,
    dir: PathBuf,
    dirs: BTreeSet<PathBuf>,
}

/// Threads of this process that want one folder wait here, where waking is prompt, not at the lock.
#[derive(Debug, Default)]
struct Lane {
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
    fn get(&self, path: &Path) -> Arc<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= MAX_LANES {
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        Arc::clone(lanes.entry(path.to_owned()).or_default())
    }
}

struct LaneTurn(Arc<Lane>);

impl Drop for LaneTurn {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).busy = false;
        self.0.free.notify_one();
    }
}

impl Lane {
    fn enter(self: &Arc<Self>, until: Instant) -> Option<LaneTurn> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.busy {
            let left = until.checked_duration_since(Instant::now())?;
            state = self.free.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.busy = true;
        Some(LaneTurn(Arc::clone(self)))
    }

    /// Whether this is the first holder in this process.
    fn first(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut state.swept, true)
    }
}

fn check_part(name: &str, whole: &str) -> Result<(), StoreError> {
    let bad = name.is_empty()
        || name == "."
        || name == ".."
        || name.len() > 255
        || name.contains(['/', '\0']);
    if bad {
        return Err(StoreError::Name { what: "file in a folder", name: whole.to_owned() });
    }
    Ok(())
}

fn check_relative(name: &str) -> Result<(), StoreError> {
    name.split('/').try_for_each(|part| check_part(part, name))
}

/// A name beside `name` that no other writer uses.
fn hidden(name: &str, ending: &str) -> Result<String, std::io::Error> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    // Shortened, so that the longest names can have a hidden neighbour as well.
    let name: String = name.chars().take(50).collect();
    Ok(format!(".{name}.{:016x}.{ending}", u64::from_le_bytes(random)))
}

/// Whether [`hidden`] made the name.
fn is_hidden(name: &str) -> bool {
    let middle = name.strip_prefix('.').and_then(|name| {
        name.strip_suffix(".tmp").or_else(|| name.strip_suffix(".new"))?.rsplit_once('.')
    });
    middle.is_some_and(|(_, random)| {
        random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

impl Folder {
    pub(crate) fn new(
        shared: Arc<Shared>,
        lanes: &FolderLanes,
        root: &Path,
        relative: &str,
        lock_name: &str,
    ) -> Result<Self, StoreError> {
        check_part(lock_name, lock_name)?;
        let path = if relative.is_empty() {
            root.to_owned()
        } else {
            check_relative(relative)?;
            root.join(relative)
        };
        let lock_path = path.join(lock_name);
        let lane = lanes.get(&lock_path);
        Ok(Self { shared, lane, root: root.to_owned(), path, lock_path })
    }

    /// The directory, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn sync(&self) -> bool {
        self.shared.durability == Durability::Full
    }

    fn real(&self, path: &Path) -> Result<PathBuf, StoreError> {
        self.shared.backend.real_path(path).map_err(io_error("resolve", path))
    }

    /// Refuses a path whose resolution leaves `within`.
    fn confine(&self, path: &Path, within: &Path) -> Result<(), StoreError> {
        // Plain names without a link among them cannot lead out. Nearly every path is like that, and
        // resolving both ends costs a look at each directory from the root on.
        if path.strip_prefix(within).is_ok_and(|below| self.is_plain(within, below)) {
            return Ok(());
        }
        if self.real(path)?.starts_with(self.real(within)?) {
            return Ok(());
        }
        Err(StoreError::Outside { path: path.to_owned(), root: within.to_owned() })
    }

    /// Whether the way from `within` down `below` consists of names that are no links. `false` also
    /// when that cannot be told.
    fn is_plain(&self, within: &Path, below: &Path) -> bool {
        let mut here = within.to_owned();
        below.components().all(|part| {
            here.push(part);
            matches!(part, Component::Normal(_))
                && self.shared.backend.is_link(&here).is_ok_and(|link| !link)
        })
    }

    /// The place of a document, which must be in this folder.
    fn place(&self, name: &str) -> Result<PathBuf, StoreError> {
        check_relative(name)?;
        self.confine(&self.path, &self.root)?;
        let path = self.path.join(name);
        self.confine(&path, &self.path)?;
        Ok(path)
    }

    /// Whether the directory is there.
    pub fn exists(&self) -> Result<bool, StoreError> {
        self.confine(&self.path, &self.root)?;
        let list = self.shared.backend.list(&self.path);
        Ok(list.map_err(io_error("list", &self.path))?.is_some())
    }

    /// The text of a document; `None` when it is missing.
    pub fn read(&self, name: &str) -> Result<Option<String>, StoreError> {
        let path = self.place(name)?;
        match self.shared.backend.read(&path).map_err(io_error("read", &path))? {
            None => Ok(None),
            Some((content, _)) => {
                String::from_utf8(content).map(Some).map_err(|_| StoreError::NotUtf8 { path })
            }
        }
    }

    /// What is in the folder, or in a directory of it, in order of name. Files that a writer has not
    /// finished are left out. A missing directory is empty.
    pub fn list(&self, name: &str) -> Result<Vec<Entry>, StoreError> {
        let path = if name.is_empty() {
            self.confine(&self.path, &self.root)?;
            self.path.clone()
        } else {
            self.place(name)?
        };
        let entries = self.shared.backend.list(&path).map_err(io_error("list", &path))?;
        let mut entries = entries.unwrap_or_default();
        entries.retain(|entry| !is_hidden(&entry.name));
        Ok(entries)
    }

    /// Waits for the lock, up to `wait`; then [`StoreError::LockTimeout`]. The folder must exist.
    pub fn lock(&self, wait: Duration) -> Result<FolderGuard, StoreError> {
        let started = Instant::now();
        let timeout = || StoreError::LockTimeout { path: self.lock_path.clone(), waited: wait };
        self.confine(&self.lock_path, &self.path)?;
        self.confine(&self.path, &self.root)?;
        let turn = self.lane.enter(started + wait).ok_or_else(timeout)?;
        let held = self
            .shared
            .backend
            .lock(&self.lock_path, Some(wait.saturating_sub(started.elapsed())))
            .map_err(io_error("lock", &self.lock_path))?
            .ok_or_else(timeout)?;
        let guard = FolderGuard { folder: self.clone(), _held: held, _turn: turn };
        if self.lane.first() {
            guard.sweep()?;
        }
        Ok(guard)
    }

    /// Creates the whole directory in one step: it is built beside its place, hidden, and renamed.
    /// Of several creators exactly one wins and gets `true`; the others remove only what they built.
    pub fn create(
        &self,
        build: impl FnOnce(&mut Draft<'_>) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let backend = &self.shared.backend;
        self.confine(&self.path, &self.root)?;
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        check_part(name, name)?;
        let parent = self.path.parent().unwrap_or(Path::new(""));
        backend
            .create_dirs(parent, self.sync())
            .map_err(io_error("create the directory", parent))?;
        if backend.stamp(&self.path).map_err(io_error("read", &self.path))?.is_some() {
            return Ok(false);
        }
        let dir = parent.join(hidden(name, "new").map_err(io_error("name", &self.path))?);
        let mut draft = Draft { folder: self, dir: dir.clone(), dirs: BTreeSet::new() };
        let created = draft.add_dir(&dir).and_then(|()| build(&mut draft)).and_then(|()| {
            if self.sync() {
                draft.dirs.iter().try_for_each(|dir| {
                    backend.sync_dir(dir).map_err(io_error("make durable", dir))
                })?;
            }
            backend.rename_new(&dir, &self.path).map_err(io_error("create", &self.path))
        });
        if !matches!(created, Ok(true)) {
            // Ours alone; a failure here leaves a hidden directory that nothing reads.
            let _ = backend.remove_dir_all(&dir);
        }
        if created? {
            self.sync_names(parent)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn sync_names(&self, dir: &Path) -> Result<(), StoreError> {
        if self.sync() {
            self.shared.backend.sync_dir(dir).map_err(io_error("make durable", dir))?;
        }
        Ok(())
    }
}

impl Draft<'_> {
    fn add_dir(&mut self, dir: &Path) -> Result<(), StoreError> {
        if self.dirs.insert(dir.to_owned()) {
            self.folder
                .shared
                .backend
                .create_dirs(dir, false)
                .map_err(io_error("create the directory", dir))?;
        }
        Ok(())
    }

    /// Adds an empty directory.
    pub fn dir(&mut self, name: &str) -> Result<(), StoreError> {
        check_relative(name)?;
        let mut dir = self.dir.clone();
        for part in name.split('/') {
            dir.push(part);
            self.add_dir(&dir)?;
        }
        Ok(())
    }

    /// Adds a file, and the directories on its way.
    pub fn file(&mut self, name: &str, content: &str) -> Result<(), StoreError> {
        check_relative(name)?;
        if let Some((dir, _)) = name.rsplit_once('/') {
            self.dir(dir)?;
        }
        let path = self.dir.join(name);
        self.folder
            .shared
            .backend
            .write(&path, &[content.as_bytes()], WriteMode::New, self.folder.sync())
            .map_err(io_error("write", &path))
    }
}

impl Deref for FolderGuard {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl fmt::Debug for FolderGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FolderGuard").field(&self.folder.path).finish()
    }
}

impl FolderGuard {
    /// Removes temporary files that a crash has left. Under the lock nobody else has any.
    fn sweep(&self) -> Result<(), StoreError> {
        let backend = &self.folder.shared.backend;
        let list = |dir: &Path| backend.list(dir).map_err(io_error("list", dir));
        let mut dirs = vec![self.folder.path.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in list(&dir)?.unwrap_or_default() {
                let path = dir.join(&entry.name);
                if entry.is_dir {
                    dirs.push(path);
                } else if is_hidden(&entry.name) {
                    backend.remove(&path).map_err(io_error("remove", &path))?;
                }
            }
        }
        Ok(())
    }

    /// Puts a document in place of what stands there, or nowhere yet: its content is on the disk
    /// before its name is.
    pub fn replace(&self, name: &str, content: &str) -> Result<(), StoreError> {
        self.put(name, content, |temp, path| {
            self.folder.shared.backend.rename(temp, path).map(|()| true)
        })
        .map(|_| ())
    }

    /// As [`replace`](Self::replace), but `false` and nothing done when anything stands there.
    pub fn create_new(&self, name: &str, content: &str) -> Result<bool, StoreError> {
        self.put(name, content, |temp, path| self.folder.shared.backend.rename_new(temp, path))
    }

    fn put(
        &self,
        name: &str,
        content: &str,
        rename: impl FnOnce(&Path, &Path) -> std::io::Result<bool>,
    ) -> Result<bool, StoreError> {
        let (path, dir) = self.position(name)?;
        let folder = &self.folder;
        let backend = &folder.shared.backend;
        if dir != folder.path {
            backend
                .create_dirs(&dir, folder.sync())
                .map_err(io_error("create the directory", &dir))?;
        }
        let last = name.rsplit('/').next().unwrap_or(name);
        let temp = dir.join(hidden(last, "tmp").map_err(io_error("name", &path))?);
        let done = backend
            .write(&temp, &[content.as_bytes()], WriteMode::New, folder.sync())
            .map_err(io_error("write", &temp))
            .and_then(|()| rename(&temp, &path).map_err(io_error("replace", &path)));
        if !matches!(done, Ok(true)) {
            // Best effort: a left-over is never read and the next start removes it.
            let _ = backend.remove(&temp);
        }
        if done? {
            folder.sync_names(&dir)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Adds whole lines to a document that grows, creating it and its directory. One write at its end:
    /// what stands there is never touched, and after a crash a reader finds the old bytes, or those and
    /// some or all of the new ones. A line that a crash has torn is ended first. A link is refused.
    pub fn append(&self, name: &str, lines: &str) -> Result<(), StoreError> {
        let (path, dir) = self.position(name)?;
        let folder = &self.folder;
        let backend = &folder.shared.backend;
        if backend.is_link(&path).map_err(io_error("read", &path))? {
            return Err(StoreError::Outside { path, root: folder.path.clone() });
        }
        if dir != folder.path {
            backend
                .create_dirs(&dir, folder.sync())
                .map_err(io_error("create the directory", &dir))?;
        }
        let is_new = backend.stamp(&path).map_err(io_error("read", &path))?.is_none();
        let last = backend.last_byte(&path).map_err(io_error("read", &path))?;
        let torn = last.is_some_and(|byte| byte != b'\n');
        let parts: [&[u8]; 2] = [if torn { b"\n" } else { b"" }, lines.as_bytes()];
        backend
            .write(&path, &parts, WriteMode::Append, folder.sync())
            .map_err(io_error("append to", &path))?;
        if is_new {
            folder.sync_names(&dir)?;
        }
        Ok(())
    }

    /// Gives a document another name in this folder, its bytes untouched; `false`, and nothing done, when
    /// anything stands there.
    pub fn rename(&self, from: &str, to: &str) -> Result<bool, StoreError> {
        let (from, old_dir) = self.position(from)?;
        let (to, new_dir) = self.position(to)?;
        let folder = &self.folder;
        let renamed =
            folder.shared.backend.rename_new(&from, &to).map_err(io_error("rename", &from))?;
        if renamed {
            folder.sync_names(&new_dir)?;
            if old_dir != new_dir {
                folder.sync_names(&old_dir)?;
            }
        }
        Ok(renamed)
    }

    /// The path of a name and its directory, which must be in the folder. The path itself may be a link:
    /// whoever writes replaces it or refuses it, and never follows it.
    fn position(&self, name: &str) -> Result<(PathBuf, PathBuf), StoreError> {
        check_relative(name)?;
        let folder = &self.folder;
        let path = folder.path.join(name);
        let dir = path.parent().unwrap_or(&folder.path).to_owned();
        folder.confine(&folder.path, &folder.root)?;
        folder.confine(&dir, &folder.path)?;
        Ok((path, dir))
    }

    /// Removes a file; `false` when there was none.
    pub fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let (path, dir) = self.position(name)?;
        let folder = &self.folder;
        let removed = folder.shared.backend.remove(&path).map_err(io_error("remove", &path))?;
        if removed {
            folder.sync_names(&dir)?;
        }
        Ok(removed)
    }
}
