//! [`Pool`]: the workers of one project, or of one operation in quarantine.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::process::Process;
use super::supervisor::Supervisor;
use crate::plugins::{Address, Loaded};

/// With as many calls in each worker as this, a project gets another one.
const BUSY: usize = 8;
/// The first worker of a project may have nothing to do this many times as long as the others.
const FIRST_STAYS: u32 = 20;
/// The longest pause before a worker is started whose predecessors ended without having done anything.
const MOST_PAUSE: Duration = Duration::from_secs(2);
/// What happened longer ago than this no longer counts as a predecessor.
const FORGIVEN: Duration = Duration::from_secs(60);

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
    useless: Useless,
}

/// Workers that ended in a row without having completed a call.
#[derive(Debug, Default)]
struct Useless {
    count: u32,
    last: Option<Instant>,
    /// The earliest moment for the next one.
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
                match worker.enter(op, until) {
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
        self.state().useless.not_before
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
                state.useless.another(Instant::now());
            }
        }
        self.changed.notify_all();
    }

    /// One of its workers is gone.
    pub(super) fn went(&self, worker: &Arc<Process>) {
        let mut state = self.state();
        state.workers.retain(|other| !Arc::ptr_eq(other, worker));
        if worker.has_completed_a_call() {
            state.useless = Useless::default();
        } else if !worker.is_retired() {
            state.useless.another(Instant::now());
        }
        self.changed.notify_all();
    }

    /// Ends workers that have had nothing to do for `idle`, the last one of them after many times that.
    pub(super) fn shrink(&self, idle: Duration) {
        let state = self.state();
        let mut left = state.workers.iter().filter(|worker| worker.takes_calls()).count();
        for worker in &state.workers {
            let limit = if left > 1 { idle } else { idle * FIRST_STAYS };
            if worker.takes_calls() && worker.idle_for().is_some_and(|idle| idle >= limit) {
                worker.retire();
                left -= 1;
            }
        }
    }
}

impl Useless {
    /// Two in a row may be chance; from the third on each pause is twice the one before.
    fn another(&mut self, now: Instant) {
        if self.last.is_some_and(|last| now.duration_since(last) >= FORGIVEN) {
            self.count = 0;
        }
        self.count += 1;
        let pause = match self.count {
            0..=2 => Duration::ZERO,
            many => {
                Duration::from_millis(50).saturating_mul(1 << (many - 3).min(10)).min(MOST_PAUSE)
            }
        };
        (self.last, self.not_before) = (Some(now), Some(now + pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_are_forgotten() {
        let mut useless = Useless::default();
        let begin = Instant::now();
        let mut pause = |now: Instant| {
            useless.another(now);
            useless.not_before.unwrap().duration_since(now).as_millis()
        };
        let pauses: Vec<_> = (0..10).map(|_| pause(begin)).collect();
        assert_eq!(pauses, [0, 0, 50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(pause(begin + FORGIVEN), 0);
    }
}
