//! A folder that is being built, in order to appear whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Folder, check_relative};
use crate::StoreError;
use crate::backend::WriteMode;
use crate::error::io_error;

/// Files of a folder that is being built, in order to appear whole.
#[derive(Debug)]
pub struct Draft<'a> {
    pub(super) folder: &'a Folder,
    pub(super) dir: PathBuf,
    pub(super) dirs: BTreeSet<PathBuf>,
}

impl Draft<'_> {
    pub(super) fn add_dir(&mut self, dir: &Path) -> Result<(), StoreError> {
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
