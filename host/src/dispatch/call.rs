//! [`Call`]: what is asked of an operation, and the flag that takes it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::plugins::Address;

/// What is asked of an operation.
#[derive(Debug, Clone)]
pub struct Call {
    /// Which operation.
    pub address: Address,
    /// Name and text of each parameter, `app_dir` not among them.
    pub params: Vec<(String, String)>,
    /// The state folder the caller named; absent or empty means the host's.
    pub app_dir: Option<String>,
    /// What the log calls this call.
    pub request_id: String,
    /// The latest moment for an answer; absent means what the operation's settings allow.
    pub deadline: Option<Instant>,
    /// Set by whoever no longer wants the answer.
    pub cancel: CancelFlag,
    /// Given for a call that must change nothing, whatever the operation declares.
    pub reading: Option<Arc<Reading>>,
}

impl Call {
    /// A call without parameters, with an id of its own.
    #[must_use]
    pub fn new(address: Address) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            address,
            params: Vec::new(),
            app_dir: None,
            request_id: format!("c{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            deadline: None,
            cancel: CancelFlag::default(),
            reading: None,
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, name: &str, value: &str) -> Self {
        self.params.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Watches a call that must change nothing: the host refuses it every change.
#[derive(Debug, Default)]
pub struct Reading {
    beyond: AtomicBool,
}

impl Reading {
    /// Whether the operation asked the host for more than collections: for the time, a log, another operation. If
    /// not, a shipped operation answers the same until a collection changes.
    #[must_use]
    pub fn beyond_collections(&self) -> bool {
        self.beyond.load(Ordering::Relaxed)
    }

    pub(crate) fn note_beyond(&self) {
        self.beyond.store(true, Ordering::Relaxed);
    }
}

/// Asks a running call to stop. The operation sees it at its next request of the host; a write whose commit has
/// begun is completed.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the call to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
