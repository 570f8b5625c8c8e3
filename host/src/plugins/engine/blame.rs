//! Whose fault it is when something is not built, and what is said to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::outcome::refuse;
use super::work::{Complaint, Stale, Work};
use crate::plugins::build::{Builder, Ended, Step};
use crate::plugins::catalog::Catalog;
use crate::plugins::refusal::Refusal;
use crate::plugins::shadow::{Member, Shadow};

impl Work<'_> {
    /// After a build that began: what is still not there was refused by the compiler.
    pub(super) fn refuse_unbuilt(
        &self,
        shadow: &Shadow,
        unbuilt: &[Stale],
        complaints: &BTreeMap<PathBuf, Complaint>,
        ended: &Ended,
    ) {
        for stale in unbuilt {
            if let Some(own) = complaints.get(&stale.op.entry.folder) {
                self.refuse_broken(stale, own);
                continue;
            }
            if let Some(said) = said_of(&ended.said, &stale.op.package)
                && !self.running.is_stopped()
            {
                let said = shadow.real_paths(&said);
                let reason = format!("cargo built nothing of it: {}", summary(&said));
                self.refuse_and_keep(stale, reason, "see cargo's message", said);
                continue;
            }
            // No operation is built from another one.
            let mut others = complaints.values().filter(|complaint| !complaint.of_operation);
            if let Some(other) = others.next() {
                let reason = format!("a crate that it needs does not compile: {}", other.first);
                let others = others.map(|complaint| &*complaint.rendered);
                let said = std::iter::once(&*other.rendered).chain(others).collect();
                self.refuse_and_keep(stale, reason, "correct that crate first", said);
                continue;
            }
            let refusal = if self.running.is_stopped() {
                stopped_with_host()
            } else {
                let said = shadow.real_paths(&ended.words());
                let reason = format!("cargo built nothing of it: {}", summary(&said));
                Refusal::new(reason, "see cargo's message").detail(said)
            };
            let refusal = passing_if_outside(refusal.file(&stale.op.entry.folder));
            refuse(self.catalog, &stale.op.entry, refusal);
        }
    }

    /// Refuses what the compiler refuses.
    pub(super) fn refuse_broken(&self, stale: &Stale, complaint: &Complaint) {
        let reason = format!("it does not compile: {}", complaint.first);
        let remedy = "correct it; the compiler's message tells where";
        self.refuse_and_keep(stale, reason, remedy, complaint.rendered.clone());
    }

    /// Refuses it and keeps that, for those who look without building, until something is saved.
    fn refuse_and_keep(&self, stale: &Stale, reason: String, remedy: &str, said: String) {
        let entry = &stale.op.entry;
        let refusal = Refusal::new(reason, remedy).detail(said).file(&entry.folder);
        let refusal = passing_if_outside(refusal);
        if !refusal.passing {
            self.stamps.put_failure(&entry.folder, &stale.key.all, &refusal);
        }
        refuse(self.catalog, entry, refusal);
    }

    /// The crates for which cargo refuses the whole workspace, each with what cargo said: those it names, else those
    /// that it refuses when they are alone. None when it refuses even a workspace without them.
    pub(super) fn culprits(
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
        // What is said against a workspace without any of them is about what is around: the tools, the checkout.
        if self.complaint_about(Vec::new()).is_some() {
            return BTreeMap::new();
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
        let (target, running, limit) = (self.target, self.running, self.limit);
        let builder = Builder { shadow: &shadow, target, running, limit };
        Some(shadow.real_paths(&builder.complaint().ok()??))
    }

    fn is_library(&self, folder: &Path) -> bool {
        self.place.libraries.iter().any(|library| library.folder == folder)
    }

    /// Refuses what went away, or is only half there, since it was found.
    pub(super) fn refuse_gone(
        &self,
        shadow: &Shadow,
        members: &mut Vec<Member>,
        stale: &mut Vec<Stale>,
    ) {
        for gone in shadow.gone() {
            for Stale { op, .. } in stale.iter().filter(|it| it.op.entry.folder == gone.folder) {
                let refusal = Refusal::new(
                    "its folder changed while it was to be built",
                    "save it again once it is whole",
                );
                refuse(self.catalog, &op.entry, refusal.file(&gone.folder).passing());
            }
            members.retain(|member| member.folder != gone.folder);
            stale.retain(|stale| stale.op.entry.folder != gone.folder);
        }
    }

    /// Refuses those whose build was given up, and lets the others try again without them.
    pub(super) fn refuse_endless(
        &self,
        shadow: &Shadow,
        members: &mut Vec<Member>,
        stale: &mut Vec<Stale>,
        why: &str,
        steps: &[Step],
    ) {
        // A compiler that works beside a build script that goes too far is not to blame.
        let scripts = steps.iter().any(|step| step.what == Step::SCRIPT);
        let guilty = steps.iter().filter(|step| !scripts || step.what == Step::SCRIPT);
        let mut refused = BTreeSet::new();
        for step in guilty {
            let member = shadow.member_of_manifest(&step.manifest);
            let own = |stale: &&Stale| {
                member.is_some_and(|member| member.folder == stale.op.entry.folder)
            };
            let remedy = "correct that, or allow it more with --build-timeout";
            match stale.iter().find(own) {
                Some(stale) => {
                    let reason = format!("{} {why}", step.what);
                    self.fail(stale, Refusal::new(reason, remedy).file(&stale.op.entry.folder));
                    refused.insert(stale.op.entry.folder.clone());
                }
                // Whoever needs that crate cannot be told from those that do not.
                None => {
                    let reason = format!(
                        "a crate that is built with it is `{}`: {} {why}",
                        step.package, step.what
                    );
                    for stale in stale.iter() {
                        self.fail(stale, Refusal::new(reason.clone(), remedy));
                        refused.insert(stale.op.entry.folder.clone());
                    }
                }
            }
        }
        if refused.is_empty() {
            let refusal = Refusal::new(
                format!("cargo {why} of what it began"),
                "see what cargo waits for, or allow it more with --build-timeout",
            );
            for stale in stale.drain(..) {
                self.fail(&stale, refusal.clone());
            }
        }
        members.retain(|member| !refused.contains(&member.folder));
        stale.retain(|stale| !refused.contains(&stale.op.entry.folder));
    }

    /// Refuses it and keeps that, for those who look without building.
    fn fail(&self, Stale { op, key, .. }: &Stale, refusal: Box<Refusal>) {
        self.stamps.put_failure(&op.entry.folder, &key.all, &refusal);
        refuse(self.catalog, &op.entry, refusal);
    }

    pub(super) fn give_up(&self, stale: &[Stale], reason: &str, remedy: &str, error: &io::Error) {
        let refusal = Refusal::new(reason, remedy).detail(error.to_string()).passing();
        refuse_all(self.catalog, stale, &refusal);
    }
}

pub(super) fn refuse_all(catalog: &Catalog, stale: &[Stale], refusal: &Refusal) {
    for Stale { op, .. } in stale.iter().filter(|stale| stale.op.entry.is_pending()) {
        refuse(catalog, &op.entry, Box::new(refusal.clone()));
    }
}

/// Of what is not built when the host ends.
pub(super) fn stopped_with_host() -> Box<Refusal> {
    Refusal::new("the build was stopped with the host", "start the host again")
}

/// What the tools say when something around them is at fault, and no file of an author's.
const OUTSIDE: [&str; 10] = [
    "No space left on device",
    "signal: 9, SIGKILL",
    "linker `",
    "Cannot allocate memory",
    "Too many open files",
    "Resource temporarily unavailable",
    "spurious network error",
    "Could not resolve host",
    "failed to download",
    "download of",
];

/// Marks a refusal that may well pass by itself.
pub(super) fn passing_if_outside(refusal: Box<Refusal>) -> Box<Refusal> {
    let story = refusal.detail.as_deref().unwrap_or(&refusal.reason);
    let outside = OUTSIDE.iter().any(|words| story.contains(words));
    if outside { refusal.passing() } else { refusal }
}

/// What cargo said of this package alone, for example that its build script failed, and how.
fn said_of(said: &str, package: &str) -> Option<String> {
    let names = [format!("`{package} v"), format!("`{package}`")];
    let mut found = String::new();
    let mut is_of_it = false;
    for line in said.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            is_of_it = line.starts_with("error") && names.iter().any(|name| line.contains(name));
        }
        if is_of_it {
            found.push_str(line);
            found.push('\n');
        }
    }
    (!found.is_empty()).then_some(found)
}

/// What is wrong, in one line and without paths: cargo's first words, and the innermost of the causes that it gives.
pub(super) fn summary(said: &str) -> String {
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
    let words = cut_commands(&words);
    // Messages go to callers, who are told no paths; of a command that cargo quotes, the program's name.
    let words = words.split(' ').map(|word| match word.rsplit_once('/') {
        None => word.to_owned(),
        Some((_, name))
            if word.starts_with('`') && !word.contains("`:") && !word.ends_with('`') =>
        {
            format!("`{name}")
        }
        Some(_) if word.ends_with(':') => "…:".to_owned(),
        Some(_) => "…".to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Without the command lines that cargo quotes: that of a compiler takes a page.
fn cut_commands(words: &str) -> String {
    const MOST: usize = 80;
    let quoted = |(at, part): (usize, &str)| match at % 2 == 1 && part.len() > MOST {
        true => "…".to_owned(),
        false => part.to_owned(),
    };
    words.split('`').enumerate().map(quoted).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_says_of_one_package_is_told_apart() {
        let script = "error: failed to run custom build command for `udf-p-a v0.1.0 (/s/p/a)`\n\nCaused by:\n  \
                      process didn't exit successfully: `/t/build-script-build` (signal: 6, SIGABRT: process abort signal)\n";
        let other = "error: could not compile `udf-p-ab` (lib) due to 1 previous error\n";
        let said = format!("{other}{script}warning: build failed\n{other}");
        assert_eq!(said_of(&said, "udf-p-a").as_deref(), Some(script));
        assert_eq!(said_of(&said, "udf-p-ab"), Some(other.repeat(2)));
        assert_eq!(said_of(&said, "udf-p"), None);
    }

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
            (
                "error: could not execute process `/no/rustc -vV` (never executed)\n\nCaused by:\n  No such file or directory (os error 2)\n",
                "could not execute process `rustc -vV` (never executed): No such file or directory (os error 2)",
            ),
            (
                "error: could not compile `x` (lib)\n\nCaused by:\n  process didn't exit successfully: `/usr/bin/rustc --crate-name x --edition=2024 --crate-type cdylib --emit=dep-info,link -C opt-level=3 -C strip=symbols` (signal: 9, SIGKILL: kill)\n",
                "could not compile `x` (lib): process didn't exit successfully: `…` (signal: 9, SIGKILL: kill)",
            ),
            ("", "no reason given"),
        ] {
            assert_eq!(summary(said), want);
        }
    }
}
