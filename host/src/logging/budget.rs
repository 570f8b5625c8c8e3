//! [`Budget`]: how much one source may say in the log, so that whoever talks without end does not fill the disk.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that a source may log
const BYTES: usize = 64 << 10;
/// within this time; what it says beyond that is counted and dropped.
const WINDOW: Duration = Duration::from_secs(1);

/// How much one source may say in the log.
#[derive(Debug, Default)]
pub(crate) struct Budget(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    window: Option<Instant>,
    spent: usize,
    dropped: usize,
}

impl Budget {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a line of so many bytes may be logged; with it how many bytes were dropped before, which are then told.
    pub(crate) fn spend(&self, bytes: usize) -> (bool, usize) {
        let mut state = self.state();
        let now = Instant::now();
        if state.window.is_none_or(|began| now.duration_since(began) >= WINDOW) {
            (state.window, state.spent) = (Some(now), 0);
        }
        if state.spent >= BYTES {
            state.dropped += bytes;
            return (false, 0);
        }
        // The line end counts: a million empty lines are not nothing.
        state.spent += bytes + 1;
        (true, std::mem::take(&mut state.dropped))
    }

    /// How many bytes were dropped and not yet told.
    pub(crate) fn dropped(&self) -> usize {
        std::mem::take(&mut self.state().dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_budget_is_counted_and_told_once() {
        let budget = Budget::default();
        let logged = (0..1000).filter(|_| budget.spend(999).0).count();
        assert_eq!(logged, BYTES.div_ceil(1000));
        // Another window.
        budget.state().window = Some(Instant::now() - WINDOW);
        assert_eq!(budget.spend(1), (true, (1000 - logged) * 999));
        assert_eq!((budget.spend(1), budget.dropped()), ((true, 0), 0));
    }
}
