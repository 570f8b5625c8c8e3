//! [`Versions`]: which builds of one operation the host has opened in its own process.
//!
//! A library that was opened stays open for the rest of the process's life, so each build that is saved and called
//! takes memory for good. They are counted, and at the limit the operation's calls leave the process: a worker gives
//! its memory back when it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many there may be when nobody says otherwise.
pub const MOST_VERSIONS: usize = 64;

/// The builds of one operation that are open in this process. Newer versions of the operation go on counting here.
#[derive(Debug)]
pub(crate) struct Versions {
    most: usize,
    /// How many, for the calls, which must not wait for a lock.
    count: AtomicUsize,
    /// Size by content hash: a build that comes back is the library that is open already.
    opened: Mutex<BTreeMap<String, u64>>,
}

impl Versions {
    /// None so far, and at most this many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, count: AtomicUsize::new(0), opened: Mutex::default() }
    }

    /// Notes that this build is open now.
    pub(crate) fn add(&self, hash: &str, bytes: u64) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(hash.to_owned(), bytes);
        self.count.store(opened.len(), Ordering::Relaxed);
    }

    /// Whether this build, too, may be opened here.
    pub(crate) fn admits(&self, hash: &str) -> bool {
        self.count.load(Ordering::Relaxed) < self.most
            || self.opened.lock().unwrap_or_else(PoisonError::into_inner).contains_key(hash)
    }

    /// How many are open, and the bytes of their files, which is about what they take in memory.
    pub(crate) fn count(&self) -> (usize, u64) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        (opened.len(), opened.values().sum())
    }

    /// How many there may be.
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
}
