//! [`Dispatcher`]: look up, run in a lane, time, record. HTTP, SQL, CLI and the agent loop all enter here.
//!
//! Two doors. [`Dispatcher::call`] runs the operation on the caller's thread. [`Dispatcher::call_async`] is for
//! tasks: it gives up at the deadline while the operation runs on, and it runs shipped read operations that have
//! proven fast right in the task, since a thread switch would cost several times the call.

mod call;
mod pace;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use call::{Call, CancelFlag, Reading};
pub(crate) use pace::Pace;

use crate::config::Config;
use crate::error::HostError;
use crate::lane::{Job, Lane};
use crate::plugins::{Address, Catalog, Entry, LaneChoice, Loaded};
use crate::reply::Reply;

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
}

/// How many threads a runtime that serves [`Dispatcher::call_async`] should have: more than there are cores, because
/// some of them may be inside an operation.
#[must_use]
pub fn runtime_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from) + SPARE_THREADS
}

/// Runtime threads that never run an operation in place, so that accepting and reading goes on.
const SPARE_THREADS: usize = 2;

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

    /// Runs the call on this thread and waits for the operation to be built if need be. At the deadline the
    /// operation is asked to stop; this returns when it has.
    ///
    /// # Errors
    /// Every [`HostError`] that concerns a call.
    pub fn call(&self, call: Call) -> Result<Reply, HostError> {
        let began = Instant::now();
        let found = match self.fast_entry(&call.address) {
            Some(found) => Ok(found),
            None => self.catalog.wait_ready(&call.address, self.build_deadline(&call, began)),
        };
        let (entry, loaded) = found.inspect_err(|error| log_failure(&call, began, error))?;
        let _permit = self.permit().inspect_err(|error| log_failure(&call, began, error))?;
        let deadline = self.deadline(&entry, &call, began);
        let result = self.run(&entry, &loaded, &call, (began, deadline), 0).and_then(Reply::of);
        record(&entry, &call, began, &result);
        result
    }

    /// Runs the call without holding a thread of the runtime, and answers at the deadline at the latest. When the
    /// future is dropped, because its client is gone, a read is asked to stop; a write goes on to its end.
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
        let (entry, loaded) = found.inspect_err(|error| log_failure(&call, began, error))?;
        let permit = self.permit().inspect_err(|error| log_failure(&call, began, error))?;
        let deadline = self.deadline(&entry, &call, began);
        if entry.lane_for(&loaded.hash) == LaneChoice::Inline
            && loaded.may_run_in_place(&entry.address)
            && entry.pace.is_fast()
            && let Some(_slot) = self.in_place_slot()
        {
            let result = self.run(&entry, &loaded, &call, (began, deadline), 0).and_then(Reply::of);
            record(&entry, &call, began, &result);
            return result;
        }
        self.call_on_thread(Running { entry, loaded, call, began, deadline }, permit).await
    }

    async fn call_on_thread(
        self: &Arc<Self>,
        running: Running,
        permit: OwnedSemaphorePermit,
    ) -> Result<Reply, HostError> {
        let (began, deadline) = (running.began, running.deadline);
        let shared = Arc::new((running, Fate::default()));
        let job = tokio::task::spawn_blocking({
            let (dispatcher, shared) = (Arc::clone(self), Arc::clone(&shared));
            move || {
                let (Running { entry, loaded, call, began, deadline }, fate) = &*shared;
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
                // Until here, so that calls that are stuck count as in flight.
                drop(permit);
                result
            }
        });
        let (Running { entry, loaded, call, .. }, fate) = &*shared;
        let abandoned = Abandoned(loaded.is_read_only().then_some(&call.cancel));
        let joined = tokio::time::timeout_at(deadline.into(), job).await;
        std::mem::forget(abandoned);
        match joined {
            Ok(Ok(result)) => result,
            Ok(Err(join)) => Err(HostError::Internal {
                message: "the call ended without a result".to_owned(),
                detail: join.to_string(),
            }),
            Err(_) => {
                call.cancel.cancel();
                let error = HostError::Timeout {
                    op: entry.address.clone(),
                    after: deadline.saturating_duration_since(began),
                };
                if fate.give_up() {
                    entry.stats.stuck_began();
                    record::<Reply>(entry, call, began, &Err(error.clone()));
                }
                Err(error)
            }
        }
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
        let deadline = self.deadline(&entry, &call, began).min(parent.deadline);
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
        let job = Job { dispatcher: self, entry, loaded, call, began, deadline, depth };
        let began = Instant::now();
        let result =
            catch_unwind(AssertUnwindSafe(|| self.lane.run(&job))).unwrap_or_else(|payload| {
                Err(HostError::Internal {
                    message: "the host failed while serving the call".to_owned(),
                    detail: panic_text(&*payload).to_owned(),
                })
            });
        entry.pace.record(began.elapsed());
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

    /// When the answer is due. A caller with a deadline of its own may have spent most of it waiting for the build;
    /// what the operation may take counts from now, then.
    fn deadline(&self, entry: &Entry, call: &Call, began: Instant) -> Instant {
        let own = entry.settings.timeout.unwrap_or(self.timeout);
        call.deadline.map_or(began + own, |deadline| deadline.min(Instant::now() + own))
    }

    /// How long a call waits for an operation that is being built, or has not even been found yet.
    fn build_deadline(&self, call: &Call, began: Instant) -> Instant {
        call.deadline.unwrap_or_else(|| {
            let entry = self.catalog.entry(&call.address);
            began + entry.and_then(|entry| entry.settings.timeout).unwrap_or(self.timeout)
        })
    }
}

/// A call that was given to a thread.
#[derive(Debug)]
struct Running {
    entry: Arc<Entry>,
    loaded: Arc<Loaded>,
    call: Call,
    began: Instant,
    deadline: Instant,
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

/// Cancels a read when the future that waits for it is dropped.
struct Abandoned<'a>(Option<&'a CancelFlag>);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(cancel) = self.0 {
            cancel.cancel();
        }
    }
}

/// One of the bounded number of calls that run in place.
struct InPlace<'a>(&'a AtomicUsize);

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn record<T>(entry: &Entry, call: &Call, began: Instant, result: &Result<T, HostError>) {
    let took = began.elapsed();
    entry.stats.record(took, result.is_err());
    match result {
        Ok(_) => {
            let ms = millis(took);
            tracing::info!(target: "udf_host::call", op = %call.address, ms, outcome = "ok", request = %call.request_id);
        }
        Err(error) => log_failure(call, began, error),
    }
}

/// The line of a call that failed. Whatever the operation said may hold a caller's value, so that only goes to the
/// debug level.
fn log_failure(call: &Call, began: Instant, error: &HostError) {
    let ms = millis(began.elapsed());
    let outcome = error.kind();
    match error {
        HostError::Panicked { .. }
        | HostError::Crashed { .. }
        | HostError::Undeclared { .. }
        | HostError::Internal { .. }
        | HostError::Io { .. }
        | HostError::Timeout { .. } => {
            tracing::warn!(target: "udf_host::call", op = %call.address, ms, outcome, request = %call.request_id,
                error = %error, detail = error.detail().unwrap_or_default());
        }
        _ => {
            tracing::info!(target: "udf_host::call", op = %call.address, ms, outcome, request = %call.request_id);
            tracing::debug!(target: "udf_host::call", request = %call.request_id, error = %error);
        }
    }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// The text of a panic's payload.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic whose payload is not text")
}
