//! [`Work`]: building what is not built, and finding out whose fault it is when that fails.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::blame::{passing_if_outside, refuse_all, stopped_with_host, summary};
use super::outcome::{refuse, take};
use super::queue::Queue;
use crate::lock_holder::Holder;
use crate::plugins::build::{Builder, Ended, Event, More, Running, Stopped, Target};
use crate::plugins::catalog::{Catalog, Entry};
use crate::plugins::crate_folder::{package_of, path_dependencies};
use crate::plugins::discover::{self, FoundLibrary};
use crate::plugins::judge::Judge;
use crate::plugins::refusal::Refusal;
use crate::plugins::roots::{Root, Surroundings};
use crate::plugins::shadow::{Member, Shadow};
use crate::plugins::stamp::{Hidden, Key, Stamps, short_hash};

/// An operation whose crate is in order.
#[derive(Debug, Clone)]
pub(super) struct Buildable {
    pub(super) entry: Arc<Entry>,
    pub(super) package: String,
    /// Which of the roots it lies in.
    pub(super) root: usize,
}

/// An operation that has to be built.
#[derive(Debug)]
pub(super) struct Stale {
    pub(super) op: Buildable,
    /// What it is built from.
    pub(super) key: Key,
    /// What changed in a way that cargo cannot see.
    pub(super) hidden: Option<Hidden>,
}

/// What was found around the crates.
pub(super) struct Place<'a> {
    pub(super) around: &'a Surroundings,
    pub(super) roots: &'a [Root],
    pub(super) libraries: &'a [FoundLibrary],
}

/// Building what is not built.
pub(super) struct Work<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) running: &'a Running,
    pub(super) place: &'a Place<'a>,
    pub(super) judge: &'a Judge,
    pub(super) checkout: &'a Path,
    pub(super) target: &'a Target,
    pub(super) stamps: &'a Stamps,
    /// What one step of a build may take.
    pub(super) limit: Duration,
}

/// What came of a batch, beside the state of each of its operations.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The folders that cargo cannot even read.
    pub(super) culprits: BTreeSet<PathBuf>,
    /// Whether it gave way to something that was saved meanwhile; some of it is pending still.
    pub(super) gave_way: bool,
    /// Whether something changed while it was built. Not what changed later: somebody who saves as soon as the version
    /// before answers is no build that writes into its own folders.
    pub(super) disturbed: bool,
}

/// The compiler's errors of one crate.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    pub(super) first: String,
    pub(super) rendered: String,
    /// Whether it is of an operation that is to be built, and not of a crate that some are built from.
    pub(super) of_operation: bool,
}

const INSTALL: &str = "install Rust, or give a folder of built operations with --plugins";
const PREPARE: &str = "make the target folder writable, with space left on its disk";

/// The most bytes that are kept of them.
const RENDERED: usize = 256 << 10;

impl Work<'_> {
    /// Builds the stale ones beside the crates `ops`, which they are among. A crate that cargo cannot even read is left
    /// out and the rest tried again, and so is one whose build gets nowhere.
    pub(super) fn build(&self, ops: &[&Buildable], mut stale: Vec<Stale>) -> Outcome {
        self.catalog.unsettle();
        let mut outcome = Outcome::default();
        let mut members = self.members(ops);
        let mut queue = Queue::new(stale.len());
        while !stale.is_empty() && !self.running.is_stopped() {
            let shadow = match self.shadow(members.clone()) {
                Ok(shadow) => shadow,
                Err(error) => {
                    self.give_up(&stale, "the build folder cannot be prepared", PREPARE, &error);
                    return outcome;
                }
            };
            self.refuse_gone(&shadow, &mut members, &mut stale);
            if stale.is_empty() {
                return outcome;
            }
            let (target, running, limit) = (self.target, self.running, self.limit);
            let builder = Builder { shadow: &shadow, target, running, limit };
            self.forget_hidden(&builder, &mut stale);
            let mut complaints = BTreeMap::new();
            let mut disturbed = None;
            let (mut batch, others) = queue.next(stale);
            let run = (&*batch, &*others, &mut queue);
            let ended = match self.run(&builder, run, &mut complaints, &mut disturbed) {
                Ok(ended) => {
                    outcome.disturbed |= disturbed.unwrap_or_else(|| self.running.has_changes());
                    ended
                }
                Err(error) => {
                    let reason = if error.kind() == io::ErrorKind::NotFound {
                        "it is not built and there is no cargo on this machine".to_owned()
                    } else {
                        format!("cargo could not be run: {}", summary(&error.to_string()))
                    };
                    batch.extend(others);
                    self.give_up(&batch, &reason, INSTALL, &error);
                    return outcome;
                }
            };
            batch.retain(|stale| stale.op.entry.is_pending());
            stale = others;
            match &ended.stopped {
                Some(Stopped::GaveWay) => {
                    tracing::info!(
                        "a build that takes long gives way to what has been saved meanwhile"
                    );
                    outcome.gave_way = true;
                    return outcome;
                }
                Some(Stopped::ForOthers) => {
                    stale.extend(batch);
                    continue;
                }
                Some(Stopped::GivenUp { why, steps }) => {
                    stale.extend(batch);
                    self.refuse_endless(&shadow, &mut members, &mut stale, why, steps);
                    continue;
                }
                None => {}
            }
            if ended.began || ended.success || self.running.is_stopped() {
                self.refuse_unbuilt(&shadow, &batch, &complaints, &ended);
                continue;
            }
            stale.extend(batch);
            let culprits = self.culprits(&shadow, &members, &ended.said);
            if culprits.is_empty() {
                let said = shadow.real_paths(&ended.words());
                let refusal = Refusal::new(
                    format!("cargo cannot build here: {}", summary(&said)),
                    "correct what cargo complains about; no operation's own files are at fault",
                )
                .detail(said)
                // Nothing that is watched tells when it is put right.
                .passing();
                refuse_all(self.catalog, &stale, &refusal);
                return outcome;
            }
            for (folder, said) in &culprits {
                let said = shadow.real_paths(said);
                if let Some(Stale { op, .. }) =
                    stale.iter().find(|it| it.op.entry.folder == *folder)
                {
                    let refusal = Refusal::new(
                        format!("cargo refuses its Cargo.toml: {}", summary(&said)),
                        "correct its Cargo.toml",
                    );
                    let refusal = refusal.file(folder.join("Cargo.toml")).detail(said);
                    refuse(self.catalog, &op.entry, passing_if_outside(refusal));
                } else {
                    tracing::warn!(folder = %folder.display(), "cargo refuses a crate: {said}");
                }
            }
            members.retain(|member| !culprits.contains_key(&member.folder));
            stale.retain(|stale| !culprits.contains_key(&stale.op.entry.folder));
            outcome.culprits.extend(culprits.into_keys());
        }
        // What is left when nothing more may begin.
        refuse_all(self.catalog, &stale, &stopped_with_host());
        outcome
    }

    /// Every crate in order, also those that are built: leaving some out would change the lock file to and fro.
    fn members(&self, ops: &[&Buildable]) -> Vec<Member> {
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
            self.place.libraries.iter().map(|library| member(library.root, &library.folder));
        let mut members: Vec<Member> = Vec::new();
        for found in ops.iter().map(|op| member(op.root, &op.entry.folder)).chain(libraries) {
            if !members.iter().any(|other| other.place == found.place) {
                members.push(found);
            }
        }
        members
    }

    /// One for each set of roots: hosts that serve other folders do not keep re-linking each other's.
    pub(super) fn shadow_folder(&self) -> PathBuf {
        let roots: Vec<String> =
            self.place.roots.iter().map(|root| root.path.display().to_string()).collect();
        self.target.own_folder().join("shadow").join(short_hash(Path::new(&roots.join("\n"))))
    }

    fn shadow(&self, members: Vec<Member>) -> io::Result<Shadow> {
        Shadow::sync(&self.shadow_folder(), self.checkout, members, |lock| {
            let holder = held_by(lock);
            let note = format!(
                "waiting for another host that builds the same folders{holder} (it holds {})",
                lock.display()
            );
            tracing::info!("{note}");
            self.catalog.note(note);
        })
    }

    fn run(
        &self,
        builder: &Builder<'_>,
        (stale, others, queue): (&[Stale], &[Stale], &mut Queue),
        complaints: &mut BTreeMap<PathBuf, Complaint>,
        disturbed: &mut Option<bool>,
    ) -> io::Result<Ended> {
        let packages: Vec<&str> = stale.iter().map(|stale| stale.op.package.as_str()).collect();
        tracing::info!(operations = packages.len(), profile = %self.target.profile, "building");
        self.catalog.note(match packages.len() {
            1 => "building 1 operation".to_owned(),
            count => format!("building {count} operations"),
        });
        let (mut done, mut failed, mut broken) = (0, BTreeSet::new(), Vec::new());
        let all = queue.all;
        let of_manifest = |manifest: &Path| {
            let folder = &builder.shadow.member_of_manifest(manifest)?.folder;
            stale.iter().find(|stale| stale.op.entry.folder == *folder)
        };
        builder.build(&packages, |event| {
            match &event {
                Event::Waiting { .. } => queue.is_blocked(),
                // Its name and its version.
                Event::Compiling { what } => queue.begins(what.split(' ').next().unwrap_or(what)),
                Event::Silence => {}
                _ => queue.goes_on(),
            }
            match event {
                Event::Built { manifest, library, fresh } => {
                    if let Some(Stale { op, key, .. }) = of_manifest(&manifest) {
                        done += 1;
                        queue.done += 1;
                        queue.came_further();
                        let stamped = Some((self.stamps, key));
                        take(self.catalog, self.judge, &op.entry, (&library, None), stamped);
                        let done = queue.done;
                        if fresh {
                            tracing::debug!(op = %op.entry.address, "{done} of {all} was built before");
                        } else {
                            tracing::info!(op = %op.entry.address, "built {done} of {all}");
                        }
                        self.catalog.note(format!("built {done} of {all} operations"));
                    }
                }
                Event::Error { manifest, name, message, rendered } => {
                    let member = builder.shadow.member_of_manifest(&manifest);
                    let folder = member.map(|member| member.folder.clone());
                    let own = of_manifest(&manifest);
                    failed.extend(own.map(|stale| stale.op.entry.folder.clone()));
                    let complaint = complaints.entry(folder.unwrap_or(manifest)).or_default();
                    complaint.of_operation = own.is_some();
                    let rendered = builder.shadow.real_paths(&rendered);
                    if complaint.first.is_empty() {
                        complaint.first = message;
                        tracing::warn!("`{name}` does not compile:\n{rendered}");
                    }
                    if complaint.rendered.len() < RENDERED {
                        complaint.rendered.push_str(&rendered);
                    }
                }
                Event::Failed { package } => {
                    broken.extend(stale.iter().find(|stale| stale.op.package == package));
                }
                Event::Waiting { what } => self.note_waiting(&what),
                Event::Compiling { what } => {
                    tracing::debug!("cargo: {what}");
                    let done = queue.done;
                    self.catalog.note(format!("built {done} of {all} operations; cargo: {what}"));
                }
                // What was saved meanwhile may be the other half of what failed.
                Event::Silence if self.running.has_changes() => {}
                Event::Silence => {
                    // Whatever the compiler said of them has been heard. Who waits for one of them waits for no other.
                    for stale in std::mem::take(&mut broken) {
                        if let Some(complaint) = complaints.get(&stale.op.entry.folder) {
                            queue.came_further();
                            self.refuse_broken(stale, complaint);
                        }
                    }
                }
                Event::Step => {}
            }
            if done + failed.len() < stale.len() {
                let gives_way = queue.gives_way(done, stale, others);
                return if gives_way { More::Others } else { More::Awaited };
            }
            disturbed.get_or_insert_with(|| self.running.has_changes());
            if others.is_empty() { More::Nothing } else { More::Next }
        })
    }

    fn note_waiting(&self, what: &str) {
        let note = if what.contains("package cache") {
            // Cargo's words for its locks; this one is not about the target folder.
            format!("waiting for another cargo: {what}")
        } else {
            let whose = self.target.folder.display();
            let holder = self.target.locks().iter().map(|lock| held_by(lock)).collect::<String>();
            format!("waiting for another cargo: {what} in {whose}{holder}")
        };
        tracing::info!("{note}");
        self.catalog.note(note);
    }

    /// Has cargo build what it would take for unchanged.
    fn forget_hidden(&self, builder: &Builder<'_>, stale: &mut [Stale]) {
        let mut packages = BTreeSet::new();
        for stale in stale {
            let Some(hidden) = stale.hidden.take() else { continue };
            packages.insert(stale.op.package.clone());
            if hidden == Hidden::Others {
                let others = path_dependencies(&stale.op.entry.folder);
                packages.extend(others.iter().filter_map(|folder| package_of(folder)));
            }
        }
        if packages.is_empty() {
            return;
        }
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        tracing::info!(
            ?packages,
            "other files with older times are in their places: built from nothing"
        );
        match builder.forget(&packages) {
            Ok(ended) if ended.success => {}
            Ok(ended) => tracing::warn!("cargo cannot clean up: {}", ended.said.trim()),
            Err(error) => tracing::warn!(%error, "cargo cannot clean up"),
        }
    }
}

/// Who holds a lock, for a note that ends before it.
fn held_by(lock: &Path) -> String {
    Holder::of(lock).map(|holder| format!(", held by {holder}")).unwrap_or_default()
}
