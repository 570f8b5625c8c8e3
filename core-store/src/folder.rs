//! A confined directory under one lock: documents that are replaced whole, files that are created
//! once, files that only grow.

mod draft;
mod guard;
mod lane;

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::Entry;
use crate::error::io_error;
use crate::store::Shared;
use crate::{Durability, StoreError};

pub use draft::Draft;
pub use guard::FolderGuard;
pub(crate) use lane::FolderLanes;
use lane::Lane;

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

    /// The text of a document as far as it is text: bytes that are not UTF-8 are replaced. For documents whose lines
    /// stand each for itself, which one bad byte must not take away.
    pub fn read_lossy(&self, name: &str) -> Result<Option<String>, StoreError> {
        let path = self.place(name)?;
        let content = self.shared.backend.read(&path).map_err(io_error("read", &path))?;
        Ok(content.map(|(content, _)| match String::from_utf8(content) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }))
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
            guard.sweep();
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
