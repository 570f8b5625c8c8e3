use crate::abi::Method;
use crate::context::Context;
use crate::error::UdfError;
use crate::json::JsonText;
use crate::record::Record;
use crate::wire::{LogAppendRequest, LogCreateRequest, LogRequest, Texts, Wire};

/// An append-only file of JSON values, one per line (the app-store contract §10).
#[derive(Debug)]
pub struct Log<'c> {
    context: &'c Context,
    log: u32,
}

impl<'c> Log<'c> {
    pub(crate) fn new(context: &'c Context, log: u32) -> Self {
        Self { context, log }
    }

    pub(crate) fn number(&self) -> u32 {
        self.log
    }

    /// Every entry that can be read, in order; none if there is no file. Lines that are not JSON, such
    /// as a torn last one, are passed over.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> Result<Vec<Record>, UdfError> {
        let frame = self.context.request(Method::LOG_READ, &LogRequest { log: self.log })?;
        Ok(Record::of_texts(&Texts::decode(&frame)?))
    }

    /// Adds one entry; it is on disk when this returns. The file and its directory are created.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn append(&self, entry: impl Into<JsonText>) -> Result<(), UdfError> {
        let entry = entry.into();
        let request = LogAppendRequest { log: self.log, entry: entry.as_str() };
        self.context.request(Method::LOG_APPEND, &request)?;
        Ok(())
    }

    /// Deletes the file; false if there was none.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn remove(&self) -> Result<bool, UdfError> {
        let frame = self.context.request(Method::LOG_REMOVE, &LogRequest { log: self.log })?;
        Ok(bool::decode(&frame)?)
    }

    /// Writes a whole log in one step; false, and nothing written, if the file exists.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn create(&self, entries: &[JsonText]) -> Result<bool, UdfError> {
        let entries = entries.iter().map(JsonText::as_str).collect();
        let request = LogCreateRequest { log: self.log, entries };
        Ok(bool::decode(&self.context.request(Method::LOG_CREATE, &request)?)?)
    }

    /// Whether the file exists.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn exists(&self) -> Result<bool, UdfError> {
        let frame = self.context.request(Method::LOG_EXISTS, &LogRequest { log: self.log })?;
        Ok(bool::decode(&frame)?)
    }
}
