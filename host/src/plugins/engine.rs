//! Gets every operation from its folder to something callable, on a thread behind the host.
//!
//! Walk the roots, publish what is there, open what was built before and has not changed, build the rest. Each
//! operation becomes callable by itself, as soon as its own artifact is there.

mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use super::build::{Running, Target};
use super::catalog::{Catalog, Entry, EntryState, Index};
use super::discover::{self, Discovery, FoundOp, Source};
use super::judge::Judge;
use super::refusal::Refusal;
use super::roots::{self, Root, Surroundings};
use super::stamp::{BaseKey, Stamp, Stamps};
use crate::config::Config;
use crate::dispatch::panic_text;
use crate::error::HostError;
use work::Work;

/// The work behind a host, for whoever has to stop it.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    running: Running,
}

impl Engine {
    /// Starts the thread.
    pub(crate) fn spawn(config: &Arc<Config>, catalog: &Arc<Catalog>) -> Result<Self, HostError> {
        let running = Running::default();
        let (config, catalog, running_too) =
            (Arc::clone(config), Arc::clone(catalog), running.clone());
        let work = move || {
            let work = std::panic::AssertUnwindSafe(|| prepare(&config, &catalog, &running_too));
            if let Err(payload) = std::panic::catch_unwind(work) {
                // Nothing else may wait for a thread that is gone.
                tracing::error!(panic = panic_text(&*payload), "the build thread failed");
                refuse_rest(
                    &catalog,
                    &Refusal::new("the host failed while preparing it", "restart the host"),
                );
            }
            catalog.settle();
        };
        thread::Builder::new().name("udf-build".to_owned()).spawn(work).map_err(|error| {
            HostError::Internal {
                message: "the build thread could not be started".to_owned(),
                detail: error.to_string(),
            }
        })?;
        Ok(Self { running })
    }

    /// Ends a running build.
    pub(crate) fn stop(&self) {
        self.running.stop();
    }
}

fn refuse_rest(catalog: &Catalog, refusal: &Refusal) {
    for entry in catalog.entries() {
        if matches!(entry.state(), EntryState::Building) {
            catalog.set_state(&entry, EntryState::Refused(Arc::new(refusal.clone())));
        }
    }
}

/// An operation whose crate is in order.
#[derive(Debug, Clone)]
struct Buildable {
    entry: Arc<Entry>,
    package: String,
    root: usize,
}

fn prepare(config: &Config, catalog: &Catalog, running: &Running) {
    let began = Instant::now();
    let around = Surroundings::of_process();
    let (roots, mut problems) = roots::roots(config, &around);
    let mut found = discover::discover(&roots);
    problems.append(&mut found.problems);
    for problem in &problems {
        tracing::warn!(place = %problem.place.display(), remedy = %problem.remedy, "{}", problem.reason);
    }
    let ops: Vec<(Arc<Entry>, FoundOp)> =
        found.ops.drain(..).map(|op| (Arc::new(entry_of(&op)), op)).collect();
    catalog.publish(Index::new(ops.iter().map(|(entry, _)| Arc::clone(entry)), problems));
    for (entry, _) in &ops {
        if let EntryState::Refused(refusal) = entry.state() {
            warn_refused(entry, &refusal);
        }
    }
    let judge = match Judge::open(&config.cache_dir) {
        Ok(judge) => judge,
        Err(refusal) => return refuse_rest(catalog, &refusal),
    };
    let mut crates = Vec::new();
    for (entry, op) in ops {
        match op.source {
            Ok(Source::Prebuilt { library }) => open(catalog, &judge, &entry, &library, None),
            Ok(Source::Crate { package }) => {
                crates.push(Buildable { entry, package, root: op.root })
            }
            Err(_) => {}
        }
    }
    if !crates.is_empty() {
        prepare_crates(
            config,
            catalog,
            running,
            &Place { around: &around, roots: &roots, found: &found },
            &judge,
            crates,
        );
    }
    judge.rest();
    judge.sweep();
    let progress = catalog.progress();
    tracing::info!(
        ready = progress.ready,
        refused = progress.refused,
        ms = began.elapsed().as_millis(),
        "prepared"
    );
}

/// What was found around the crates.
struct Place<'a> {
    around: &'a Surroundings,
    roots: &'a [Root],
    found: &'a Discovery,
}

fn entry_of(op: &FoundOp) -> Entry {
    let state = match &op.source {
        Ok(_) => EntryState::Building,
        Err(refusal) => EntryState::Refused(Arc::from(refusal.clone())),
    };
    Entry::new(op.address.clone(), op.folder.clone(), op.spec.clone(), op.settings, state)
}

fn warn_refused(entry: &Entry, refusal: &Refusal) {
    tracing::warn!(op = %entry.address, files = ?refusal.files, expected = refusal.expected, found = refusal.found,
        remedy = %refusal.remedy, "refused: {}", refusal.reason);
    if let Some(detail) = &refusal.detail {
        tracing::debug!(op = %entry.address, "{detail}");
    }
}

fn refuse(catalog: &Catalog, entry: &Entry, refusal: Box<Refusal>) {
    warn_refused(entry, &refusal);
    catalog.set_state(entry, EntryState::Refused(Arc::from(refusal)));
}

/// Checks, copies and opens a built file; keeps a stamp of it when it was built here.
fn open(
    catalog: &Catalog,
    judge: &Judge,
    entry: &Entry,
    library: &Path,
    stamped: Option<(&Stamps, &str)>,
) {
    let opened = judge.take(library, entry);
    match opened {
        Ok((loaded, artifact)) => {
            if let Some((stamps, key)) = stamped {
                stamps.put(
                    &entry.folder,
                    &Stamp::new(key.to_owned(), artifact.hash, artifact.built_at),
                );
            }
            catalog.set_state(entry, EntryState::Ready(Arc::new(loaded)));
        }
        Err(refusal) => refuse(catalog, entry, refusal),
    }
}

fn prepare_crates(
    config: &Config,
    catalog: &Catalog,
    running: &Running,
    place: &Place<'_>,
    judge: &Judge,
    crates: Vec<Buildable>,
) {
    let Some(checkout) = checkout_of(place) else {
        let refusal = Refusal::new(
            "it cannot be built: the sdk's sources are not here",
            "keep the checkout that the host was built from, or give a packed folder with --plugins",
        );
        crates.iter().for_each(|op| refuse(catalog, &op.entry, refusal.clone()));
        return;
    };
    let target = Target::find(place.around.exe.as_deref(), &checkout);
    let libraries: Vec<&Path> =
        place.found.libraries.iter().map(|library| &*library.folder).collect();
    let stamps = Stamps::new(target.own_folder().join("stamps").join(target.name()));
    // Taken before anything is built: what is saved while cargo runs makes the stamp a stale one.
    let base = BaseKey::new(&checkout, &libraries, &target.name());
    let mut stale = Vec::new();
    for op in &crates {
        let key = base.of(&op.entry.folder);
        let kept = stamps
            .get(&op.entry.folder)
            .filter(|stamp| stamp.key == key)
            .and_then(|stamp| judge.kept(&stamp.hash, stamp.built_at(), &op.entry));
        match kept {
            Some(Ok(loaded)) => catalog.set_state(&op.entry, EntryState::Ready(Arc::new(loaded))),
            // What was accepted once is refused now: the host is another one. A new build decides.
            Some(Err(_)) | None => stale.push((op.clone(), key)),
        }
    }
    if stale.is_empty() {
        return;
    }
    if config.no_build {
        let refusal = Refusal::new(
            "it is not built, or changed since it was",
            "run `udf-host build`, or start the host without --no-build",
        );
        // One line for all: whoever forbids building knows.
        tracing::warn!(operations = stale.len(), remedy = %refusal.remedy, "refused: {}", refusal.reason);
        for (op, _) in &stale {
            catalog.set_state(&op.entry, EntryState::Refused(Arc::from(refusal.clone())));
        }
        return;
    }
    let mut work = Work {
        catalog,
        running,
        place,
        judge,
        checkout: &checkout,
        target: &target,
        stamps: &stamps,
    };
    work.build(&crates, stale);
}

/// The checkout whose sdk the crates are built with: the host's own, else the one around a root.
fn checkout_of(place: &Place<'_>) -> Option<PathBuf> {
    let around_root = || {
        let candidates = place.roots.iter().filter_map(|root| root.path.parent());
        let mut checkouts = candidates.filter(|folder| {
            ["host", "sdk"].iter().all(|part| folder.join(part).join("Cargo.toml").is_file())
        });
        checkouts.next().map(Path::to_path_buf)
    };
    place.around.checkout.clone().or_else(around_root)
}
