//! What comes of a version: it answers from now on, or it does not and the log says why.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::plugins::catalog::{Catalog, Entry, EntryState, Update};
use crate::plugins::judge::Judge;
use crate::plugins::loaded::Loaded;
use crate::plugins::pack::Packed;
use crate::plugins::refusal::Refusal;
use crate::plugins::stamp::{Key, Stamp, Stamps};

/// This version answers from the next call on, unless it is the one that does already.
pub(super) fn accept(catalog: &Catalog, entry: &Entry, loaded: Loaded) {
    let before = match entry.state() {
        EntryState::Ready(before) => Some(before),
        EntryState::Building | EntryState::Refused(_) => None,
    };
    match before {
        // The same build: what is known of it, and whether it is open, stays known.
        Some(before) if before.hash == loaded.hash => catalog.accept(entry, before),
        Some(_) | None => catalog.accept(entry, Arc::new(loaded)),
    }
}

/// Whether this version is a copy of the file as it is now: cargo itself tells files by size and time.
fn is_of(loaded: &Loaded, library: &Path) -> bool {
    std::fs::metadata(library).is_ok_and(|facts| {
        facts.len() == loaded.bytes
            && facts.modified().is_ok_and(|modified| modified == loaded.built_at)
    })
}

/// The version that was looked at cannot be called; an older one goes on answering.
pub(super) fn refuse(catalog: &Catalog, entry: &Entry, refusal: Box<Refusal>) {
    let known = match (entry.state(), entry.update()) {
        (EntryState::Refused(known), _) | (_, Some(Update::Failed(known))) => {
            known == refusal.clone().into()
        }
        _ => false,
    };
    if !known {
        warn_refused(entry, &refusal);
    }
    catalog.refuse(entry, Arc::from(refusal));
}

/// Says in the log why the operation, or its newer version, cannot be called.
pub(super) fn warn_refused(entry: &Entry, refusal: &Refusal) {
    let answers =
        if entry.ready().is_some() { "the version before it goes on answering" } else { "no" };
    tracing::warn!(op = %entry.address, files = ?refusal.files, expected = refusal.expected, found = refusal.found,
        remedy = %refusal.remedy, answers, "refused: {}", refusal.reason);
    if let Some(detail) = &refusal.detail {
        tracing::debug!(op = %entry.address, "{detail}");
    }
}

/// Refuses every version that is still being built or checked.
pub(super) fn refuse_pending(catalog: &Catalog, refusal: &Refusal) {
    for entry in catalog.entries().iter().filter(|entry| entry.is_pending()) {
        catalog.refuse(entry, Arc::new(refusal.clone()));
    }
}

/// Checks, copies and probes a file that was just built or delivered; keeps a stamp of it when it was built here.
pub(super) fn take(
    catalog: &Catalog,
    judge: &Judge,
    entry: &Entry,
    (library, packed): (&Path, Option<&Packed>),
    stamped: Option<(&Stamps, &Key)>,
) {
    let began = Instant::now();
    if let Some((stamps, key)) = stamped
        && let Some(now) = entry.ready().filter(|now| is_of(now, library))
    {
        // What it may depend on has changed, and cargo found that this changes nothing of it.
        stamps.put(&entry.folder, &Stamp::new(key, &now.hash, now.built_at, library));
        return catalog.accept(entry, now);
    }
    match judge.take(library, packed, entry) {
        Ok((loaded, artifact)) => {
            if let Some((stamps, key)) = stamped {
                let stamp = Stamp::new(key, &artifact.hash, artifact.built_at, library);
                stamps.put(&entry.folder, &stamp);
            }
            let newer = entry.ready().is_some_and(|before| before.hash != loaded.hash);
            accept(catalog, entry, loaded);
            if newer {
                let after_ms = began.elapsed().as_millis();
                tracing::info!(op = %entry.address, after_ms, "a new version answers");
                if let Some(note) = entry.ready().and_then(|loaded| entry.moved(&loaded)) {
                    tracing::warn!(op = %entry.address, "{note}");
                }
            }
        }
        Err(refusal) => refuse(catalog, entry, refusal),
    }
}
