//! Folders of a call.

use std::path::Path;
use std::time::Duration;

use core_store::{FolderGuard, StoreError};

use super::{Open, OpenFolder, StoreSession, not_open, number, store_error};
use crate::error::{ErrorKind, UdfError};
use crate::wire::{
    Entry, FolderCreateDirRequest, FolderLockRequest, FolderNameRequest, FolderOpenRequest,
    FolderRequest, FolderWriteRequest, Wire,
};

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
        let folder = self
            .store
            .folder(Path::new(request.root), request.path, request.lock)
            .map_err(store_error)?;
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
