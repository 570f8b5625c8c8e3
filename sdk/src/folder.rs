use std::time::Duration;

use crate::abi::Method;
use crate::context::Context;
use crate::error::UdfError;
use crate::wire::{
    Entry, FolderCreateDirRequest, FolderLockRequest, FolderNameRequest, FolderNamesRequest,
    FolderRenameRequest, FolderRequest, FolderWriteRequest, ReadFile, Wire,
};

/// A directory of documents that are read and replaced whole. Reading needs no lock, since documents
/// are renamed into place; writing needs a [`FolderGuard`].
#[derive(Debug)]
pub struct Folder<'c> {
    context: &'c Context,
    folder: u32,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name.
    pub name: String,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// The exclusive right to write one folder, across processes. Given back when dropped.
#[derive(Debug)]
pub struct FolderGuard<'f> {
    folder: &'f Folder<'f>,
}

impl<'c> Folder<'c> {
    pub(crate) fn new(context: &'c Context, folder: u32) -> Self {
        Self { context, folder }
    }

    /// Whether the directory is there.
    ///
    /// # Errors
    /// The disk refuses, or the path leads out of the root through a link.
    pub fn exists(&self) -> Result<bool, UdfError> {
        self.ask(Method::FOLDER_EXISTS, &FolderRequest { folder: self.folder })
    }

    /// The directory as an absolute path, for a program that works on it. What an operation writes itself
    /// goes through the guard.
    ///
    /// # Errors
    /// The path is not UTF-8.
    pub fn path(&self) -> Result<String, UdfError> {
        let request = FolderRequest { folder: self.folder };
        let frame = self.context.request(Method::FOLDER_PATH, &request)?;
        Ok(<&str>::decode(&frame)?.to_owned())
    }

    /// The text of a document; `None` if there is none.
    ///
    /// # Errors
    /// As [`Folder::exists`], and the document is not UTF-8.
    pub fn read(&self, name: &str) -> Result<Option<String>, UdfError> {
        let request = FolderNameRequest { folder: self.folder, name };
        let frame = self.context.request(Method::FOLDER_READ, &request)?;
        Ok(Option::<&str>::decode(&frame)?.map(str::to_owned))
    }

    /// The text of a document as far as it is text: bytes that are not UTF-8 are replaced. For documents whose lines
    /// stand each for itself, which one bad byte must not take away.
    ///
    /// # Errors
    /// As [`Folder::exists`].
    pub fn read_lossy(&self, name: &str) -> Result<Option<String>, UdfError> {
        let request = FolderNameRequest { folder: self.folder, name };
        let frame = self.context.request(Method::FOLDER_READ_LOSSY, &request)?;
        Ok(Option::<&str>::decode(&frame)?.map(str::to_owned))
    }

    /// Many documents in one request, which the host reads side by side: each gets what [`Folder::read`] would
    /// answer, in order.
    ///
    /// # Errors
    /// A fault of the host; what is wrong with one document stands in its place.
    pub fn read_all(
        &self,
        names: &[String],
    ) -> Result<Vec<Result<Option<String>, UdfError>>, UdfError> {
        let names = names.iter().map(String::as_str).collect();
        let request = FolderNamesRequest { folder: self.folder, names };
        let frame = self.context.request(Method::FOLDER_READ_ALL, &request)?;
        let files = Vec::<ReadFile<'_>>::decode(&frame)?.into_iter();
        Ok(files
            .map(|file| match file.refusal {
                "" => Ok(file.text.map(str::to_owned)),
                refusal => Err(UdfError::raised(refusal)),
            })
            .collect())
    }

    /// What is in the folder (`""`) or in a directory of it, in order of name; nothing if there is no
    /// such directory.
    ///
    /// # Errors
    /// As [`Folder::exists`].
    pub fn list(&self, name: &str) -> Result<Vec<FolderEntry>, UdfError> {
        let request = FolderNameRequest { folder: self.folder, name };
        let frame = self.context.request(Method::FOLDER_LIST, &request)?;
        let entries = Vec::<Entry<'_>>::decode(&frame)?.into_iter();
        Ok(entries
            .map(|entry| FolderEntry {
                name: entry.name.to_owned(),
                is_directory: entry.is_directory,
            })
            .collect())
    }

    /// Waits for the lock; `None` if it was not free in time (run feedback waits 30 s, its contract
    /// §18). The directory must exist.
    ///
    /// # Errors
    /// As [`Folder::exists`], and this call holds the lock already.
    pub fn lock(&self, wait: Duration) -> Result<Option<FolderGuard<'_>>, UdfError> {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let request = FolderLockRequest { folder: self.folder, wait_ms };
        let locked: bool = self.ask(Method::FOLDER_LOCK, &request)?;
        Ok(locked.then_some(FolderGuard { folder: self }))
    }

    /// Creates the directory with everything in it in one step: of several creators exactly one gets
    /// `true`, and nobody ever sees half of it.
    ///
    /// # Errors
    /// As [`Folder::exists`].
    pub fn create(&self, directories: &[&str], files: &[(&str, &str)]) -> Result<bool, UdfError> {
        let request = FolderCreateDirRequest {
            folder: self.folder,
            directories: directories.to_vec(),
            files: files.to_vec(),
        };
        self.ask(Method::FOLDER_CREATE_DIR, &request)
    }

    fn ask<'a>(&self, method: Method, request: &impl Wire<'a>) -> Result<bool, UdfError> {
        Ok(bool::decode(&self.context.request(method, request)?)?)
    }
}

impl FolderGuard<'_> {
    /// Puts a document in place of what stands there, or nowhere yet; it is on disk when this returns.
    ///
    /// # Errors
    /// The disk refuses; the old document stays.
    pub fn replace(&mut self, name: &str, text: &str) -> Result<(), UdfError> {
        let request = FolderWriteRequest { folder: self.folder.folder, name, text };
        self.folder.context.request(Method::FOLDER_REPLACE, &request)?;
        Ok(())
    }

    /// Writes a document that must not exist; false, and nothing written, if it does.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn create_new(&mut self, name: &str, text: &str) -> Result<bool, UdfError> {
        let request = FolderWriteRequest { folder: self.folder.folder, name, text };
        self.folder.ask(Method::FOLDER_CREATE, &request)
    }

    /// Adds `text`, whole lines, to a document that grows; it is on disk when this returns. One write, so
    /// that after a crash the old lines stand, and at most the last new one is torn; a torn line is ended
    /// before anything is added. The document and its directory are created.
    ///
    /// # Errors
    /// The disk refuses, or the document is a link.
    pub fn append(&mut self, name: &str, text: &str) -> Result<(), UdfError> {
        let request = FolderWriteRequest { folder: self.folder.folder, name, text };
        self.folder.context.request(Method::FOLDER_APPEND, &request)?;
        Ok(())
    }

    /// Gives a document another name in its directory, its bytes untouched; false, and nothing done, if
    /// that name is taken.
    ///
    /// # Errors
    /// The disk refuses, or there is no such document.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<bool, UdfError> {
        let request = FolderRenameRequest { folder: self.folder.folder, from, to };
        self.folder.ask(Method::FOLDER_RENAME, &request)
    }

    /// Removes a document; false if there was none.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn remove(&mut self, name: &str) -> Result<bool, UdfError> {
        let request = FolderNameRequest { folder: self.folder.folder, name };
        self.folder.ask(Method::FOLDER_REMOVE, &request)
    }
}

impl Drop for FolderGuard<'_> {
    fn drop(&mut self) {
        let request = FolderRequest { folder: self.folder.folder };
        // The host ends a lock with its call in any case; after a fault this is refused.
        let _ = self.folder.context.request(Method::FOLDER_UNLOCK, &request);
    }
}
