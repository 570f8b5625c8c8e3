//! [`Looks`]: one look over the folders after the other, each starting from what the one before found.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::outcome::{accept, refuse, refuse_pending, take, warn_refused};
use super::work::{Buildable, Work};
use crate::config::Config;
use crate::plugins::build::{Running, Target};
use crate::plugins::catalog::{Catalog, Entry, EntryState, Index, Problem};
use crate::plugins::crate_folder::path_dependencies;
use crate::plugins::discover::{self, FoundLibrary, FoundOp, Source};
use crate::plugins::judge::Judge;
use crate::plugins::loaded::check_fit;
use crate::plugins::pack::Packed;
use crate::plugins::refusal::Refusal;
use crate::plugins::roots::{self, Root, Surroundings};
use crate::plugins::stamp::{BaseKey, Stamps};
use crate::plugins::versions::Versions;
use crate::plugins::watch::Watched;

/// All that a look takes over from the one before.
pub(super) struct Looks<'a> {
    config: &'a Config,
    catalog: &'a Catalog,
    running: &'a Running,
    around: Surroundings,
    judge: Option<Judge>,
    roots: Vec<Root>,
    /// Crates beside the operations that some of them are built from.
    elsewhere: BTreeSet<PathBuf>,
    problems: Vec<Problem>,
    /// The operations of the last look by folder. The catalog has those with an address of their own only.
    entries: BTreeMap<PathBuf, Arc<Entry>>,
    /// What the newest version of the operation in each folder was made from, whether that went well or not.
    tried: BTreeMap<PathBuf, String>,
}

/// What was found around the crates.
pub(super) struct Place<'a> {
    pub(super) around: &'a Surroundings,
    pub(super) roots: &'a [Root],
    pub(super) libraries: &'a [FoundLibrary],
}

impl<'a> Looks<'a> {
    pub(super) fn new(config: &'a Config, catalog: &'a Catalog, running: &'a Running) -> Self {
        Self {
            config,
            catalog,
            running,
            around: Surroundings::of_process(),
            judge: None,
            roots: Vec::new(),
            elsewhere: BTreeSet::new(),
            problems: Vec::new(),
            entries: BTreeMap::new(),
            tried: BTreeMap::new(),
        }
    }

    /// What has to be watched to see every change of what this found, and the roots that may yet appear.
    pub(super) fn watched(&self) -> Watched {
        let mut watched = Watched { roots: Vec::new(), awaited: Vec::new() };
        watched.roots.extend(self.roots.iter().map(|root| root.path.clone()));
        watched.roots.extend(self.elsewhere.iter().cloned());
        watched.awaited.extend(roots::candidates(self.config, &self.around));
        watched
    }

    /// Brings the catalog to what the folders hold now.
    pub(super) fn look(&mut self) {
        let began = Instant::now();
        let first = self.judge.is_none();
        let (roots, mut problems) = roots::roots(self.config, &self.around);
        let mut found = discover::discover(&roots);
        problems.append(&mut found.problems);
        if let Some(lane) = self.config.lane {
            found.ops.iter_mut().for_each(|op| op.settings.lane = Some(lane));
        }
        for problem in problems.iter().filter(|problem| !self.problems.contains(problem)) {
            tracing::warn!(place = %problem.place.display(), remedy = %problem.remedy, "{}", problem.reason);
        }
        self.problems.clone_from(&problems);
        self.roots = roots;
        self.elsewhere.clear();
        let ops = self.renew(std::mem::take(&mut found.ops));
        let entries = ops.iter().map(|(entry, _)| Arc::clone(entry));
        self.catalog.publish(Index::new(entries, problems));

        if self.judge.is_none() {
            match Judge::open(&self.config.cache_dir) {
                Ok(judge) => self.judge = Some(judge),
                Err(refusal) => return refuse_pending(self.catalog, &refusal),
            }
        }
        let mut crates = Vec::new();
        for (entry, op) in ops {
            match op.source {
                Ok(Source::Prebuilt { library, packed }) => {
                    self.prebuilt(&entry, &library, packed.as_ref());
                }
                Ok(Source::Crate { package }) => {
                    crates.push(Buildable { entry, package, root: op.root });
                }
                Err(_) => {}
            }
        }
        if !crates.is_empty() {
            self.crates(crates, &found.libraries);
        }
        let Some(judge) = &self.judge else { return };
        judge.rest();
        if first {
            judge.sweep();
            let progress = self.catalog.progress();
            tracing::info!(
                ready = progress.ready,
                refused = progress.refused,
                ms = began.elapsed().as_millis(),
                "prepared"
            );
        }
    }

    /// An entry for each folder: the one it has, if nothing that a caller sees of it has changed.
    fn renew(&mut self, ops: Vec<FoundOp>) -> Vec<(Arc<Entry>, FoundOp)> {
        let mut before = std::mem::take(&mut self.entries);
        let renewed: Vec<(Arc<Entry>, FoundOp)> = ops
            .into_iter()
            .map(|op| {
                let entry = match before.remove(&op.folder) {
                    Some(old) => self.renewed(old, &op),
                    None => self.new_entry(&op),
                };
                (entry, op)
            })
            .collect();
        self.entries =
            renewed.iter().map(|(entry, op)| (op.folder.clone(), Arc::clone(entry))).collect();
        for (folder, gone) in before {
            self.tried.remove(&folder);
            tracing::info!(op = %gone.address, "its folder is gone: it is no operation any more");
        }
        renewed
    }

    fn new_entry(&mut self, op: &FoundOp) -> Arc<Entry> {
        // Known from before when its entry gave way to another of the same address.
        self.tried.remove(&op.folder);
        let state = match &op.source {
            Ok(_) => EntryState::Building,
            Err(refusal) => EntryState::Refused(Arc::from(refusal.clone())),
        };
        let versions = Versions::new(self.config.max_versions);
        let (address, folder) = (op.address.clone(), op.folder.clone());
        let entry = Entry::new(address, folder, op.spec.clone(), op.settings, versions, state);
        if let Err(refusal) = &op.source {
            warn_refused(&entry, refusal);
        }
        Arc::new(entry)
    }

    fn renewed(&mut self, old: Arc<Entry>, op: &FoundOp) -> Arc<Entry> {
        let refusal = match &op.source {
            Ok(_) => None,
            Err(refusal) => {
                // Once the folder is in order again, it is looked at as if it had never been.
                self.tried.remove(&op.folder);
                Some(refusal)
            }
        };
        if let Some(refusal) = refusal
            && old.ready().is_some()
        {
            // As it was, with its address, spec and settings: what the folder says now may be half of it.
            refuse(self.catalog, &old, refusal.clone());
            return old;
        }
        let same = old.address == op.address && old.spec == op.spec && old.settings == op.settings;
        let entry = if same {
            old
        } else {
            Arc::new(old.renewed(op.address.clone(), op.spec.clone(), op.settings))
        };
        if let Some(refusal) = refusal {
            refuse(self.catalog, &entry, refusal.clone());
        } else if !same {
            self.fit_again(&entry);
        }
        entry
    }

    /// After a change of address or settings: what answered may not fit any more, what did not may fit now.
    fn fit_again(&mut self, entry: &Entry) {
        let Some(loaded) = entry.ready() else {
            self.tried.remove(&entry.folder);
            return;
        };
        let lane = entry.lane_for(&loaded.hash);
        if let Err(refusal) = check_fit(&loaded.descriptor, &entry.address, lane) {
            let refusal = refusal.file(&entry.folder);
            warn_refused(entry, &refusal);
            self.catalog.withdraw(entry, Arc::from(refusal));
            self.tried.remove(&entry.folder);
        }
    }

    fn prebuilt(&mut self, entry: &Entry, library: &Path, packed: Option<&Packed>) {
        let Some(judge) = &self.judge else { return };
        let mut facts = file_facts(library);
        if let Some(packed) = packed {
            facts.push_str(&packed.sha256);
        }
        if self.tried.insert(entry.folder.clone(), facts.clone()) != Some(facts) {
            self.catalog.begin(entry);
            take(self.catalog, judge, entry, (library, packed), None);
        }
    }

    fn crates(&mut self, crates: Vec<Buildable>, libraries: &[FoundLibrary]) {
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
        let mut stale = Vec::new();
        for op in &crates {
            let folder = &op.entry.folder;
            let others = path_dependencies(folder);
            let others: Vec<PathBuf> = others.into_iter().filter(|it| is_elsewhere(it)).collect();
            let key = base.of(folder, others.iter().map(PathBuf::as_path));
            self.elsewhere.extend(others);
            if self.tried.insert(folder.clone(), key.clone()).as_ref() == Some(&key) {
                continue;
            }
            let kept = stamps
                .get(folder)
                .filter(|stamp| stamp.key == key)
                .and_then(|stamp| judge.kept(&stamp, &op.entry));
            match kept {
                Some(Ok(loaded)) => accept(self.catalog, &op.entry, loaded),
                // What was accepted once is refused now: the host is another one. A new build decides.
                Some(Err(_)) | None => stale.push((op.clone(), key)),
            }
        }
        if stale.is_empty() {
            return;
        }
        if self.config.no_build {
            return refuse_unbuilt(self.catalog, &stamps, &stale);
        }
        for (op, _) in &stale {
            self.catalog.begin(&op.entry);
        }
        let mut work = Work {
            catalog: self.catalog,
            running: self.running,
            place: &place,
            judge,
            checkout: &checkout,
            target: &target,
            stamps: &stamps,
        };
        work.build(&crates, stale);
    }
}

/// What is stale where nothing may be built: the compiler's last word about it, or that it is not built.
fn refuse_unbuilt(catalog: &Catalog, stamps: &Stamps, stale: &[(Buildable, String)]) {
    let refusal = Refusal::new(
        "it is not built, or changed since it was",
        "run `udf-host build`, or start the host without --no-build",
    );
    // One line for all: whoever forbids building knows.
    tracing::warn!(operations = stale.len(), remedy = %refusal.remedy, "refused: {}", refusal.reason);
    for (op, key) in stale {
        let failed = stamps.failure(&op.entry.folder, key);
        catalog.refuse(&op.entry, Arc::from(failed.unwrap_or_else(|| refusal.clone())));
    }
}

/// What tells one file at this path from another.
fn file_facts(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(facts) => {
            format!("{} {}.{} {}", facts.len(), facts.mtime(), facts.mtime_nsec(), facts.ino())
        }
        Err(error) => format!("{:?}", error.kind()),
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
