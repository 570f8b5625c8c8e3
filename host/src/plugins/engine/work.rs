//! [`Work`]: building what is not built, and finding out whose fault it is when that fails.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::look::Place;
use super::outcome::{refuse, take};
use crate::plugins::build::{Builder, Ended, Event, Running, Target};
use crate::plugins::catalog::{Catalog, Entry};
use crate::plugins::discover;
use crate::plugins::judge::Judge;
use crate::plugins::refusal::Refusal;
use crate::plugins::shadow::{Member, Shadow};
use crate::plugins::stamp::{Stamps, short_hash};

/// An operation whose crate is in order.
#[derive(Debug, Clone)]
pub(super) struct Buildable {
    pub(super) entry: Arc<Entry>,
    pub(super) package: String,
    /// Which of the roots it lies in.
    pub(super) root: usize,
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
}

/// The compiler's errors of one crate.
#[derive(Debug, Default)]
struct Complaint {
    first: String,
    rendered: String,
}

impl Work<'_> {
    /// Builds the stale ones. A crate that cargo cannot even read is left out and the rest tried again.
    pub(super) fn build(&mut self, crates: &[Buildable], mut stale: Vec<(Buildable, String)>) {
        self.catalog.unsettle();
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
            stale.retain(|(op, _)| op.entry.is_pending());
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
            self.place.libraries.iter().map(|library| member(library.root, &library.folder));
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
                take(
                    self.catalog,
                    self.judge,
                    &op.entry,
                    (&library, None),
                    Some((self.stamps, key)),
                );
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
                let whose = self.target.folder.display();
                let note = match &*what {
                    // Cargo's words for its locks; this one is not about the target folder.
                    what if what.contains("package cache") => {
                        format!("waiting for another cargo: {what}")
                    }
                    what => format!("waiting for another cargo: {what} in {whose}"),
                };
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
        for (op, key) in unbuilt {
            let own = complaints.get(&op.entry.folder);
            let refusal = match own {
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
            let refusal = refusal.file(&op.entry.folder);
            if !complaints.is_empty() {
                // For those who look without building, until something is saved.
                self.stamps.put_failure(&op.entry.folder, key, &refusal);
            }
            refuse(self.catalog, &op.entry, refusal);
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
        self.place.libraries.iter().any(|library| library.folder == folder)
    }

    fn give_up(&self, stale: &[(Buildable, String)], reason: &str, error: &io::Error) {
        let refusal = Refusal::new(
            reason,
            "install Rust, or give a folder of built operations with --plugins",
        )
        .detail(error.to_string());
        for (op, _) in stale.iter().filter(|(op, _)| op.entry.is_pending()) {
            refuse(self.catalog, &op.entry, refusal.clone());
        }
    }
}

/// What is wrong, in one line and without paths: cargo's first words, and the innermost of the causes that it gives.
fn summary(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines().find(|line| line.starts_with("error")).or_else(|| lines().next());
    let mut words = first.unwrap_or("no reason given").trim_start_matches("error: ").to_owned();
    // After each of these lines comes a cause of the one before.
    let causes: Vec<&str> = lines()
        .zip(lines().skip(1))
        .filter(|(line, _)| *line == "Caused by:")
        .map(|it| it.1)
        .collect();
    for cause in causes.iter().skip(causes.len().saturating_sub(2)) {
        words.push_str(": ");
        words.push_str(cause);
    }
    // Messages go to callers, who are told no paths.
    let words = words.split(' ').map(|word| match word.contains('/') {
        true if word.ends_with(':') => "…:",
        true => "…",
        false => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_tells_the_cause_and_no_path() {
        for (said, want) in [
            (
                "error: no matching package named `x` found\nlocation searched: crates.io index\n",
                "no matching package named `x` found",
            ),
            (
                "error: failed to load manifest for workspace member `/t/p/a`\n\nCaused by:\n  failed to parse manifest at `/t/p/a/Cargo.toml`\n\nCaused by:\n  failed to parse the `edition` key\n\nCaused by:\n  `1999` is unknown\n",
                "failed to load manifest for workspace member …: failed to parse the `edition` key: `1999` is unknown",
            ),
            ("", "no reason given"),
        ] {
            assert_eq!(summary(said), want);
        }
    }
}
