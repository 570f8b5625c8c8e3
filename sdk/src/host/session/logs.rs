//! Logs of a call.

use core_store::Log;

use super::{Open, StoreSession, not_open, number, store_error};
use crate::error::UdfError;
use crate::wire::{
    LogAppendRequest, LogCreateDirRequest, LogCreateRequest, LogOpenRequest, LogRequest, Texts,
    Wire,
};

impl Open {
    pub(super) fn log(&self, number: u32) -> Result<&Log, UdfError> {
        self.logs.get(number as usize).ok_or_else(|| not_open("log", number))
    }
}

impl StoreSession {
    pub(super) fn log_open(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = LogOpenRequest::decode(request)?;
        self.access.check_logs(request.directory)?;
        let Some(log) = self.app.log(request.directory, request.id) else {
            return Ok(None::<u32>.encode());
        };
        let mut open = self.open();
        let number = number(open.logs.len())?;
        open.logs.push(log);
        Ok(Some(number).encode())
    }

    pub(super) fn log_read(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let open = self.open();
        let entries = open.log(LogRequest::decode(request)?.log)?.read().map_err(store_error)?;
        let mut texts = Texts::default();
        for entry in &entries {
            texts.push(entry)?;
        }
        Ok(texts.encode())
    }

    pub(super) fn log_append(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = LogAppendRequest::decode(request)?;
        self.open().log(request.log)?.append(request.entry).map_err(store_error)?;
        Ok(Vec::new())
    }

    pub(super) fn log_remove(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let open = self.open();
        let removed = open.log(LogRequest::decode(request)?.log)?.remove().map_err(store_error)?;
        Ok(removed.encode())
    }

    pub(super) fn log_create(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = LogCreateRequest::decode(request)?;
        let open = self.open();
        let created = open.log(request.log)?.create(request.entries).map_err(store_error)?;
        Ok(created.encode())
    }

    pub(super) fn log_exists(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let open = self.open();
        let exists = open.log(LogRequest::decode(request)?.log)?.exists().map_err(store_error)?;
        Ok(exists.encode())
    }

    pub(super) fn log_create_dir(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let directory = LogCreateDirRequest::decode(request)?.directory;
        self.access.check_logs(directory)?;
        self.app.create_log_dir(directory).map_err(store_error)?;
        Ok(Vec::new())
    }
}
