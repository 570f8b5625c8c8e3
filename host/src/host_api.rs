//! [`Service`]: what a plugin may ask of the host during one call. State, time and chance are the session's, and answered
//! in whichever process the plugin runs; the rest (log lines, calls of other operations, requests over the network,
//! settings) goes to the [`Outside`] of the call, which in a worker is at the other end of a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use core_store::{AppStore, Store};
use sdk::abi::Method;
use sdk::host::{Access, HostService, StoreSession};
use sdk::wire::{CallRequest, HttpAsk, TraceRequest, Wire};
use sdk::{ErrorKind, UdfError};

use crate::dispatch::{Call, Reading};
use crate::error::HostError;
use crate::lane::Job;
use crate::net;
use crate::plugins::{Address, settings};

/// What concerns more than the call itself: the log, other operations, whoever waits for the answer.
pub(crate) trait Outside: Sync {
    /// One line of the operation's for the log; `level` as in [`TraceRequest`].
    fn trace(&self, level: u8, message: &str);
    /// Runs another operation; a reply frame.
    fn call_other(&self, op: &str, params: &[(&str, &str)]) -> Result<Vec<u8>, UdfError>;
    /// Sends one request over HTTP; the frame of the answer.
    fn http(&self, ask: &HttpAsk<'_>) -> Result<Vec<u8>, UdfError>;
    /// A setting of the project, if it has one of this name.
    fn setting(&self, name: &str) -> Result<Option<String>, UdfError>;
    /// Whether nobody wants the answer any more.
    fn is_cancelled(&self) -> bool;
    /// When the answer is due.
    fn deadline(&self) -> Instant;
    /// Given for a call that must change nothing.
    fn reading(&self) -> Option<&Reading>;
}

/// Answers the requests of one call.
pub(crate) struct Service<'a> {
    outside: &'a dyn Outside,
    session: StoreSession,
    /// Whether something was changed for good. From then on the call is let go to its end, cancelled or not: half of
    /// what an operation does would be worse than all of it.
    changed: AtomicBool,
}

impl<'a> Service<'a> {
    pub(crate) fn new(
        outside: &'a dyn Outside,
        store: &Store,
        app: AppStore,
        access: Arc<Access>,
    ) -> Self {
        let session = StoreSession::new(store, app, access);
        Self { outside, session, changed: AtomicBool::new(false) }
    }

    /// Refuses a request when nobody waits for the call any more and nothing has been changed yet. So a caller that
    /// was told "timeout" knows that what had not begun to commit will not.
    fn check_cancelled(&self, method: Method) -> Result<(), UdfError> {
        let harmless = matches!(
            method,
            Method::ROLLBACK | Method::FOLDER_UNLOCK | Method::TRACE | Method::DEADLINE
        );
        if harmless || !self.cancelled() || self.changed.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(if self.outside.is_cancelled() && Instant::now() < self.outside.deadline() {
            UdfError::new(ErrorKind::Cancelled, "the call was cancelled")
        } else {
            UdfError::new(ErrorKind::Timeout, "the call's time is up")
        })
    }

    fn trace(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let TraceRequest { level, message } = TraceRequest::decode(request)?;
        self.outside.trace(level, message);
        Ok(().encode())
    }

    fn http(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        self.session.access().check_net()?;
        let ask = HttpAsk::decode(request)?;
        // What a server was told cannot be taken back; only looks leave the call free to stop.
        if !matches!(ask.method, "GET" | "HEAD") {
            self.changed.store(true, Ordering::Relaxed);
        }
        self.outside.http(&ask)
    }

    fn setting(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        Ok(self.outside.setting(<&str>::decode(request)?)?.as_deref().encode())
    }

    fn call_other(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let CallRequest { op, params } = CallRequest::decode(request)?;
        self.session.access().check_call(op)?;
        if self.session.holds_locks() {
            return Err(UdfError::new(
                ErrorKind::Refused,
                format!(
                    "`{op}` was called inside a transaction, for which it might wait for ever: commit first"
                ),
            ));
        }
        let outcome = self.outside.call_other(op, &params);
        // What it did, if it writes, is done whatever becomes of this call.
        self.changed.store(true, Ordering::Relaxed);
        outcome
    }
}

impl HostService for Service<'_> {
    fn call(&self, method: Method, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        self.check_cancelled(method)?;
        if let Some(reading) = self.outside.reading() {
            check_reading(reading, method)?;
        }
        match method {
            Method::TRACE => return self.trace(request),
            Method::CALL => return self.call_other(request),
            Method::DEADLINE => return Ok(Some(left_ms(self.outside.deadline())).encode()),
            Method::HTTP => return self.http(request),
            Method::SETTING => return self.setting(request),
            _ => {}
        }
        let reply =
            self.session.call(method, request).unwrap_or_else(|| Err(self.unsupported(method)));
        if reply.is_ok() && changes_something(method) {
            self.changed.store(true, Ordering::Relaxed);
        }
        reply
    }

    fn cancelled(&self) -> bool {
        self.outside.is_cancelled() || Instant::now() >= self.outside.deadline()
    }
}

/// The outside of a call as the host itself serves it.
pub(crate) struct Within<'a>(pub(crate) &'a Job<'a>);

impl Outside for Within<'_> {
    fn trace(&self, level: u8, message: &str) {
        let (op, request) = (&self.0.entry.address, &*self.0.call.request_id);
        let message = one_line(message);
        let (logged, dropped) = self.0.lines.spend(message.len());
        tell_dropped(self.0, dropped);
        if !logged {
            return;
        }
        match level {
            1 => tracing::error!(target: "udf_host::plugin", %op, request, "{message}"),
            2 => tracing::warn!(target: "udf_host::plugin", %op, request, "{message}"),
            3 => tracing::info!(target: "udf_host::plugin", %op, request, "{message}"),
            4 => tracing::debug!(target: "udf_host::plugin", %op, request, "{message}"),
            _ => tracing::trace!(target: "udf_host::plugin", %op, request, "{message}"),
        }
    }

    fn call_other(&self, op: &str, params: &[(&str, &str)]) -> Result<Vec<u8>, UdfError> {
        let Self(job) = self;
        let own = &job.entry.address;
        let address = match op.split('.').collect::<Vec<_>>()[..] {
            [project, name] => Address::new(&own.workspace, project, name),
            [workspace, project, name] => Address::new(workspace, project, name),
            _ => {
                let form = "is neither `project.operation` nor `workspace.project.operation`";
                return Err(UdfError::new(ErrorKind::NotFound, format!("`{op}` {form}")));
            }
        };
        let mut app_dir = job.call.app_dir.clone();
        let mut texts = Vec::with_capacity(params.len());
        for &(name, text) in params {
            if name == "app_dir" {
                app_dir = Some(text.to_owned());
            } else {
                texts.push((name.to_owned(), text.to_owned()));
            }
        }
        let call = Call {
            address,
            params: texts,
            app_dir,
            request_id: job.call.request_id.clone(),
            deadline: Some(job.deadline),
            cancel: job.call.cancel.clone(),
            reading: job.call.reading.clone(),
        };
        job.dispatcher.call_nested(job, call).map_err(to_udf_error)?.encode()
    }

    fn http(&self, ask: &HttpAsk<'_>) -> Result<Vec<u8>, UdfError> {
        if self.0.dispatcher.is_offline() {
            return Err(UdfError::raised("no answer: this host keeps operations from the network"));
        }
        net::send(ask, self.0.deadline)
    }

    fn setting(&self, name: &str) -> Result<Option<String>, UdfError> {
        let project = self.0.entry.folder.parent();
        let value = project.map(|project| settings::read(project, name));
        Ok(value.transpose().map_err(UdfError::raised)?.flatten())
    }

    fn is_cancelled(&self) -> bool {
        self.0.call.cancel.is_cancelled()
    }

    fn deadline(&self) -> Instant {
        self.0.deadline
    }

    fn reading(&self) -> Option<&Reading> {
        self.0.call.reading.as_deref()
    }
}

fn changes_something(method: Method) -> bool {
    matches!(
        method,
        Method::COMMIT
            | Method::LOG_APPEND
            | Method::LOG_REMOVE
            | Method::LOG_CREATE
            | Method::FOLDER_REPLACE
            | Method::FOLDER_CREATE
            | Method::FOLDER_REMOVE
            | Method::FOLDER_CREATE_DIR
            | Method::FOLDER_APPEND
            | Method::FOLDER_RENAME
    )
}

/// Of a call that must change nothing: refuses what would, and notes what it depends on beside collections.
fn check_reading(reading: &Reading, method: Method) -> Result<(), UdfError> {
    if changes_something(method) || method == Method::HTTP {
        let message =
            "it tried to change something while it was read in SQL, where nothing can be changed";
        return Err(UdfError::new(ErrorKind::Refused, message));
    }
    let collections =
        [Method::READ, Method::FIND, Method::SCAN, Method::VALUE, Method::TRACE, Method::DEADLINE];
    if !collections.contains(&method) {
        reading.note_beyond();
    }
    Ok(())
}

fn left_ms(deadline: Instant) -> u64 {
    let left: Duration = deadline.saturating_duration_since(Instant::now());
    u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
}

/// Says in the log that something is missing there.
pub(crate) fn tell_dropped(job: &Job<'_>, bytes: usize) {
    if bytes > 0 {
        let (op, request) = (&job.entry.address, &*job.call.request_id);
        tracing::warn!(target: "udf_host::plugin", %op, request, bytes, "it says more than is logged; the rest was dropped");
    }
}

/// A line of a plugin's stays one line of the log, and of bounded length.
fn one_line(message: &str) -> String {
    const MOST: usize = 4096;
    let mut line = String::with_capacity(message.len().min(MOST));
    for c in message.chars() {
        if line.len() >= MOST {
            line.push('…');
            break;
        }
        match c {
            '\n' => line.push_str("\\n"),
            c if c.is_control() => line.push(' '),
            c => line.push(c),
        }
    }
    line
}

/// What an operation reads when the one it called failed.
fn to_udf_error(error: HostError) -> UdfError {
    let kind = match &error {
        HostError::UnknownWorkspace { .. }
        | HostError::UnknownProject { .. }
        | HostError::UnknownOp { .. }
        | HostError::UnknownName { .. } => ErrorKind::NotFound,
        HostError::BadRequest { .. } | HostError::BadParameter { .. } => ErrorKind::BadParameter,
        HostError::Raised { .. } => ErrorKind::Raised,
        HostError::Panicked { .. } | HostError::Crashed { .. } => ErrorKind::Panicked,
        HostError::Overloaded { .. } => ErrorKind::Overloaded,
        HostError::StillBuilding { .. } | HostError::Timeout { .. } => ErrorKind::Timeout,
        HostError::Cancelled { .. } => ErrorKind::Cancelled,
        HostError::Undeclared { .. }
        | HostError::Refused { .. }
        | HostError::Remote { .. }
        | HostError::Sql(_)
        | HostError::Internal { .. }
        | HostError::Config { .. }
        | HostError::PortTaken { .. }
        | HostError::Io { .. } => ErrorKind::Internal,
    };
    UdfError::new(kind, error.to_string())
}

/// What a caller gets for an error that an operation ended with.
pub(crate) fn to_host_error(error: &UdfError, job: &Job<'_>, limit: usize) -> HostError {
    let op = job.entry.address.clone();
    let message = error.message().to_owned();
    match error.kind() {
        ErrorKind::BadParameter => HostError::BadParameter { message },
        // An operation that it calls is not there: its own affair, not the caller's wrong address.
        ErrorKind::Raised | ErrorKind::NotFound => HostError::Raised { message },
        ErrorKind::Panicked => {
            // The plugin names itself by its short name; the host's own words name it in full.
            let own = format!("`{}` panicked: ", op.op);
            let message = message.strip_prefix(&own).unwrap_or(&message).to_owned();
            HostError::Panicked { op, message }
        }
        ErrorKind::Cancelled => HostError::Cancelled { op },
        ErrorKind::Timeout => job.timeout(),
        ErrorKind::Refused => HostError::Undeclared { op, message },
        ErrorKind::Overloaded => HostError::Overloaded { limit },
        ErrorKind::Unsupported | ErrorKind::Internal => {
            HostError::Internal { message, detail: format!("{:?} in {op}", error.kind()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugins_line_stays_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[31mc\r"), "a\\nb [31mc ");
        let long = one_line(&"x".repeat(10_000));
        assert!(long.len() < 4200 && long.ends_with('…'));
    }
}
