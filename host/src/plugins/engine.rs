//! Gets every operation from its folder to something callable, on a thread behind the host.
//!
//! Walk the roots, publish what is there, open what was built before and has not changed, build the rest. Each
//! operation becomes callable by itself, as soon as its own artifact is there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use super::artifact::Cache;
use super::build::{Builder, Ended, Event, Running, Target};
use super::catalog::{Catalog, Entry, EntryState, Index};
use super::discover::{self, Discovery, FoundOp, Source};
use super::load;
use super::refusal::Refusal;
use super::roots::{self, Root, Surroundings};
use super::shadow::{Member, Shadow};
use super::stamp::{BaseKey, Stamp, Stamps, short_hash};
use crate::config::Config;
use crate::dispatch::panic_text;
use crate::error::HostError;

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
    let cache = match Cache::open(&config.cache_dir) {
        Ok(cache) => cache,
        Err(refusal) => return refuse_rest(catalog, &refusal),
    };
    let mut crates = Vec::new();
    for (entry, op) in ops {
        match op.source {
            Ok(Source::Prebuilt { library }) => open(catalog, &cache, &entry, &library, None),
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
            &cache,
            crates,
        );
    }
    cache.sweep();
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
    cache: &Cache,
    entry: &Entry,
    library: &Path,
    stamped: Option<(&Stamps, &str)>,
) {
    let opened = cache
        .take(library)
        .and_then(|artifact| Ok((load::load(&artifact, &entry.address)?, artifact)));
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
    cache: &Cache,
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
            .and_then(|stamp| cache.get(&stamp.hash, stamp.built_at()));
        match kept.map(|artifact| load::load(&artifact, &op.entry.address)) {
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
            "start the host without --no-build",
        );
        stale.iter().for_each(|(op, _)| refuse(catalog, &op.entry, refusal.clone()));
        return;
    }
    let mut work = Work {
        catalog,
        running,
        place,
        cache,
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

/// Building what is not built.
struct Work<'a> {
    catalog: &'a Catalog,
    running: &'a Running,
    place: &'a Place<'a>,
    cache: &'a Cache,
    checkout: &'a Path,
    target: &'a Target,
    stamps: &'a Stamps,
}

/// The compiler's errors of one crate.
#[derive(Debug, Default)]
struct Complaint {
    first: String,
    rendered: String,
}

impl Work<'_> {
    /// Builds the stale ones. A crate that cargo cannot even read is left out and the rest tried again.
    fn build(&mut self, crates: &[Buildable], mut stale: Vec<(Buildable, String)>) {
        let mut members = self.members(crates);
        while !stale.is_empty() && !self.running.is_stopped() {
            let shadow = match self.shadow(members.clone()) {
                Ok(shadow) => shadow,
                Err(error) => {
                    return self.give_up(&stale, "the build folder cannot be prepared", &error);
                }
            };
            let builder = Builder { shadow: &shadow, target: self.target, running: self.running };
            let mut complaints = BTreeMap::new();
            let ended = match self.run(&builder, &stale, &mut complaints) {
                Ok(ended) => ended,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return self.give_up(
                        &stale,
                        "it is not built and there is no cargo on this machine",
                        &error,
                    );
                }
                Err(error) => return self.give_up(&stale, "cargo could not be run", &error),
            };
            stale.retain(|(op, _)| matches!(op.entry.state(), EntryState::Building));
            if ended.began || ended.success {
                self.refuse_unbuilt(&shadow, &stale, &complaints, &ended);
                return;
            }
            let culprits = self.culprits(&shadow, &members, &ended.said);
            if culprits.is_empty() {
                let refusal = Refusal::new(
                    format!(
                        "cargo cannot build here: {}",
                        summary(&shadow.real_paths(&ended.said))
                    ),
                    "correct what cargo complains about",
                )
                .detail(shadow.real_paths(&ended.said));
                stale.iter().for_each(|(op, _)| refuse(self.catalog, &op.entry, refusal.clone()));
                return;
            }
            for (folder, said) in &culprits {
                let said = shadow.real_paths(said);
                if let Some((op, _)) = stale.iter().find(|(op, _)| op.entry.folder == *folder) {
                    let refusal = Refusal::new(
                        format!("cargo refuses its Cargo.toml: {}", summary(&said)),
                        "correct its Cargo.toml",
                    );
                    let refusal = refusal.file(folder.join("Cargo.toml")).detail(said);
                    refuse(self.catalog, &op.entry, refusal);
                } else {
                    tracing::warn!(folder = %folder.display(), "cargo refuses a crate: {said}");
                }
            }
            members.retain(|member| !culprits.contains_key(&member.folder));
            stale.retain(|(op, _)| !culprits.contains_key(&op.entry.folder));
        }
    }

    /// Every crate in order, also those that are built: leaving some out would change the lock file to and fro.
    fn members(&self, crates: &[Buildable]) -> Vec<Member> {
        let member = |root: usize, folder: &Path| {
            let root = &self.place.roots[root].path;
            let project = match folder.parent() {
                Some(parent) if parent != root => {
                    parent.file_name().unwrap_or_default().to_string_lossy()
                }
                _ => discover::MAIN_PROJECT.into(),
            };
            Member::new(self.checkout, root, &project, folder)
        };
        let libraries =
            self.place.found.libraries.iter().map(|library| member(library.root, &library.folder));
        let mut members: Vec<Member> = Vec::new();
        for found in crates.iter().map(|op| member(op.root, &op.entry.folder)).chain(libraries) {
            if !members.iter().any(|other| other.place == found.place) {
                members.push(found);
            }
        }
        members
    }

    /// One for each set of roots: hosts that serve other folders do not keep re-linking each other's.
    fn shadow_folder(&self) -> PathBuf {
        let roots: Vec<String> =
            self.place.roots.iter().map(|root| root.path.display().to_string()).collect();
        self.target.own_folder().join("shadow").join(short_hash(Path::new(&roots.join("\n"))))
    }

    fn shadow(&self, members: Vec<Member>) -> io::Result<Shadow> {
        Shadow::sync(&self.shadow_folder(), self.checkout, members, |lock| {
            let note = format!(
                "waiting for another host that builds the same folders (it holds {})",
                lock.display()
            );
            tracing::info!("{note}");
            self.catalog.note(note);
        })
    }

    fn run(
        &self,
        builder: &Builder<'_>,
        stale: &[(Buildable, String)],
        complaints: &mut BTreeMap<PathBuf, Complaint>,
    ) -> io::Result<Ended> {
        let packages: Vec<&str> = stale.iter().map(|(op, _)| op.package.as_str()).collect();
        tracing::info!(operations = packages.len(), profile = %self.target.profile, "building");
        self.catalog.note(format!("building {} operations", packages.len()));
        let mut done = 0;
        builder.build(&packages, |event| match event {
            Event::Built { manifest, library } => {
                let member = builder.shadow.member_of_manifest(&manifest);
                let op = member.and_then(|member| {
                    stale.iter().find(|(op, _)| op.entry.folder == member.folder)
                });
                let Some((op, key)) = op else { return };
                done += 1;
                open(self.catalog, self.cache, &op.entry, &library, Some((self.stamps, key)));
                tracing::info!(op = %op.entry.address, "built {done} of {}", packages.len());
                self.catalog.note(format!("built {done} of {} operations", packages.len()));
            }
            Event::Error { manifest, name, message, rendered } => {
                let folder = builder
                    .shadow
                    .member_of_manifest(&manifest)
                    .map(|member| member.folder.clone());
                let complaint = complaints.entry(folder.unwrap_or(manifest)).or_default();
                let rendered = builder.shadow.real_paths(&rendered);
                if complaint.first.is_empty() {
                    complaint.first = message;
                    tracing::warn!("`{name}` does not compile:\n{rendered}");
                }
                complaint.rendered.push_str(&rendered);
            }
            Event::Waiting { what } => {
                let note = format!(
                    "waiting for another cargo: {what} of {}",
                    self.target.folder.display()
                );
                tracing::info!("{note}");
                self.catalog.note(note);
            }
            Event::Compiling { what } => {
                tracing::debug!("cargo: {what}");
                self.catalog
                    .note(format!("built {done} of {} operations; cargo: {what}", packages.len()));
            }
        })
    }

    /// After a build that began: what is still not there was refused by the compiler.
    fn refuse_unbuilt(
        &self,
        shadow: &Shadow,
        unbuilt: &[(Buildable, String)],
        complaints: &BTreeMap<PathBuf, Complaint>,
        ended: &Ended,
    ) {
        for (op, _) in unbuilt {
            let refusal = match complaints.get(&op.entry.folder) {
                Some(own) => Refusal::new(
                    format!("it does not compile: {}", own.first),
                    "correct it; the compiler's message tells where",
                )
                .detail(own.rendered.clone()),
                None => match complaints.values().next() {
                    Some(other) => Refusal::new(
                        format!("a crate that it needs does not compile: {}", other.first),
                        "correct that crate first",
                    )
                    .detail(
                        complaints
                            .values()
                            .map(|complaint| &*complaint.rendered)
                            .collect::<String>(),
                    ),
                    None if self.running.is_stopped() => {
                        Refusal::new("the build was stopped with the host", "start the host again")
                    }
                    None => {
                        let said = shadow.real_paths(&ended.said);
                        Refusal::new(
                            format!("cargo built nothing of it: {}", summary(&said)),
                            "see cargo's message",
                        )
                        .detail(said)
                    }
                },
            };
            refuse(self.catalog, &op.entry, refusal.file(&op.entry.folder));
        }
    }

    /// The crates for which cargo refuses the whole workspace, each with what cargo said: those it names, else those
    /// that it refuses when they are alone.
    fn culprits(
        &self,
        shadow: &Shadow,
        members: &[Member],
        said: &str,
    ) -> BTreeMap<PathBuf, String> {
        let named: BTreeMap<_, _> = shadow
            .members_named_in(said)
            .into_iter()
            .map(|member| (member.folder.clone(), said.to_owned()))
            .collect();
        if !named.is_empty() {
            return named;
        }
        let (libraries, ops): (Vec<_>, Vec<_>) =
            members.iter().cloned().partition(|member| self.is_library(&member.folder));
        // A library that cannot be read would make every operation beside it look guilty.
        let alone = libraries.iter().map(|library| vec![library.clone()]);
        let beside = ops.iter().map(|op| libraries.iter().chain([op]).cloned().collect());
        let candidates = libraries.iter().chain(&ops).zip(alone.chain(beside));
        let mut culprits: BTreeMap<PathBuf, String> = BTreeMap::new();
        for (candidate, members) in candidates {
            if !self.is_library(&candidate.folder)
                && culprits.keys().any(|folder| self.is_library(folder))
            {
                break;
            }
            if let Some(said) = self.complaint_about(members) {
                culprits.insert(candidate.folder.clone(), said);
            }
        }
        culprits
    }

    /// What cargo says against a workspace of these members.
    fn complaint_about(&self, members: Vec<Member>) -> Option<String> {
        let root = self.shadow_folder().with_extension("probe");
        let shadow = Shadow::sync(&root, self.checkout, members, |_| {}).ok()?;
        let builder = Builder { shadow: &shadow, target: self.target, running: self.running };
        Some(shadow.real_paths(&builder.resolve().ok()?.err()?))
    }

    fn is_library(&self, folder: &Path) -> bool {
        self.place.found.libraries.iter().any(|library| library.folder == folder)
    }

    fn give_up(&self, stale: &[(Buildable, String)], reason: &str, error: &io::Error) {
        let refusal = Refusal::new(
            reason,
            "install Rust, or give a folder of built operations with --plugins",
        )
        .detail(error.to_string());
        for (op, _) in
            stale.iter().filter(|(op, _)| matches!(op.entry.state(), EntryState::Building))
        {
            refuse(self.catalog, &op.entry, refusal.clone());
        }
    }
}

/// The first line that says what is wrong, without paths.
fn summary(said: &str) -> String {
    let line = said
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("error"))
        .or_else(|| said.lines().next());
    let line = line.unwrap_or("no reason given").trim_start_matches("error: ");
    // Messages go to callers, who are told no paths.
    let words = line.split(' ').map(|word| if word.contains('/') { "…" } else { word });
    words.collect::<Vec<_>>().join(" ")
}
