//! [`Bell`] wakes whoever looks for triggers before its next look is due; [`Stop`] tells everybody to come to an end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Rung when a task of this process may have something to do. Nothing is lost when it is not: triggers are durable, and
/// looked for anyway. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Bell(Arc<Ring>);

#[derive(Debug, Default)]
struct Ring {
    rung: Mutex<bool>,
    heard: Condvar,
    attended: AtomicBool,
}

impl Bell {
    /// Rings.
    pub fn ring(&self) {
        *self.0.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.heard.notify_all();
    }

    /// Waits until it rings, or until the time is over.
    pub fn wait(&self, most: Duration) {
        let rung = self.0.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut rung, _) = self
            .0
            .heard
            .wait_timeout_while(rung, most, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }

    /// Whether the loop runs in this process.
    #[must_use]
    pub fn is_attended(&self) -> bool {
        self.0.attended.load(Ordering::Relaxed)
    }

    pub(super) fn attend(&self, attended: bool) {
        self.0.attended.store(attended, Ordering::Relaxed);
    }
}

/// Set once, for good. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Tells everybody to come to an end.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was told.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_before_the_wait_is_heard_once() {
        let bell = Bell::default();
        bell.ring();
        let began = std::time::Instant::now();
        bell.wait(Duration::from_secs(600));
        assert!(began.elapsed() < Duration::from_secs(60));
        bell.wait(Duration::from_millis(1));
    }
}
