//! [`Pace`]: whether an operation has proven fast enough to run without a thread of its own.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A call this short costs less than handing it to another thread does.
const FAST: Duration = Duration::from_micros(300);
/// A call this long holds up others if it runs in place, whatever the calls before it did.
const SLOW: Duration = Duration::from_millis(20);
/// Fast calls that prove an operation.
const PROOF: u32 = 64;
/// What one call that is not fast takes from the proof. A few of them, as a busy machine causes, are forgiven.
const PENALTY: u32 = 16;

/// How fast an operation has been of late. Counts are approximate under concurrency, which is all they need to be.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    credit: AtomicU32,
    proven: AtomicBool,
    /// Calls that run in place now.
    in_place: AtomicU32,
    /// When one of them began alone, or ended: microseconds of the process's life.
    moved: AtomicU64,
}

/// A call that runs in place, until it is dropped.
pub(crate) struct Step<'a>(&'a Pace);

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.0.moved.store(now(), Relaxed);
        self.0.in_place.fetch_sub(1, Relaxed);
    }
}

fn now() -> u64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGIN.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl Pace {
    /// Whether the next call may run in place. Not while those that do seem to hang: what they wait for, it would too.
    pub(crate) fn is_fast(&self) -> bool {
        self.proven.load(Relaxed) && !self.hangs(now)
    }

    fn hangs(&self, now: impl FnOnce() -> u64) -> bool {
        self.in_place.load(Relaxed) > 0
            && u128::from(now().saturating_sub(self.moved.load(Relaxed))) >= SLOW.as_micros()
    }

    /// A call begins to run in place.
    pub(crate) fn step_in(&self) -> Step<'_> {
        if self.in_place.fetch_add(1, Relaxed) == 0 {
            self.moved.store(now(), Relaxed);
        }
        Step(self)
    }

    /// Takes note of how long a call took to run, waiting for a thread not included.
    pub(crate) fn record(&self, took: Duration) {
        let credit = self.credit.load(Relaxed);
        if took < FAST {
            if credit < PROOF {
                self.credit.store(credit + 1, Relaxed);
                if credit + 1 == PROOF {
                    self.proven.store(true, Relaxed);
                }
            }
            return;
        }
        let credit = if took < SLOW { credit.saturating_sub(PENALTY) } else { 0 };
        self.credit.store(credit, Relaxed);
        if credit < PENALTY {
            self.proven.store(false, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(calls: &[(usize, Duration)]) -> bool {
        let pace = Pace::default();
        for (times, took) in calls {
            for _ in 0..*times {
                pace.record(*took);
            }
        }
        pace.is_fast()
    }

    #[test]
    fn one_that_hangs_in_place_keeps_the_next_ones_out() {
        let pace = Pace::default();
        let later = || now() + u64::try_from(SLOW.as_micros()).unwrap();
        assert!(!pace.hangs(later));
        let first = pace.step_in();
        let began = now();
        assert!(!pace.hangs(|| began) && pace.hangs(later), "it has just begun");
        drop(pace.step_in());
        let passed = now();
        assert!(!pace.hangs(|| passed) && pace.hangs(later), "another one came through");
        drop(first);
        assert!(!pace.hangs(later), "nobody is inside");
    }

    #[test]
    fn an_operation_proves_itself_and_can_lose_it() {
        let (fast, meh, slow) =
            (Duration::from_micros(5), Duration::from_millis(2), Duration::from_millis(30));
        for (name, calls, want) in [
            ("too few", vec![(63, fast)], false),
            ("enough", vec![(64, fast)], true),
            ("one hiccup is forgiven", vec![(64, fast), (1, meh)], true),
            ("one long stall is not", vec![(64, fast), (1, slow)], false),
            ("slow of late", vec![(500, fast), (4, meh)], false),
            ("proven again", vec![(64, fast), (1, slow), (64, fast)], true),
            ("always slow", vec![(500, meh)], false),
            (
                "every fourth call slow",
                vec![(40, fast), (1, meh), (3, fast), (1, meh), (3, fast)],
                false,
            ),
        ] {
            assert_eq!(after(&calls), want, "{name}");
        }
    }
}
