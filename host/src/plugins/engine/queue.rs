//! [`Queue`]: in which order operations are built when calls wait for some of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::work::Stale;

/// How often a build gives way to what is waited for. Each time costs cargo's start, and what it had half done.
const MOST: u32 = 3;

/// How long a few may be built before others without one of them being done. What takes longer, or never ends, is built
/// beside the others.
const HEAD_START: Duration = Duration::from_secs(10);
/// How long a batch has done next to nothing that would be lost.
const YOUNG: Duration = Duration::from_secs(1);

type Project = (Arc<str>, Arc<str>);

/// Operations that are waited for come first, then the rest of their projects, since the next call is likely to be for
/// one of those, then all others.
#[derive(Debug)]
pub(super) struct Queue {
    /// How many operations there are to build.
    pub(super) all: usize,
    /// How many have been built.
    pub(super) done: usize,
    /// The projects, each with its workspace, of which an operation was waited for.
    projects: BTreeSet<Project>,
    /// Packages that took too long to be built before others.
    slow: BTreeSet<String>,
    /// Packages whose turn has come in this batch.
    begun: BTreeSet<String>,
    /// Whether what is built now is what is waited for.
    first: bool,
    given_way: u32,
    /// When the batch was begun, or one of it was done.
    further: Instant,
    /// Whether it waits for another cargo, which may take as long as it takes.
    blocked: bool,
}

impl Queue {
    pub(super) fn new(all: usize) -> Self {
        Self {
            all,
            done: 0,
            projects: BTreeSet::new(),
            slow: BTreeSet::new(),
            begun: BTreeSet::new(),
            first: false,
            given_way: 0,
            further: Instant::now(),
            blocked: false,
        }
    }

    /// What to build now, and what after it.
    pub(super) fn next(&mut self, stale: Vec<Stale>) -> (Vec<Stale>, Vec<Stale>) {
        (self.further, self.blocked) = (Instant::now(), false);
        self.begun.clear();
        let (wanted, rest): (Vec<_>, Vec<_>) =
            stale.into_iter().partition(|stale| self.is_wanted(stale));
        self.first = !wanted.is_empty();
        if self.first {
            self.projects.extend(wanted.iter().map(project));
            return (wanted, rest);
        }
        if !self.slow.is_empty() {
            return (rest, Vec::new());
        }
        let (beside, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|stale| self.projects.contains(&project(stale)));
        if beside.is_empty() { (others, beside) } else { (beside, others) }
    }

    /// Cargo waits for another one.
    pub(super) fn is_blocked(&mut self) {
        self.blocked = true;
    }

    /// The turn of this package has come.
    pub(super) fn begins(&mut self, package: &str) {
        self.begun.insert(package.to_owned());
        self.goes_on();
    }

    /// Cargo waits no more.
    pub(super) fn goes_on(&mut self) {
        if std::mem::take(&mut self.blocked) {
            self.further = Instant::now();
        }
    }

    /// One of the batch is built, or refused.
    pub(super) fn came_further(&mut self) {
        (self.further, self.blocked) = (Instant::now(), false);
    }

    /// Whether this batch, of which some are `done`, should be left: for something that is waited for, or since it holds
    /// up what comes `after` it.
    pub(super) fn gives_way(&mut self, done: usize, batch: &[Stale], after: &[Stale]) -> bool {
        if self.blocked {
            return false;
        }
        let still = self.further.elapsed();
        let too_long = still >= HEAD_START;
        if too_long && !after.is_empty() {
            self.slow.extend(self.at_work(batch));
            return true;
        }
        // What they all need is there when the first one is.
        let half_done = done == 0 && still >= YOUNG && !too_long;
        if self.first || half_done || self.given_way >= MOST {
            return false;
        }
        // What has been begun would be begun anew.
        let is_awaited = |stale: &Stale| {
            self.is_wanted(stale) && stale.op.entry.is_pending() && !self.has_begun(stale)
        };
        let gives_way = batch.iter().chain(after).any(is_awaited);
        self.given_way += u32::from(gives_way);
        gives_way
    }

    /// The packages of a batch that hold it up: those that have been begun, else all that are not done.
    fn at_work(&self, batch: &[Stale]) -> Vec<String> {
        let pending = || batch.iter().filter(|stale| stale.op.entry.is_pending());
        let mut found: Vec<&Stale> = pending().filter(|stale| self.has_begun(stale)).collect();
        if found.is_empty() {
            found.extend(pending());
        }
        found.into_iter().map(|stale| stale.op.package.clone()).collect()
    }

    /// Whether it is waited for, and may still be built before others.
    fn is_wanted(&self, stale: &Stale) -> bool {
        stale.op.entry.is_wanted() && !self.slow.contains(&stale.op.package)
    }

    fn has_begun(&self, stale: &Stale) -> bool {
        self.begun.contains(&stale.op.package)
    }
}

fn project(stale: &Stale) -> Project {
    let address = &stale.op.entry.address;
    (Arc::clone(&address.workspace), Arc::clone(&address.project))
}

#[cfg(test)]
mod tests;
