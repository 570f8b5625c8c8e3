//! [`Looks`]: one look over the folders after the other, each starting from what the one before found.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::outcome::{refuse, refuse_pending, take, warn_refused};
use super::work::Buildable;
use crate::config::Config;
use crate::plugins::artifact::Cache;
use crate::plugins::build::Running;
use crate::plugins::catalog::{Catalog, Entry, EntryState, Index, Problem};
use crate::plugins::discover::{self, FoundOp, Source};
use crate::plugins::judge::Judge;
use crate::plugins::loaded::check_fit;
use crate::plugins::pack::Packed;
use crate::plugins::roots::{self, Root, Surroundings};
use crate::plugins::versions::Versions;
use crate::plugins::watch::Watched;

/// All that a look takes over from the one before.
pub(super) struct Looks<'a> {
    pub(super) config: &'a Config,
    pub(super) catalog: &'a Catalog,
    pub(super) running: &'a Running,
    pub(super) around: Surroundings,
    pub(super) judge: Option<Judge>,
    pub(super) roots: Vec<Root>,
    /// Crates beside the operations that some of them are built from.
    pub(super) elsewhere: BTreeSet<PathBuf>,
    problems: Vec<Problem>,
    /// The operations of the last look by folder. The catalog has those with an address of their own only.
    entries: BTreeMap<PathBuf, Arc<Entry>>,
    /// What the newest version of the operation in each folder was made from, whether that went well or not.
    pub(super) tried: BTreeMap<PathBuf, String>,
    /// What gave way to others while it was built, with what it was built from.
    pub(super) deferred: BTreeMap<PathBuf, String>,
    /// What cargo cannot even read, with what it was then: with it in the build nothing else could be built.
    pub(super) left_out: BTreeMap<PathBuf, String>,
    /// Whether something changed while the last look built all it had to.
    pub(super) disturbed: bool,
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
            deferred: BTreeMap::new(),
            left_out: BTreeMap::new(),
            disturbed: false,
        }
    }

    /// The folders of operations that failed for a reason that may well pass by itself.
    fn passing(&self) -> impl Iterator<Item = &PathBuf> {
        let passing = |entry: &Entry| entry.failure().is_some_and(|refusal| refusal.passing);
        self.entries.iter().filter(move |(_, entry)| passing(entry)).map(|(folder, _)| folder)
    }

    /// Whether something failed that may well pass by itself.
    pub(super) fn may_pass(&self) -> bool {
        self.passing().next().is_some()
    }

    /// Has the next look try again what may well pass by itself.
    pub(super) fn try_again(&mut self) {
        for folder in self.passing().cloned().collect::<Vec<_>>() {
            self.tried.remove(&folder);
            self.left_out.remove(&folder);
        }
    }

    /// Says that the copies of what answers are still in use.
    pub(super) fn refresh(&self) {
        for loaded in self.entries.values().filter_map(|entry| entry.ready()) {
            Cache::note_use(&loaded.artifact);
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

    /// Brings the catalog to what the folders hold now. `follow` is told what is to be watched before anything is built.
    pub(super) fn look(&mut self, follow: &mut dyn FnMut(&Watched)) {
        let began = Instant::now();
        let first = self.judge.is_none();
        self.disturbed = false;
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
        let ops = self.renew(std::mem::take(&mut found.ops));
        let entries = ops.iter().map(|(entry, _)| Arc::clone(entry));
        self.catalog.publish(Index::new(entries, problems));
        follow(&self.watched());

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
            self.left_out.remove(&folder);
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
