//! [`OpStats`]: how often an operation was called, how it went and how long it took.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Two buckets for each power of two of microseconds: 0, 1, 2, 3, 4, 6, 8, 12 … up to 2^26 µs (about a minute).
const BUCKETS: usize = 54;

/// Counters of one operation; they outlive a reload of it.
#[derive(Debug)]
pub struct OpStats {
    calls: AtomicU64,
    errors: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
    stuck: AtomicUsize,
}

/// The counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpCounts {
    /// Calls that ended, in whatever way.
    pub calls: u64,
    /// Those that ended in an error.
    pub errors: u64,
    /// Half of the calls took at most about this long; none before the first call.
    pub p50: Option<Duration>,
    /// 99 of 100 calls took at most about this long.
    pub p99: Option<Duration>,
    /// Calls whose caller was already told "timeout" and that have still not returned.
    pub stuck: usize,
}

impl Default for OpStats {
    fn default() -> Self {
        Self {
            calls: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            stuck: AtomicUsize::new(0),
        }
    }
}

impl OpStats {
    pub(crate) fn record(&self, took: Duration, failed: bool) {
        self.calls.fetch_add(1, Relaxed);
        if failed {
            self.errors.fetch_add(1, Relaxed);
        }
        self.buckets[bucket(took)].fetch_add(1, Relaxed);
    }

    pub(crate) fn stuck_began(&self) {
        self.stuck.fetch_add(1, Relaxed);
    }

    pub(crate) fn stuck_ended(&self) {
        self.stuck.fetch_sub(1, Relaxed);
    }

    /// The counters now. Calls that end meanwhile may be in one number and not yet in another.
    #[must_use]
    pub fn counts(&self) -> OpCounts {
        let buckets: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        OpCounts {
            calls: self.calls.load(Relaxed),
            errors: self.errors.load(Relaxed),
            p50: quantile(&buckets, 50),
            p99: quantile(&buckets, 99),
            stuck: self.stuck.load(Relaxed),
        }
    }
}

/// The upper end of the bucket in which the `percent`-th part of the calls lies.
fn quantile(buckets: &[u64], percent: u64) -> Option<Duration> {
    let total: u64 = buckets.iter().sum();
    let rank = (total * percent).div_ceil(100);
    let mut seen = 0;
    buckets.iter().enumerate().find_map(|(at, count)| {
        seen += count;
        (*count > 0 && seen >= rank).then(|| upper_end(at))
    })
}

fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    if micros < 2 {
        return usize::try_from(micros).unwrap_or_default();
    }
    let exponent = micros.ilog2();
    let half = (micros >> (exponent - 1)) & 1;
    (2 * exponent as usize + usize::from(half == 1)).min(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> Duration {
    if bucket < 2 {
        return Duration::from_micros(bucket as u64 + 1);
    }
    let exponent = bucket / 2;
    let start = 1_u64 << exponent;
    Duration::from_micros(if bucket.is_multiple_of(2) { start + start / 2 } else { start * 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_lies_below_the_end_of_its_bucket_and_above_the_one_before() {
        for micros in (0..5000).chain([100_000, 30_000_000]) {
            let at = bucket(Duration::from_micros(micros));
            assert!(Duration::from_micros(micros) < upper_end(at), "{micros}");
            if at > 0 {
                assert!(Duration::from_micros(micros) >= upper_end(at - 1), "{micros}");
            }
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_follow_the_calls() {
        let stats = OpStats::default();
        assert_eq!(stats.counts(), OpCounts::default());
        for _ in 0..98 {
            stats.record(Duration::from_micros(10), false);
        }
        stats.record(Duration::from_millis(50), true);
        stats.record(Duration::from_millis(50), true);
        let counts = stats.counts();
        assert_eq!((counts.calls, counts.errors), (100, 2));
        assert_eq!(counts.p50, Some(Duration::from_micros(12)));
        assert!(counts.p99.unwrap() >= Duration::from_millis(50));
    }
}
