//! Which crates have to be built, and in which order when some of them take too long.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::look::Looks;
use super::outcome::{accept, refuse};
use super::work::{Buildable, Place, Stale, Work};
use crate::plugins::build::Target;
use crate::plugins::catalog::Catalog;
use crate::plugins::crate_folder::path_dependencies;
use crate::plugins::discover::FoundLibrary;
use crate::plugins::refusal::Refusal;
use crate::plugins::roots;
use crate::plugins::stamp::{BaseKey, Stamps};

impl Looks<'_> {
    /// Takes what was built before and has not changed, and builds the rest.
    pub(super) fn crates(&mut self, crates: Vec<Buildable>, libraries: &[FoundLibrary]) {
        let Some(judge) = &self.judge else { return };
        let place = Place { around: &self.around, roots: &self.roots, libraries };
        let Some(checkout) = checkout_of(&place) else {
            let refusal = Refusal::new(
                "it cannot be built: the sdk's sources are not here",
                "keep the checkout that the host was built from, or give a packed folder with --plugins",
            );
            crates.iter().for_each(|op| refuse(self.catalog, &op.entry, refusal.clone()));
            return;
        };
        let target = Target::find(place.around.exe.as_deref(), &checkout);
        let folders: Vec<&Path> = libraries.iter().map(|library| &*library.folder).collect();
        let stamps = Stamps::new(target.own_folder().join("stamps").join(target.name()));
        // Taken before anything is built: what is saved while cargo runs makes the stamp a stale one.
        let base = BaseKey::new(&checkout, &folders, &target.name());
        // What counts for all operations counts once.
        let is_elsewhere = |path: &PathBuf| {
            !["sdk", "core-store"].iter().any(|name| path.starts_with(checkout.join(name)))
                && !libraries.iter().any(|library| library.folder == *path)
        };
        self.elsewhere.clear();
        let mut stale = Vec::new();
        for op in &crates {
            let folder = &op.entry.folder;
            let others = path_dependencies(folder);
            let others: Vec<PathBuf> = others.into_iter().filter(|it| is_elsewhere(it)).collect();
            let key = base.of(folder, others.iter().map(PathBuf::as_path));
            self.elsewhere.extend(others);
            if self.left_out.get(folder).is_some_and(|then| *then != key.all) {
                self.left_out.remove(folder);
            }
            if self.tried.insert(folder.clone(), key.all.clone()).as_ref() == Some(&key.all) {
                continue;
            }
            let stamp = stamps.get(folder);
            let kept = stamp
                .as_ref()
                .filter(|stamp| stamp.key == key.all)
                .and_then(|stamp| judge.kept(stamp, &op.entry));
            match kept {
                Some(Ok(loaded)) => accept(self.catalog, &op.entry, loaded),
                // What was accepted once is refused now: the host is another one. A new build decides.
                Some(Err(_)) | None => {
                    let hidden = stamp.and_then(|stamp| stamp.hides(&key));
                    stale.push(Stale { op: op.clone(), key, hidden });
                }
            }
        }
        if stale.is_empty() {
            return;
        }
        if self.config.no_build {
            return refuse_unbuilt(self.catalog, &stamps, &stale);
        }
        for Stale { op, .. } in &stale {
            self.catalog.begin(&op.entry);
        }
        let work = Work {
            catalog: self.catalog,
            running: self.running,
            place: &place,
            judge,
            checkout: &checkout,
            target: &target,
            stamps: &stamps,
            limit: self.config.build_timeout,
        };
        let stale_folders: Vec<PathBuf> =
            stale.iter().map(|stale| stale.op.entry.folder.clone()).collect();
        let (later, now) = stale.into_iter().partition(|stale: &Stale| {
            self.deferred.get(&stale.op.entry.folder) == Some(&stale.key.all)
        });
        self.deferred.clear();
        let disturbed = build(&work, &crates, [now, later], &mut self.left_out, &mut self.deferred);
        self.disturbed = disturbed && self.deferred.is_empty();
        for folder in self.deferred.keys() {
            self.tried.remove(folder);
        }
        if self.running.has_changes() {
            // What failed may have been half of something while it was built.
            for op in crates.iter().filter(|op| stale_folders.contains(&op.entry.folder)) {
                if op.entry.failure().is_some() {
                    self.tried.remove(&op.entry.folder);
                }
            }
        }
    }
}

/// Builds one batch after the other; whether something changed meanwhile. What gives way to what has been saved is
/// deferred, and so is what comes after it.
fn build(
    work: &Work<'_>,
    crates: &[Buildable],
    batches: [Vec<Stale>; 2],
    left_out: &mut BTreeMap<PathBuf, String>,
    deferred: &mut BTreeMap<PathBuf, String>,
) -> bool {
    let folder = |stale: &Stale| stale.op.entry.folder.clone();
    let later: Vec<PathBuf> = batches[1].iter().map(folder).collect();
    let (mut gives_way, mut disturbed) = (false, false);
    for (at, batch) in batches.into_iter().enumerate() {
        if batch.is_empty() {
            continue;
        }
        let keys: BTreeMap<PathBuf, String> =
            batch.iter().map(|stale| (folder(stale), stale.key.all.clone())).collect();
        if gives_way {
            deferred.extend(keys);
            continue;
        }
        // What is built later is not even read: whatever held it up may hold up all of them.
        let is_in = |op: &&Buildable| {
            let folder = &op.entry.folder;
            !left_out.contains_key(folder) && (at == 1 || !later.contains(folder))
        };
        let ops: Vec<&Buildable> = crates.iter().filter(is_in).collect();
        let outcome = work.build(&ops, batch);
        for folder in outcome.culprits {
            if let Some(key) = keys.get(&folder) {
                left_out.insert(folder, key.clone());
            }
        }
        disturbed |= outcome.disturbed;
        gives_way = outcome.gave_way;
        if gives_way {
            deferred.extend(keys.into_iter().filter(|(folder, _)| {
                crates.iter().any(|op| op.entry.folder == *folder && op.entry.is_pending())
            }));
        }
    }
    disturbed
}

/// What is stale where nothing may be built: the compiler's last word about it, or that it is not built.
fn refuse_unbuilt(catalog: &Catalog, stamps: &Stamps, stale: &[Stale]) {
    let refusal = Refusal::new(
        "it is not built, or changed since it was",
        "run `udf-host build`, or start the host without --no-build",
    );
    // One line for all: whoever forbids building knows.
    tracing::warn!(operations = stale.len(), remedy = %refusal.remedy, "refused: {}", refusal.reason);
    for Stale { op, key, .. } in stale {
        let failed = stamps.failure(&op.entry.folder, &key.all);
        catalog.refuse(&op.entry, Arc::from(failed.unwrap_or_else(|| refusal.clone())));
    }
}

/// The checkout whose sdk the crates are built with: the host's own, else the one around a root.
fn checkout_of(place: &Place<'_>) -> Option<PathBuf> {
    let around_root = || {
        let mut candidates = place.roots.iter().filter_map(|root| root.path.parent());
        candidates.find(|folder| roots::is_checkout(folder)).map(Path::to_path_buf)
    };
    place.around.checkout.clone().or_else(around_root)
}
