//! [`Pool`]: the workers of one project, or of one operation in quarantine.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::process::Process;
use super::supervisor::Supervisor;
use crate::plugins::{Address, Loaded};

/// With as many calls in each worker as this, a project gets another one.
const BUSY: usize = 8;
/// A worker beyond the first that had nothing to do for this long is ended,
const IDLE: Duration = Duration::from_secs(30);
/// and the first one after this.
const LONG_IDLE: Duration = Duration::from_secs(10 * 60);
/// The longest pause before a worker is started whose predecessors ended without having done anything.
const MOST_PAUSE: Duration = Duration::from_secs(2);

/// The workers of one project, or of one operation in quarantine.
#[derive(Debug)]
pub(super) struct Pool {
    /// What processes of it are called in a listing.
    pub(super) label: String,
    cap: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    workers: Vec<Arc<Process>>,
    /// How many have been asked for and are not there yet.
    coming: usize,
    /// How often starting one failed, and why the last time.
    failures: u64,
    failure: String,
    /// How many ended in a row without having completed a call.
    useless: u32,
    not_before: Option<Instant>,
}

/// Why a call has no worker.
pub(super) enum NoPlace {
    /// There was none by its time.
    Late,
    /// None could be started.
    Failed(String),
}

impl Pool {
    pub(super) fn new(label: String, cap: usize) -> Self {
        Self { label, cap: cap.max(1), state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a call into the worker with the fewest, under a number; waits for one that is being started. A worker that
    /// has an older version of the operation is retired: it ends with the calls that it has.
    pub(super) fn place(
        self: &Arc<Self>,
        supervisor: &Supervisor,
        op: &Address,
        loaded: &Loaded,
        until: Instant,
    ) -> Result<(Arc<Process>, u64), NoPlace> {
        let mut state = self.state();
        let failures = state.failures;
        loop {
            let best =
                state.workers.iter().filter(|it| it.takes_calls()).min_by_key(|it| it.load());
            if let Some(worker) = best.cloned() {
                if !worker.suits(loaded) {
                    tracing::info!(worker = worker.number(), %op,
                        "the worker has an older version of it and is replaced");
                    worker.retire();
                    continue;
                }
                if worker.load() >= BUSY && state.workers.len() + state.coming < self.cap {
                    state.coming += 1;
                    supervisor.start(self);
                }
                // Under the lock, so that nobody ends it as idle in between.
                match worker.enter(op) {
                    Some(call) => return Ok((worker, call)),
                    None => continue,
                }
            }
            if state.failures > failures {
                return Err(NoPlace::Failed(state.failure.clone()));
            }
            if state.coming == 0 {
                state.coming += 1;
                supervisor.start(self);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NoPlace::Late);
            }
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The earliest moment for another start, when the last ones came to nothing.
    pub(super) fn not_before(&self) -> Option<Instant> {
        self.state().not_before
    }

    /// One that was asked for is there, or is not.
    pub(super) fn came(&self, worker: Result<Arc<Process>, String>) {
        let mut state = self.state();
        state.coming = state.coming.saturating_sub(1);
        match worker {
            Ok(worker) => state.workers.push(worker),
            Err(error) => {
                state.failures += 1;
                state.failure = error;
                state.pause();
            }
        }
        self.changed.notify_all();
    }

    /// One of its workers is gone.
    pub(super) fn went(&self, worker: &Arc<Process>) {
        let mut state = self.state();
        state.workers.retain(|other| !Arc::ptr_eq(other, worker));
        if worker.has_completed_a_call() {
            (state.useless, state.not_before) = (0, None);
        } else if !worker.is_retired() {
            state.pause();
        }
        self.changed.notify_all();
    }

    /// Ends workers that have had nothing to do for long; true when none is left.
    pub(super) fn shrink(&self) -> bool {
        let state = self.state();
        let mut left = state.workers.iter().filter(|worker| worker.takes_calls()).count();
        for worker in &state.workers {
            let limit = if left > 1 { IDLE } else { LONG_IDLE };
            if worker.takes_calls() && worker.idle_for().is_some_and(|idle| idle >= limit) {
                worker.retire();
                left -= 1;
            }
        }
        state.workers.is_empty() && state.coming == 0
    }
}

impl State {
    /// Two in a row may be chance; from the third on each pause is twice the one before.
    fn pause(&mut self) {
        self.useless += 1;
        let pause = match self.useless {
            0..=2 => Duration::ZERO,
            many => {
                Duration::from_millis(50).saturating_mul(1 << (many - 3).min(10)).min(MOST_PAUSE)
            }
        };
        self.not_before = Some(Instant::now() + pause);
    }
}
