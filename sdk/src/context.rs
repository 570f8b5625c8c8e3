use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use abi_stable::std_types::{RResult, RVec};

use crate::abi::{HostApiRef, HostHandle, Method};
use crate::collection::Collection;
use crate::error::{ErrorKind, UdfError};
use crate::folder::Folder;
use crate::log::Log;
use crate::reply::Reply;
use crate::time::Timestamp;
use crate::transaction::Transaction;
use crate::wire::{
    BeginRequest, Begun, CallRequest, FolderOpenRequest, LogCreateDirRequest, LogOpenRequest,
    Opened, RandomRequest, ReadRequest, TraceRequest, Wire,
};

/// What an operation may do, for the length of one call.
///
/// A fault of the host during a look into a collection does not show in the look itself, which then
/// finds nothing: the fault is kept, every later request answers with it, and so does the call as a
/// whole, whatever the function returns.
pub struct Context {
    api: HostApiRef,
    handle: HostHandle,
    fault: OnceLock<UdfError>,
    now: OnceLock<Timestamp>,
}

impl Context {
    /// Wraps a host. `handle` must name a call of this host that runs at least as long as the context
    /// lives; the entry of a plugin and the hosts in this crate uphold that.
    pub(crate) fn new(api: HostApiRef, handle: HostHandle) -> Self {
        Self { api, handle, fault: OnceLock::new(), now: OnceLock::new() }
    }

    /// A collection as it is now; it does not change while the call looks at it. A missing or
    /// unreadable file reads as empty (the app-store contract §5); `Collection::state` tells.
    ///
    /// # Errors
    /// The collection is not declared in `reads` or `writes`.
    pub fn read(&self, collection: &str) -> Result<Collection<'_>, UdfError> {
        let frame = self.request(Method::READ, &ReadRequest { collection })?;
        Ok(Collection::new(self, &Opened::decode(&frame)?))
    }

    /// Locks collections, waiting for other writers, and opens a change that is made as a whole by
    /// `Transaction::commit` or not at all.
    ///
    /// # Errors
    /// A collection is not declared in `writes`, or its file is corrupt: then nothing may be written
    /// (the app-store contract §5), or another transaction of this call is still open.
    pub fn begin(&self, collections: &[&str]) -> Result<Transaction<'_>, UdfError> {
        let request = BeginRequest { collections: collections.to_vec() };
        let frame = self.request(Method::BEGIN, &request)?;
        Ok(Transaction::new(self, &Begun::decode(&frame)?, collections))
    }

    /// The log with this id below a directory of the app directory; `None` if the id cannot name one:
    /// empty, leading out of the directory, too long (the app-store contract §10).
    ///
    /// # Errors
    /// The directory is not declared in `logs`.
    pub fn log(&self, directory: &str, id: &str) -> Result<Option<Log<'_>>, UdfError> {
        let frame = self.request(Method::LOG_OPEN, &LogOpenRequest { directory, id })?;
        Ok(Option::<u32>::decode(&frame)?.map(|log| Log::new(self, log)))
    }

    /// Creates the directory that logs of a kind live in, before there is one (the app-store contract
    /// §3).
    ///
    /// # Errors
    /// The directory is not declared in `logs`, or the disk refuses.
    pub fn create_log_directory(&self, directory: &str) -> Result<(), UdfError> {
        self.request(Method::LOG_CREATE_DIR, &LogCreateDirRequest { directory })?;
        Ok(())
    }

    /// A directory below `root` as a folder: documents that are read and replaced whole, under one lock
    /// whose file is `lock`. `path` is plain names below the root, which it cannot leave. An empty
    /// `root` is the app directory of the call; a relative one is relative to the host's working directory.
    /// Touches nothing.
    ///
    /// # Errors
    /// The operation does not declare `folders`, or the names are not plain.
    pub fn folder(&self, root: &str, path: &str, lock: &str) -> Result<Folder<'_>, UdfError> {
        let request = FolderOpenRequest { root, path, lock };
        let frame = self.request(Method::FOLDER_OPEN, &request)?;
        Ok(Folder::new(self, u32::decode(&frame)?))
    }

    /// The time of this call: the same at every ask (the app-store contract §6).
    pub fn now(&self) -> Timestamp {
        *self.now.get_or_init(|| {
            let ms = self.look(Method::NOW, &(), |frame| i64::decode(frame));
            Timestamp::from_unix_ms(ms.unwrap_or_default())
        })
    }

    /// A new id: the prefix and 12 lower-case hex digits from the operating system's random source
    /// (the app-store contract §6).
    pub fn mint(&self, prefix: &str) -> String {
        format!("{prefix}{}", hex(&self.random::<6>()))
    }

    /// A random UUID (version 4) as 32 lower-case hex digits.
    pub fn uuid(&self) -> String {
        let mut bytes = self.random::<16>();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        hex(&bytes)
    }

    /// Bytes from the operating system's random source.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let count = u32::try_from(N).unwrap_or(u32::MAX);
        self.look(Method::RANDOM, &RandomRequest { count }, |frame| {
            let bytes = <&[u8]>::decode(frame)?;
            Ok(bytes.try_into().unwrap_or([0; N]))
        })
        .unwrap_or([0; N])
    }

    /// Runs another operation, `project.op` or `workspace.project.op`, in the same app directory and
    /// within the same deadline.
    ///
    /// # Errors
    /// The operation is not declared in `calls`, does not exist or fails; or a transaction of this call
    /// is still open, for which the other operation might wait for ever.
    pub fn call(&self, op: &str, params: &[(&str, &str)]) -> Result<Reply, UdfError> {
        let frame = self.request(Method::CALL, &CallRequest { op, params: params.to_vec() })?;
        Reply::decode(&frame)
    }

    /// Whether the caller has gone away or the deadline has passed: for loops that run long.
    pub fn cancelled(&self) -> bool {
        self.api.cancelled()(self.handle)
    }

    /// How much time is left; `None` without a deadline.
    pub fn deadline(&self) -> Option<Duration> {
        self.look(Method::DEADLINE, &(), |frame| Option::<u64>::decode(frame))?
            .map(Duration::from_millis)
    }

    /// A line for the host's log, which adds operation and request.
    pub fn error(&self, message: &str) {
        self.log_line(1, message);
    }

    /// As [`Context::error`], for what is odd but handled.
    pub fn warn(&self, message: &str) {
        self.log_line(2, message);
    }

    /// As [`Context::error`], for what an operator wants to know.
    pub fn info(&self, message: &str) {
        self.log_line(3, message);
    }

    /// As [`Context::error`], for the author.
    pub fn debug(&self, message: &str) {
        self.log_line(4, message);
    }

    /// As [`Context::error`], for the author, in every detail.
    pub fn trace(&self, message: &str) {
        self.log_line(5, message);
    }

    fn log_line(&self, level: u8, message: &str) {
        self.look(Method::TRACE, &TraceRequest { level, message }, |frame| <()>::decode(frame));
    }

    /// One request to the host. After a fault every request answers with that fault.
    pub(crate) fn request<'a>(
        &self,
        method: Method,
        request: &impl Wire<'a>,
    ) -> Result<RVec<u8>, UdfError> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        let frame = request.encode();
        match self.api.call()(self.handle, method.0, frame.as_slice().into()) {
            RResult::ROk(reply) => Ok(reply),
            RResult::RErr(error) => Err(UdfError::decode(&error)),
        }
    }

    /// A request whose failure is kept as the fault of the call.
    pub(crate) fn look<'a, T>(
        &self,
        method: Method,
        request: &impl Wire<'a>,
        read: impl FnOnce(&[u8]) -> Result<T, crate::wire::WireError>,
    ) -> Option<T> {
        let outcome =
            self.request(method, request).and_then(|frame| read(&frame).map_err(UdfError::from));
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Keeps the first fault.
    pub(crate) fn fail(&self, error: UdfError) {
        let _ = self.fault.set(error);
    }

    /// The fault of the call, if there was one.
    pub(crate) fn fault(&self) -> Option<&UdfError> {
        self.fault.get()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("handle", &self.handle).field("fault", &self.fault).finish()
    }
}

/// An `Internal` error for what the SDK itself rules out.
pub(crate) fn internal(message: impl Into<String>) -> UdfError {
    UdfError::new(ErrorKind::Internal, message)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
