use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use core_store::{AppStore, Snapshot, Store, StoreError};

use super::Access;
use crate::abi::Method;
use crate::context::internal;
use crate::error::{ErrorKind, UdfError};
use crate::wire::{RandomRequest, Wire};

mod collections;
mod folders;
mod logs;

/// Most random bytes of one request.
const MAX_RANDOM: usize = 1024;

/// Where the time of a call comes from: milliseconds since 1970.
pub type Clock = fn() -> i64;

/// One call's view of the state: its snapshots, its transaction, its logs and folders, its time. What
/// is still open when it is dropped is given up.
///
/// Everything is checked against what the operation declared. The session serves the requests READ to
/// ROLLBACK, LOG_*, FOLDER_*, NOW and RANDOM of [`Method`].
#[derive(Debug)]
pub struct StoreSession {
    store: Store,
    app: AppStore,
    access: Arc<Access>,
    clock: Clock,
    now: OnceLock<i64>,
    open: Mutex<Open>,
}

/// What the call has open; numbers in requests are positions here.
#[derive(Debug, Default)]
struct Open {
    views: Vec<View>,
    transaction: Option<OpenTransaction>,
    transactions: u32,
    logs: Vec<core_store::Log>,
    folders: Vec<OpenFolder>,
}

/// What a snapshot number stands for.
#[derive(Debug)]
enum View {
    /// A snapshot of its own.
    Read(Snapshot),
    /// A collection of a transaction. The snapshot itself stays with the transaction, which changes it
    /// in place when nobody else holds it.
    Held { transaction: u32, collection: String },
}

#[derive(Debug)]
struct OpenTransaction {
    number: u32,
    changes: core_store::Transaction,
}

#[derive(Debug)]
struct OpenFolder {
    // The guard goes before the folder: fields drop in order.
    guard: Option<core_store::FolderGuard>,
    folder: core_store::Folder,
}

impl StoreSession {
    /// A session on the state directory of the call.
    pub fn new(store: &Store, app: AppStore, access: Arc<Access>) -> Self {
        Self {
            store: store.clone(),
            app,
            access,
            clock: system_time,
            now: OnceLock::new(),
            open: Mutex::default(),
        }
    }

    /// The same with another clock, asked at most once.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same at a fixed time.
    #[must_use]
    pub fn at(self, unix_ms: i64) -> Self {
        Self { now: OnceLock::from(unix_ms), ..self }
    }

    /// Answers a request, or `None` if it is not one of the session's.
    ///
    /// # Errors
    /// What the operation reads: undeclared access, a corrupt collection, a disk that refuses.
    pub fn call(&self, method: Method, request: &[u8]) -> Option<Result<Vec<u8>, UdfError>> {
        Some(match method {
            Method::READ => self.read(request),
            Method::FIND => self.find(request),
            Method::SCAN => self.scan(request),
            Method::VALUE => self.value(request),
            Method::BEGIN => self.begin(request),
            Method::COMMIT => self.commit(request),
            Method::ROLLBACK => self.rollback(request),
            Method::LOG_OPEN => self.log_open(request),
            Method::LOG_READ => self.log_read(request),
            Method::LOG_APPEND => self.log_append(request),
            Method::LOG_REMOVE => self.log_remove(request),
            Method::LOG_CREATE => self.log_create(request),
            Method::LOG_EXISTS => self.log_exists(request),
            Method::LOG_CREATE_DIR => self.log_create_dir(request),
            Method::FOLDER_OPEN => self.folder_open(request),
            Method::FOLDER_LOCK => self.folder_lock(request),
            Method::FOLDER_UNLOCK => self.folder_unlock(request),
            Method::FOLDER_READ => self.folder_read(request),
            Method::FOLDER_READ_LOSSY => self.folder_read_lossy(request),
            Method::FOLDER_LIST => self.folder_list(request),
            Method::FOLDER_REPLACE => self.folder_replace(request),
            Method::FOLDER_CREATE => self.folder_create(request),
            Method::FOLDER_REMOVE => self.folder_remove(request),
            Method::FOLDER_CREATE_DIR => self.folder_create_dir(request),
            Method::FOLDER_EXISTS => self.folder_exists(request),
            Method::FOLDER_APPEND => self.folder_append(request),
            Method::FOLDER_RENAME => self.folder_rename(request),
            Method::FOLDER_READ_ALL => self.folder_read_all(request),
            Method::FOLDER_PATH => self.folder_path(request),
            Method::NOW => Ok(self.now().encode()),
            Method::RANDOM => random(request),
            _ => return None,
        })
    }

    /// What the operation declared.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The time of the call, in milliseconds since 1970.
    pub fn now(&self) -> i64 {
        *self.now.get_or_init(self.clock)
    }

    /// Whether others may be waiting for this call: it holds collections or a folder. Another operation
    /// must not be called then, as it might wait for this one.
    pub fn holds_locks(&self) -> bool {
        let open = self.open();
        open.transaction.is_some() || open.folders.iter().any(|folder| folder.guard.is_some())
    }

    /// Whether this call may run another operation now.
    ///
    /// # Errors
    /// It is not declared, or this call holds locks.
    pub fn check_call(&self, op: &str) -> Result<(), UdfError> {
        self.access.check_call(op)?;
        if self.holds_locks() {
            return Err(UdfError::new(
                ErrorKind::Refused,
                format!(
                    "`{}` calls `{op}` while it holds a lock that `{op}` may wait for: commit or drop the \
                     transaction, or drop the folder's guard, before the call",
                    self.access.op
                ),
            ));
        }
        Ok(())
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        // A panic in the store is caught at the boundary; what is open is still what was opened.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of something just opened.
fn number(position: usize) -> Result<u32, UdfError> {
    u32::try_from(position).map_err(|_| internal("too much is open in one call"))
}

fn not_open(what: &str, number: u32) -> UdfError {
    internal(format!("{what} {number} is not open in this call"))
}

fn random(request: &[u8]) -> Result<Vec<u8>, UdfError> {
    let count = RandomRequest::decode(request)?.count as usize;
    if count > MAX_RANDOM {
        return Err(internal(format!("at most {MAX_RANDOM} random bytes at a time")));
    }
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)
        .map_err(|error| internal(format!("the system has no random bytes: {error}")))?;
    Ok(bytes.as_slice().encode())
}

fn system_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A store's error for the caller, with its causes.
fn store_error(error: StoreError) -> UdfError {
    let kind = match error {
        StoreError::Position { .. } | StoreError::NotHeld { .. } => ErrorKind::Internal,
        _ => ErrorKind::Raised,
    };
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    UdfError::new(kind, message)
}
