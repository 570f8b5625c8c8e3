//! Folders of a call.

use std::path::Path;
use std::time::Duration;

use core_store::{FolderGuard, StoreError};

use super::{Open, OpenFolder, StoreSession, not_open, number, store_error};
use crate::error::{ErrorKind, UdfError};
use crate::wire::{
    Entry, FolderCreateDirRequest, FolderLockRequest, FolderNameRequest, FolderNamesRequest,
    FolderOpenRequest, FolderRenameRequest, FolderRequest, FolderWriteRequest, ReadFile, Wire,
};

/// Below so many documents a second thread costs more than it saves.
const FEW: usize = 64;

impl Open {
    fn folder(&mut self, number: u32) -> Result<&mut OpenFolder, UdfError> {
        self.folders.get_mut(number as usize).ok_or_else(|| not_open("folder", number))
    }
}

impl OpenFolder {
    fn guard(&self) -> Result<&FolderGuard, UdfError> {
        let message = "a folder is written under its lock only: call `lock` first";
        self.guard.as_ref().ok_or_else(|| UdfError::new(ErrorKind::Refused, message))
    }
}

impl StoreSession {
    pub(super) fn folder_open(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderOpenRequest::decode(request)?;
        self.access.check_folders()?;
        let root = match request.root {
            "" => self.app.dir(),
            root => Path::new(root),
        };
        let folder = self.store.folder(root, request.path, request.lock).map_err(store_error)?;
        let mut open = self.open();
        let number = number(open.folders.len())?;
        open.folders.push(OpenFolder { guard: None, folder });
        Ok(number.encode())
    }

    pub(super) fn folder_lock(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderLockRequest::decode(request)?;
        self.access.check_folder_writes()?;
        let mut open = self.open();
        let folder = open.folder(request.folder)?;
        if folder.guard.is_some() {
            let message = "the folder is locked by this call already";
            return Err(UdfError::new(ErrorKind::Refused, message));
        }
        match folder.folder.lock(Duration::from_millis(request.wait_ms)) {
            Ok(guard) => {
                folder.guard = Some(guard);
                Ok(true.encode())
            }
            Err(StoreError::LockTimeout { .. }) => Ok(false.encode()),
            Err(error) => Err(store_error(error)),
        }
    }

    pub(super) fn folder_unlock(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        self.open().folder(FolderRequest::decode(request)?.folder)?.guard = None;
        Ok(Vec::new())
    }

    pub(super) fn folder_exists(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let mut open = self.open();
        let folder = open.folder(FolderRequest::decode(request)?.folder)?;
        Ok(folder.folder.exists().map_err(store_error)?.encode())
    }

    pub(super) fn folder_read(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderNameRequest::decode(request)?;
        let mut open = self.open();
        let text = open.folder(request.folder)?.folder.read(request.name).map_err(store_error)?;
        Ok(text.as_deref().encode())
    }

    pub(super) fn folder_read_lossy(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderNameRequest::decode(request)?;
        let mut open = self.open();
        let folder = &open.folder(request.folder)?.folder;
        Ok(folder.read_lossy(request.name).map_err(store_error)?.as_deref().encode())
    }

    /// Reads on all cores: of many small files most of the time goes into system calls.
    pub(super) fn folder_read_all(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderNamesRequest::decode(request)?;
        let folder = self.open().folder(request.folder)?.folder.clone();
        let read = |names: &[&str]| -> Vec<_> {
            names.iter().map(|name| folder.read(name).map_err(store_error)).collect()
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = request.names.len().div_ceil(threads).max(FEW);
        let files: Vec<_> = match request.names.split_at_checked(share) {
            None => read(&request.names),
            Some((own, others)) => std::thread::scope(|scope| {
                let others: Vec<_> =
                    others.chunks(share).map(|part| (part, scope.spawn(|| read(part)))).collect();
                let mut files = read(own);
                for (part, other) in others {
                    // A thread that panicked has read nothing: its part is read here, panic and all.
                    files.extend(other.join().unwrap_or_else(|_| read(part)));
                }
                files
            }),
        };
        let files: Vec<ReadFile<'_>> = files
            .iter()
            .map(|read| match read {
                Ok(text) => ReadFile { text: text.as_deref(), refusal: "" },
                Err(error) => ReadFile { text: None, refusal: error.message() },
            })
            .collect();
        Ok(files.encode())
    }

    pub(super) fn folder_list(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderNameRequest::decode(request)?;
        let mut open = self.open();
        let entries =
            open.folder(request.folder)?.folder.list(request.name).map_err(store_error)?;
        let entries: Vec<Entry<'_>> = entries
            .iter()
            .map(|entry| Entry { name: &entry.name, is_directory: entry.is_dir })
            .collect();
        Ok(entries.encode())
    }

    pub(super) fn folder_replace(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderWriteRequest::decode(request)?;
        let mut open = self.open();
        let guard = open.folder(request.folder)?.guard()?;
        guard.replace(request.name, request.text).map_err(store_error)?;
        Ok(Vec::new())
    }

    pub(super) fn folder_create(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderWriteRequest::decode(request)?;
        let mut open = self.open();
        let guard = open.folder(request.folder)?.guard()?;
        let created = guard.create_new(request.name, request.text).map_err(store_error)?;
        Ok(created.encode())
    }

    pub(super) fn folder_remove(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderNameRequest::decode(request)?;
        let mut open = self.open();
        let guard = open.folder(request.folder)?.guard()?;
        Ok(guard.remove(request.name).map_err(store_error)?.encode())
    }

    pub(super) fn folder_append(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderWriteRequest::decode(request)?;
        let mut open = self.open();
        let guard = open.folder(request.folder)?.guard()?;
        guard.append(request.name, request.text).map_err(store_error)?;
        Ok(Vec::new())
    }

    pub(super) fn folder_rename(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderRenameRequest::decode(request)?;
        let mut open = self.open();
        let guard = open.folder(request.folder)?.guard()?;
        Ok(guard.rename(request.from, request.to).map_err(store_error)?.encode())
    }

    pub(super) fn folder_path(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let mut open = self.open();
        let path = open.folder(FolderRequest::decode(request)?.folder)?.folder.path();
        let path = std::path::absolute(path).map_err(|error| {
            UdfError::raised(format!("no absolute path of {}: {error}", path.display()))
        })?;
        let text = path.to_str().ok_or_else(|| {
            UdfError::raised(format!("the path of {} is not UTF-8", path.display()))
        })?;
        Ok(text.encode())
    }

    pub(super) fn folder_create_dir(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FolderCreateDirRequest::decode(request)?;
        self.access.check_folder_writes()?;
        let mut open = self.open();
        let created = open.folder(request.folder)?.folder.create(|draft| {
            request.directories.iter().try_for_each(|name| draft.dir(name))?;
            request.files.iter().try_for_each(|(name, text)| draft.file(name, text))
        });
        Ok(created.map_err(store_error)?.encode())
    }
}
