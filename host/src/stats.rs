//! [`OpStats`]: how often an operation was called, how it went and how long it took.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Buckets of a power of two: what a quantile says is at most an eighth too high.
const STEPS: usize = 8;
/// Below this many microseconds each has a bucket of its own.
const SINGLE: usize = STEPS;
/// Powers of two above that, up to 2^26 µs (about a minute), which is where the last bucket begins to hold the rest.
const POWERS: usize = 23;
const BUCKETS: usize = SINGLE + POWERS * STEPS;

/// Counters of one operation; they outlive a reload of it.
#[derive(Debug)]
pub struct OpStats {
    calls: AtomicU64,
    errors: AtomicU64,
    nanos: AtomicU64,
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
            nanos: AtomicU64::new(0),
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
        self.nanos.fetch_add(nanos(took), Relaxed);
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

    /// How many calls took at most 2^4, 2^6, 2^8 … 2^24 µs, how many there were, and what all of them took together.
    /// The numbers fit each other: all are of one look at the buckets.
    #[must_use]
    pub fn durations(&self) -> Durations {
        let mut total = 0;
        let mut within = Vec::with_capacity(11);
        for (at, bucket) in self.buckets.iter().enumerate() {
            total += bucket.load(Relaxed);
            let end = upper_end(at);
            let micros = end.as_micros();
            if micros.is_power_of_two()
                && (4..=24).contains(&micros.ilog2())
                && micros.ilog2().is_multiple_of(2)
            {
                within.push((end, total));
            }
        }
        Durations { within, count: total, sum: Duration::from_nanos(self.nanos.load(Relaxed)) }
    }
}

/// How long calls took, for those who add up the numbers of several hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations {
    /// A time, and how many calls took at most that long.
    pub within: Vec<(Duration, u64)>,
    /// All calls.
    pub count: u64,
    /// What they took together.
    pub sum: Duration,
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

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The upper end belongs to the bucket: 2 µs sharp are in the second.
fn bucket(took: Duration) -> usize {
    let micros = nanos(took).saturating_sub(1) / 1000;
    let Ok(micros) = usize::try_from(micros) else { return BUCKETS - 1 };
    if micros < SINGLE {
        return micros;
    }
    let power = micros.ilog2() as usize;
    let shift = power - STEPS.ilog2() as usize;
    let step = (micros >> shift) - STEPS;
    (SINGLE + shift * STEPS + step).min(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> Duration {
    let micros = match bucket.checked_sub(SINGLE) {
        None => bucket + 1,
        Some(at) => (STEPS + at % STEPS + 1) << (at / STEPS),
    };
    Duration::from_micros(micros as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_lies_in_its_bucket_and_a_bucket_is_narrow() {
        let times = (1..20_000).step_by(7).map(Duration::from_nanos);
        let times = times.chain((1..5000).map(Duration::from_micros));
        for time in times.chain([100, 1024, 4096, 30_000].map(Duration::from_millis)) {
            let at = bucket(time);
            assert!(time <= upper_end(at), "{time:?} is above {:?}", upper_end(at));
            if at > 0 {
                assert!(time > upper_end(at - 1), "{time:?}");
                assert!(at < SINGLE || upper_end(at) <= upper_end(at - 1) * 9 / 8, "{time:?}");
            }
        }
        assert_eq!((bucket(Duration::ZERO), bucket(Duration::MAX)), (0, BUCKETS - 1));
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
        assert_eq!(counts.p50, Some(Duration::from_micros(10)));
        let p99 = counts.p99.unwrap();
        assert!(p99 >= Duration::from_millis(50) && p99 < Duration::from_millis(57), "{p99:?}");
    }

    #[test]
    fn durations_add_up_and_a_bound_belongs_to_what_is_below_it() {
        let stats = OpStats::default();
        assert_eq!(stats.durations().within.len(), 11);
        for micros in [16, 17, 64, 70_000_000] {
            stats.record(Duration::from_micros(micros), false);
        }
        let Durations { within, count, sum } = stats.durations();
        assert_eq!(within[0], (Duration::from_micros(16), 1));
        assert_eq!(within[1], (Duration::from_micros(64), 3));
        assert_eq!(within[10], (Duration::from_micros(1 << 24), 3));
        assert_eq!((count, sum), (4, Duration::from_micros(70_000_097)));
    }
}
