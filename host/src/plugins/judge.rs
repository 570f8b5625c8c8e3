//! [`Judge`]: from a built file to a version that may be called, or to the reason why not.

use std::cell::RefCell;
use std::path::Path;

use super::artifact::{Artifact, Cache};
use super::catalog::Entry;
use super::loaded::{Loaded, check_fit};
use super::pack::Packed;
use super::probe::{self, Prober};
use super::refusal::Refusal;
use super::stamp::Stamp;

/// Checks files, copies them to the cache, probes the copies and compares them with the folders they came from.
#[derive(Debug)]
pub(crate) struct Judge {
    cache: Cache,
    prober: RefCell<Prober>,
}

impl Judge {
    /// Opens the cache in this folder.
    pub(crate) fn open(cache: &Path) -> Result<Self, Box<Refusal>> {
        Ok(Self { cache: Cache::open(cache)?, prober: RefCell::default() })
    }

    /// A version from a file that was just built or delivered; in a pack it must be the file that was packed.
    pub(crate) fn take(
        &self,
        library: &Path,
        packed: Option<&Packed>,
        entry: &Entry,
    ) -> Result<(Loaded, Artifact), Box<Refusal>> {
        let artifact = self.cache.take_sealed(library, packed)?;
        let loaded = self.loaded(&artifact, entry).map_err(|refusal| {
            // The author knows the file, not the copy of it.
            let mut refusal = refusal;
            if refusal.files == [artifact.path.clone()] {
                refusal.files.clear();
            }
            refusal.file(library)
        })?;
        Ok((loaded, artifact))
    }

    /// The version that was built then: from the copy of it, or from cargo's own file if that is still the same.
    pub(crate) fn kept(
        &self,
        stamp: &Stamp,
        entry: &Entry,
    ) -> Option<Result<Loaded, Box<Refusal>>> {
        let artifact = self.cache.get(&stamp.hash, stamp.built_at()).or_else(|| {
            let built = Packed { sha256: stamp.hash.clone(), built_at: stamp.built_at() };
            self.cache.take_sealed(&stamp.library, Some(&built)).ok()
        })?;
        Some(self.loaded(&artifact, entry))
    }

    fn loaded(&self, artifact: &Artifact, entry: &Entry) -> Result<Loaded, Box<Refusal>> {
        let descriptor = probe::examine(&self.cache, &mut self.prober.borrow_mut(), artifact)?;
        check_fit(&descriptor, &entry.address, entry.lane_for(&artifact.hash))?;
        entry.admit(&artifact.hash)?;
        Loaded::new(artifact, descriptor, &entry.versions)
    }

    /// Ends the child that probed, if there is one: the next probe starts another.
    pub(crate) fn rest(&self) {
        self.prober.take();
    }

    /// Removes copies that nobody has used for long.
    pub(crate) fn sweep(&self) {
        self.cache.sweep();
    }
}
