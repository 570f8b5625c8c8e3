//! [`Versions`]: which builds of one operation are open, in the host's own process and in its workers.
//!
//! A library that was opened stays open for the rest of its process's life, so each build that is saved and called
//! takes memory for good. They are counted. At the limit in the host the operation's calls leave it for a worker; and a
//! worker is asked for one build of an operation only, so that the memory of the build before it returns with the end
//! of the worker that had that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many the host's own process may have open when nobody says otherwise.
pub const MOST_VERSIONS: usize = 64;

/// Size by content hash: a build that comes back is the library that is open already.
type Builds = BTreeMap<String, u64>;

/// The builds of one operation that are open. Newer versions of the operation go on counting here.
#[derive(Debug)]
pub(crate) struct Versions {
    most: usize,
    /// Numbers versions in the order in which they came.
    numbers: AtomicU64,
    /// How many are open in this process, for the calls, which must not wait for a lock.
    count: AtomicUsize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    here: Builds,
    /// By the process id of the worker.
    workers: BTreeMap<i32, InWorker>,
}

/// What one worker has open of the operation.
#[derive(Debug, Default)]
struct InWorker {
    /// The number of the newest version that it was asked for.
    newest: u64,
    builds: Builds,
}

/// Whether a worker opens a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// It does, and it is the first thing of this operation that it has.
    First,
    /// It does, or has it already.
    Open,
    /// It has an older version: a fresh worker is due.
    Outdated,
}

impl Versions {
    /// None so far, and at most this many in this process.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            numbers: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            open: Mutex::default(),
        }
    }

    /// The number of another version, greater than all before.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this build is open in this process now.
    pub(crate) fn add(&self, hash: &str, bytes: u64) {
        let mut open = self.open();
        open.here.insert(hash.to_owned(), bytes);
        self.count.store(open.here.len(), Ordering::Relaxed);
    }

    /// Whether this build, too, may be opened in this process.
    pub(crate) fn admits(&self, hash: &str) -> bool {
        self.count.load(Ordering::Relaxed) < self.most || self.open().here.contains_key(hash)
    }

    /// Notes that this worker opens the build, which is the version of this number, unless it has an older one. A call
    /// that began before a newer version came still gets in.
    pub(crate) fn enter(&self, worker: i32, number: u64, hash: &str, bytes: u64) -> Entrance {
        let mut open = self.open();
        let held = open.workers.entry(worker).or_default();
        let first = held.builds.is_empty();
        if !first && number > held.newest && !held.builds.contains_key(hash) {
            return Entrance::Outdated;
        }
        held.newest = held.newest.max(number);
        held.builds.insert(hash.to_owned(), bytes);
        if first { Entrance::First } else { Entrance::Open }
    }

    /// Notes that this worker is gone, and its memory with it.
    pub(crate) fn leave(&self, worker: i32) {
        self.open().workers.remove(&worker);
    }

    /// How many are open, and the bytes of their files, which is about what they take in memory. A build that several
    /// processes have open counts in each.
    pub(crate) fn count(&self) -> (usize, u64) {
        let open = self.open();
        let builds = || open.workers.values().map(|held| &held.builds).chain([&open.here]);
        (builds().map(BTreeMap::len).sum(), builds().flat_map(BTreeMap::values).sum())
    }

    /// How many this process may have open.
    pub(crate) fn most(&self) -> usize {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_counts_once_and_the_limit_admits_only_known_ones() {
        let versions = Versions::new(2);
        for hash in ["a", "b", "a"] {
            assert!(versions.admits(hash), "{hash}");
            versions.add(hash, 10);
        }
        assert_eq!(versions.count(), (2, 20));
        assert!(versions.admits("a"), "open already");
        assert!(!versions.admits("c"));
    }

    #[test]
    fn a_worker_has_one_version_and_what_began_before_it() {
        use Entrance::{First, Open, Outdated};
        let versions = Versions::new(2);
        let [one, two, three] = [(); 3].map(|()| versions.number());
        for (worker, number, hash, want) in [
            (7, one, "a", First),
            (7, two, "b", Outdated),
            (8, two, "b", First),
            (8, one, "a", Open),
            (8, three, "c", Outdated),
            (8, three, "b", Open),
        ] {
            assert_eq!(versions.enter(worker, number, hash, 10), want, "{hash} in {worker}");
        }
        assert_eq!(versions.count(), (3, 30));
        assert!(versions.admits("d"), "workers take no room in the host");
        versions.leave(8);
        assert_eq!(versions.count(), (1, 10));
    }
}
