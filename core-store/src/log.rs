//! Append-only files of JSON lines: transcripts (the app-store contract §10).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use json_text::{Layout, Specials, render};

use crate::backend::WriteMode;
use crate::error::io_error;
use crate::store::Shared;
use crate::{Durability, StoreError};

/// One log, at a path that is known to stay in its directory. Takes no lock: who appends holds a
/// transaction on the record that goes with the log.
#[derive(Debug, Clone)]
pub struct Log {
    shared: Arc<Shared>,
    /// Directory as named, for creating it.
    dir: PathBuf,
    /// Without links.
    file: PathBuf,
}

/// Longest name of a file and longest path that a system takes.
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 4095;

impl Log {
    /// Resolves directory and file fully; the file's parent must be the directory. `None` for ids
    /// that are empty, lead elsewhere, or cannot be a file name.
    pub(crate) fn open(shared: &Arc<Shared>, dir: &Path, id: &str) -> Option<Self> {
        if id.is_empty() || id.contains('\0') {
            return None;
        }
        // An absolute id takes the place of the directory, and passes only if it points back.
        let path = dir.join(format!("{id}.ndjson"));
        let too_long = path.as_os_str().len() > MAX_PATH
            || path.components().any(|part| part.as_os_str().len() > MAX_NAME);
        if too_long {
            return None;
        }
        // Links in a circle have no resolution, so they are unusable as well.
        let file = shared.backend.real_path(&path).ok()?;
        let real_dir = shared.backend.real_path(dir).ok()?;
        (file.parent() == Some(real_dir.as_path())).then(|| Self {
            shared: Arc::clone(shared),
            dir: dir.to_owned(),
            file,
        })
    }

    /// The file, links resolved.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Whether the file is there.
    pub fn exists(&self) -> Result<bool, StoreError> {
        let stamp = self.shared.backend.stamp(&self.file).map_err(io_error("read", &self.file))?;
        Ok(stamp.is_some())
    }

    /// Every line that is a JSON value, in file order, each in the one-line form of §4. Lines that
    /// are not (torn, blank, not UTF-8) are passed over (S8). A missing file has no lines.
    pub fn read(&self) -> Result<Vec<String>, StoreError> {
        let content = self.shared.backend.read(&self.file).map_err(io_error("read", &self.file))?;
        let Some((content, _)) = content else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        // CR LF is a line end and an empty line, which is passed over.
        for line in content.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let mut entry = String::with_capacity(line.len());
            if render(line, Layout::Line, Specials::Accept, &mut entry).is_ok() {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// Appends one JSON value as a line, creating file and directory. When a crash has torn the last
    /// line, it is ended first, so that only the torn one is lost to readers (S7).
    pub fn append(&self, json: &str) -> Result<(), StoreError> {
        let line = self.line(json)?;
        let backend = &self.shared.backend;
        let sync = self.shared.durability == Durability::Full;
        self.create_dir()?;
        let last = backend.last_byte(&self.file).map_err(io_error("read", &self.file))?;
        let torn = last.is_some_and(|byte| !matches!(byte, b'\n' | b'\r'));
        let parts: [&[u8]; 2] = [if torn { b"\n" } else { b"" }, line.as_bytes()];
        backend
            .write(&self.file, &parts, WriteMode::Append, sync)
            .map_err(io_error("append to", &self.file))?;
        if last.is_none() && sync {
            self.sync_name()?;
        }
        Ok(())
    }

    /// Writes a whole log through `<file>.tmp` and a rename, creating the directory; `false` when
    /// there is one already, or when its name is so long that the temporary one can be none. No lines
    /// make an empty file.
    pub fn create<'a>(&self, lines: impl IntoIterator<Item = &'a str>) -> Result<bool, StoreError> {
        let mut temp = self.file.clone().into_os_string();
        temp.push(".tmp");
        let temp = PathBuf::from(temp);
        // As unusable as an id that is too long itself (S25).
        let too_long = temp.file_name().is_some_and(|name| name.len() > MAX_NAME);
        if too_long || self.exists()? {
            return Ok(false);
        }
        let mut content = String::new();
        for json in lines {
            content.push_str(&self.line(json)?);
        }
        let backend = &self.shared.backend;
        let sync = self.shared.durability == Durability::Full;
        self.create_dir()?;
        let written = backend
            .write(&temp, &[content.as_bytes()], WriteMode::Truncate, sync)
            .map_err(io_error("write", &temp))
            .and_then(|()| {
                backend.rename_new(&temp, &self.file).map_err(io_error("create", &self.file))
            });
        if !matches!(written, Ok(true)) {
            // Best effort: a left-over is never read and the next write replaces it.
            let _ = backend.remove(&temp);
        }
        if written? {
            if sync {
                self.sync_name()?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Removes the file (what a link points to, not the link); `false` when there was none.
    pub fn remove(&self) -> Result<bool, StoreError> {
        let removed =
            self.shared.backend.remove(&self.file).map_err(io_error("remove", &self.file))?;
        if removed && self.shared.durability == Durability::Full {
            self.sync_name()?;
        }
        Ok(removed)
    }

    fn line(&self, json: &str) -> Result<String, StoreError> {
        let mut line = String::with_capacity(json.len() + 16);
        render(json, Layout::Line, Specials::Refuse, &mut line)
            .map_err(|source| StoreError::Line { path: self.file.clone(), source })?;
        line.push('\n');
        Ok(line)
    }

    fn create_dir(&self) -> Result<(), StoreError> {
        let sync = self.shared.durability == Durability::Full;
        self.shared
            .backend
            .create_dirs(&self.dir, sync)
            .map_err(io_error("create the directory", &self.dir))
    }

    fn sync_name(&self) -> Result<(), StoreError> {
        self.shared
            .backend
            .sync_dir(&self.dir)
            .map_err(io_error("make durable the name of", &self.file))
    }
}
