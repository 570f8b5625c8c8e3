//! [`Dispatcher`]: look up, run in a lane, time, record. HTTP, SQL, CLI and the agent loop all enter here.
//!
//! Two doors, one rule: whoever asks has an answer at the deadline, and an operation that runs on is counted as stuck
//! until it returns. [`Dispatcher::call`] is for threads, [`Dispatcher::call_async`] for tasks. Shipped read operations
//! that have proven fast run right there, since handing them to another thread would cost several times the call.

mod call;
mod pace;
mod record;
mod running;
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use call::{Call, CancelFlag, Reading};
pub(crate) use pace::Pace;

use crate::config::Config;
use crate::error::HostError;
use crate::host_api::tell_dropped;
use crate::lane::{Job, Lane};
use crate::logging::budget::Budget;
use crate::plugins::{Address, Catalog, Entry, LaneChoice, Loaded};
use crate::reply::Reply;
use record::{log_failure, record};
use running::Running;
use threads::Threads;

/// Operations may call operations, this deep.
const MAX_DEPTH: usize = 16;

/// Finds and runs operations. One per host.
#[derive(Debug)]
pub struct Dispatcher {
    catalog: Arc<Catalog>,
    lane: Box<dyn Lane>,
    timeout: Duration,
    app_dir: Option<PathBuf>,
    limit: usize,
    permits: Arc<Semaphore>,
    in_place: AtomicUsize,
    in_place_limit: usize,
    offline: bool,
    threads: Threads,
}

/// How many threads a runtime that serves [`Dispatcher::call_async`] should have: more than there are cores, because
/// some of them may be inside an operation.
#[must_use]
pub fn runtime_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from) + SPARE_THREADS
}

/// Runtime threads that never run an operation in place, so that accepting and reading goes on.
const SPARE_THREADS: usize = 2;

/// How long a call without a deadline of its own waits for its operation to be built.
pub(crate) const FIRST_BUILD: Duration = Duration::from_secs(300);

impl Dispatcher {
    pub(crate) fn new(catalog: Arc<Catalog>, lane: Box<dyn Lane>, config: &Config) -> Self {
        Self {
            catalog,
            lane,
            timeout: config.timeout,
            app_dir: config.app_dir.clone(),
            limit: config.in_flight,
            permits: Arc::new(Semaphore::new(config.in_flight)),
            in_place: AtomicUsize::new(0),
            in_place_limit: runtime_threads() - SPARE_THREADS,
            offline: config.offline,
            threads: Threads::default(),
        }
    }

    /// Whether operations are kept from the network.
    pub(crate) fn is_offline(&self) -> bool {
        self.offline
    }

    /// Calls that run now, those among them that are stuck included, and how many may.
    #[must_use]
    pub fn in_flight(&self) -> (usize, usize) {
        (self.limit.saturating_sub(self.permits.available_permits()), self.limit)
    }

    /// Which operations there are.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Calls it and waits, for it to be built as well if need be, for no longer than its deadline. The operation is
    /// asked to stop then, and runs on until it does.
    ///
    /// # Errors
    /// Every [`HostError`] that concerns a call.
    pub fn call(self: &Arc<Self>, call: Call) -> Result<Reply, HostError> {
        self.call_watched(call, Duration::MAX, || {})
    }

    /// [`Dispatcher::call`] that says so when it has waited for `patience`.
    ///
    /// # Errors
    /// Every [`HostError`] that concerns a call.
    pub(crate) fn call_watched(
        self: &Arc<Self>,
        call: Call,
        patience: Duration,
        slow: impl FnOnce(),
    ) -> Result<Reply, HostError> {
        let began = Instant::now();
        let found = match self.fast_entry(&call.address) {
            Some(found) => Ok(found),
            None => self.catalog.wait_ready(&call.address, self.build_deadline(&call, began)),
        };
        let found = found.inspect_err(|error| log_failure(&call, began, error))?;
        let permit = self.permit().inspect_err(|error| log_failure(&call, began, error))?;
        let deadline = self.deadline(&found.0, &call);
        let running = Running::new(found, call, (began, deadline));
        if may_run_in_place(&running) {
            return running.finish_here(self);
        }
        let running = Arc::new(running);
        let (sender, outcome) = mpsc::sync_channel(1);
        let job = {
            let (dispatcher, running) = (Arc::clone(self), Arc::clone(&running));
            move || {
                // A caller that gave up has been told, and counted the call as stuck.
                let _given_up = sender.send(running.finish(&dispatcher, permit));
            }
        };
        if let Err(error) = self.threads.run(job) {
            let error = HostError::Internal {
                message: "the system has no thread left for the call".to_owned(),
                detail: error.to_string(),
            };
            record::<Reply>(&running.entry, &running.call, began, &Err(error.clone()));
            return Err(error);
        }
        let mut result = outcome.recv_timeout(patience.min(running.left()));
        if matches!(result, Err(RecvTimeoutError::Timeout)) && !running.left().is_zero() {
            slow();
            result = outcome.recv_timeout(running.left());
        }
        match result {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => match running.give_up() {
                Some(error) => Err(error),
                None => outcome.recv().map_err(|gone| no_result(&gone))?,
            },
            Err(gone @ RecvTimeoutError::Disconnected) => Err(no_result(&gone)),
        }
    }

    /// [`Dispatcher::call`] without holding a thread of the runtime. When the future is dropped, because its client is
    /// gone, a read is asked to stop; a write goes on to its end.
    ///
    /// # Errors
    /// Every [`HostError`] that concerns a call.
    pub async fn call_async(self: &Arc<Self>, call: Call) -> Result<Reply, HostError> {
        let began = Instant::now();
        let found = match self.fast_entry(&call.address) {
            Some(found) => Ok(found),
            // Waits without a permit: calls of what is being built must not keep what is ready from running.
            None => self.catalog.ready(&call.address, self.build_deadline(&call, began)).await,
        };
        let found = found.inspect_err(|error| log_failure(&call, began, error))?;
        let permit = self.permit().inspect_err(|error| log_failure(&call, began, error))?;
        let deadline = self.deadline(&found.0, &call);
        let running = Running::new(found, call, (began, deadline));
        // Not on the last threads of the runtime, so that accepting and reading goes on.
        if may_run_in_place(&running)
            && let Some(_slot) = self.in_place_slot()
        {
            return running.finish_here(self);
        }
        let running = Arc::new(running);
        let mut job = tokio::task::spawn_blocking({
            let (dispatcher, running) = (Arc::clone(self), Arc::clone(&running));
            move || running.finish(&dispatcher, permit)
        });
        let abandoned = running.unless_awaited();
        let joined = tokio::time::timeout_at(deadline.into(), &mut job).await;
        abandoned.awaited();
        let joined = match joined {
            Ok(joined) => joined,
            Err(_) => match running.give_up() {
                Some(error) => return Err(error),
                None => job.await,
            },
        };
        joined.map_err(|join| no_result(&join))?
    }

    /// An operation calls another. It takes no permit of its own: its caller holds one, and waiting for a second
    /// while holding a first is how everybody comes to wait for everybody.
    pub(crate) fn call_nested(
        &self,
        parent: &Job<'_>,
        call: Call,
    ) -> Result<sdk::Reply, HostError> {
        let began = Instant::now();
        let depth = parent.depth + 1;
        if depth > MAX_DEPTH {
            return Err(HostError::Raised {
                message: format!(
                    "`{}` was called {MAX_DEPTH} calls deep; that looks like a circle",
                    call.address
                ),
            });
        }
        let found = match self.fast_entry(&call.address) {
            Some(found) => Ok(found),
            None => self.catalog.wait_ready(&call.address, parent.deadline),
        };
        let (entry, loaded) = found.inspect_err(|error| log_failure(&call, began, error))?;
        let deadline = self.deadline(&entry, &call).min(parent.deadline);
        let result = self.run(&entry, &loaded, &call, (began, deadline), depth);
        record(&entry, &call, began, &result);
        result
    }

    /// Runs it in its lane. A panic of the host's own side of the call ends here.
    fn run(
        &self,
        entry: &Entry,
        loaded: &Loaded,
        call: &Call,
        (began, deadline): (Instant, Instant),
        depth: usize,
    ) -> Result<sdk::Reply, HostError> {
        let lines = Budget::default();
        let job = Job { dispatcher: self, entry, loaded, call, began, deadline, depth, lines };
        let began = Instant::now();
        let result =
            catch_unwind(AssertUnwindSafe(|| self.lane.run(&job))).unwrap_or_else(|payload| {
                Err(HostError::Internal {
                    message: "the host failed while serving the call".to_owned(),
                    detail: panic_text(&*payload).to_owned(),
                })
            });
        entry.pace.record(began.elapsed());
        tell_dropped(&job, job.lines.dropped());
        result
    }

    /// The state folder of a call that names this one, or none: the parameter, then `--app-dir`, then the chain of
    /// the app-store contract §2.
    #[must_use]
    pub fn app_dir(&self, param: Option<&str>) -> PathBuf {
        match (param.filter(|dir| !dir.is_empty()), &self.app_dir) {
            (None, Some(dir)) => dir.clone(),
            (param, _) => core_store::resolve_app_dir(param),
        }
    }

    fn fast_entry(&self, address: &Address) -> Option<(Arc<Entry>, Arc<Loaded>)> {
        let entry = self.catalog.entry(address)?;
        let loaded = entry.ready()?;
        Some((entry, loaded))
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, HostError> {
        Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|_| HostError::Overloaded { limit: self.limit })
    }

    fn in_place_slot(&self) -> Option<InPlace<'_>> {
        let slot = InPlace(&self.in_place);
        // The slot is taken first and given back by its drop if it was one too many.
        (self.in_place.fetch_add(1, Ordering::Relaxed) < self.in_place_limit).then_some(slot)
    }

    /// When the answer is due: what the operation may take counts from now, whatever was spent waiting for the build, but
    /// not beyond a deadline of the caller's own.
    fn deadline(&self, entry: &Entry, call: &Call) -> Instant {
        let due = Instant::now() + entry.settings.timeout.unwrap_or(self.timeout);
        call.deadline.map_or(due, |deadline| deadline.min(due))
    }

    /// How long a call waits for an operation that is being built, or has not even been found yet.
    /// Without a deadline of its own it waits much longer than it may run: the first build of all takes a minute.
    fn build_deadline(&self, call: &Call, began: Instant) -> Instant {
        call.deadline.unwrap_or(began + self.timeout.max(FIRST_BUILD))
    }
}

/// One of the bounded number of calls that run in place.
struct InPlace<'a>(&'a AtomicUsize);

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the call may run on its caller's thread: nothing in it waits, and it has proven fast.
fn may_run_in_place(running: &Running) -> bool {
    let Running { entry, loaded, .. } = running;
    entry.lane_of(loaded) == LaneChoice::Inline
        && loaded.may_run_in_place(&entry.address)
        && entry.pace.is_fast()
}

fn no_result(why: &impl ToString) -> HostError {
    HostError::Internal {
        message: "the call ended without a result".to_owned(),
        detail: why.to_string(),
    }
}

/// The text of a panic's payload.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic whose payload is not text")
}
