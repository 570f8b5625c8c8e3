//! [`Running`]: a call that was given to a thread, while its caller waits for no longer than its deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::record::{millis, record};
use super::{Call, CancelFlag, Dispatcher};
use crate::error::HostError;
use crate::plugins::{Entry, Loaded};
use crate::reply::Reply;

/// A call that may begin.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) entry: Arc<Entry>,
    pub(super) loaded: Arc<Loaded>,
    pub(super) call: Call,
    pub(super) began: Instant,
    pub(super) deadline: Instant,
    fate: Fate,
}

impl Running {
    pub(super) fn new(
        (entry, loaded): (Arc<Entry>, Arc<Loaded>),
        call: Call,
        (began, deadline): (Instant, Instant),
    ) -> Self {
        Self { entry, loaded, call, began, deadline, fate: Fate::default() }
    }

    /// What is left of its time.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Runs it to its end on the thread it was given. `permit` is held until then, so that calls that are stuck count
    /// as in flight.
    pub(super) fn finish(
        &self,
        dispatcher: &Dispatcher,
        permit: OwnedSemaphorePermit,
    ) -> Result<Reply, HostError> {
        let Self { entry, loaded, call, began, deadline, fate } = self;
        let result =
            dispatcher.run(entry, loaded, call, (*began, *deadline), 0).and_then(Reply::of);
        if fate.finish() {
            record(entry, call, *began, &result);
        } else {
            entry.stats.stuck_ended();
            let ms = millis(began.elapsed());
            tracing::warn!(target: "udf_host::call", op = %entry.address, request = %call.request_id, ms,
                "returned long after its caller was told: timeout");
        }
        drop(permit);
        result
    }

    /// Runs it to its end on its caller's own thread.
    pub(super) fn finish_here(&self, dispatcher: &Dispatcher) -> Result<Reply, HostError> {
        let Self { entry, loaded, call, began, deadline, .. } = self;
        let result = {
            let _step = entry.pace.step_in();
            dispatcher.run(entry, loaded, call, (*began, *deadline), 0).and_then(Reply::of)
        };
        record(entry, call, *began, &result);
        result
    }

    /// Its time is up: what the caller is told. None when the operation was a moment faster and its result is about to
    /// come.
    pub(super) fn give_up(&self) -> Option<HostError> {
        let Self { entry, call, began, deadline, fate, .. } = self;
        call.cancel.cancel();
        let error = HostError::Timeout {
            op: entry.address.clone(),
            after: deadline.saturating_duration_since(*began),
        };
        // Counted before it is decided: the operation may return, and be no longer stuck, right after that.
        entry.stats.stuck_began();
        if !fate.give_up() {
            entry.stats.stuck_ended();
            return None;
        }
        record::<Reply>(entry, call, *began, &Err(error.clone()));
        Some(error)
    }

    /// Cancels a read when the future that waits for it is dropped; until it is told not to.
    pub(super) fn unless_awaited(&self) -> Abandoned<'_> {
        Abandoned(self.loaded.is_read_only().then_some(&self.call.cancel))
    }
}

/// Who came first, the operation with its result or the deadline. Decided once.
#[derive(Debug, Default)]
struct Fate(AtomicU8);

impl Fate {
    /// True when the result is in time.
    fn finish(&self) -> bool {
        self.decide(1)
    }

    /// True when the deadline was first.
    fn give_up(&self) -> bool {
        self.decide(2)
    }

    fn decide(&self, outcome: u8) -> bool {
        self.0.compare_exchange(0, outcome, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Cancels a read when it is dropped.
pub(super) struct Abandoned<'a>(Option<&'a CancelFlag>);

impl Abandoned<'_> {
    /// Somebody has waited to the end.
    pub(super) fn awaited(mut self) {
        self.0 = None;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(cancel) = self.0 {
            cancel.cancel();
        }
    }
}
