//! Writing in a folder, under its lock.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::lane::LaneTurn;
use super::{Folder, check_relative, hidden, is_hidden};
use crate::StoreError;
use crate::backend::{Entry, Held, WriteMode};
use crate::error::io_error;

/// The exclusive right to write one folder, across processes. Released when dropped; the lock file
/// stays, as removing it would let two holders in.
pub struct FolderGuard {
    pub(super) folder: Folder,
    // The lock goes before the lane: fields drop in order.
    pub(super) _held: Held,
    pub(super) _turn: LaneTurn,
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
    /// Removes temporary files that a crash has left. Under the lock nobody else has any, but in a folder inside this
    /// one: it has a lock of its own, and whoever takes that one sweeps it. What cannot be looked at or removed is left:
    /// nobody reads it.
    pub(super) fn sweep(&self) {
        let backend = &self.folder.shared.backend;
        let mut dirs = vec![self.folder.path.clone()];
        while let Some(dir) = dirs.pop() {
            let Ok(Some(entries)) = backend.list(&dir) else { continue };
            let is_lock = |entry: &Entry| !entry.is_dir && entry.name.ends_with(".lock");
            if dir != self.folder.path && entries.iter().any(is_lock) {
                continue;
            }
            for entry in entries {
                let path = dir.join(&entry.name);
                if entry.is_dir {
                    dirs.push(path);
                } else if is_hidden(&entry.name) {
                    let _ = backend.remove(&path);
                }
            }
        }
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

    /// Moves the whole folder to the place of another one, which is made; `false`, and nothing done, when anything stands
    /// there. Whoever waits for the lock gets that of a folder that is gone.
    pub fn move_to(self, to: &Folder) -> Result<bool, StoreError> {
        let from = &self.folder;
        from.confine(&from.path, &from.root)?;
        to.confine(&to.path, &to.root)?;
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
        let (left, joined) = (parent(&from.path), parent(&to.path));
        let backend = &from.shared.backend;
        backend
            .create_dirs(&joined, from.sync())
            .map_err(io_error("create the directory", &joined))?;
        let moved =
            backend.rename_new(&from.path, &to.path).map_err(io_error("move", &from.path))?;
        if moved {
            from.sync_names(&joined)?;
            from.sync_names(&left)?;
        }
        Ok(moved)
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
