//! [`Queue`]: in which order operations are built when calls wait for some of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::work::Stale;

/// How often a build gives way to what is waited for. Each time costs cargo's start, and what it had half done.
const MOST: u32 = 3;

/// How long a few may be built before others. What takes longer, or never ends, is built beside the others.
const HEAD_START: Duration = Duration::from_secs(20);
/// The same while nothing at all comes further.
const SILENCE: Duration = Duration::from_secs(5);

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
    /// Whether what is built now is what is waited for.
    first: bool,
    /// Whether something took too long to be built before others.
    together: bool,
    given_way: u32,
    began: Instant,
    /// When anything was done, or begun.
    further: Instant,
}

impl Queue {
    pub(super) fn new(all: usize) -> Self {
        Self {
            all,
            done: 0,
            projects: BTreeSet::new(),
            first: false,
            together: false,
            given_way: 0,
            began: Instant::now(),
            further: Instant::now(),
        }
    }

    /// What to build now, and what after it.
    pub(super) fn next(&mut self, stale: Vec<Stale>) -> (Vec<Stale>, Vec<Stale>) {
        (self.began, self.further) = (Instant::now(), Instant::now());
        self.first = false;
        if self.together {
            return (stale, Vec::new());
        }
        let (wanted, rest): (Vec<_>, Vec<_>) =
            stale.into_iter().partition(|stale| stale.op.entry.is_wanted());
        if !wanted.is_empty() {
            self.first = true;
            self.projects.extend(wanted.iter().map(project));
            return (wanted, rest);
        }
        let (beside, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|stale| self.projects.contains(&project(stale)));
        if beside.is_empty() { (others, beside) } else { (beside, others) }
    }

    /// Something has been done or begun.
    pub(super) fn came_further(&mut self) {
        self.further = Instant::now();
    }

    /// Whether this batch, of which some are `done`, should be left: for something that is waited for, or since it holds
    /// up what comes `after` it.
    pub(super) fn gives_way(&mut self, done: usize, batch: &[Stale], after: &[Stale]) -> bool {
        let too_long = self.further.elapsed() >= SILENCE || self.began.elapsed() >= HEAD_START;
        if !after.is_empty() && too_long {
            self.together = true;
            return true;
        }
        // What they all need is there when the first one is.
        if self.first || self.together || done == 0 || self.given_way >= MOST {
            return false;
        }
        let is_awaited = |stale: &Stale| stale.op.entry.is_wanted() && stale.op.entry.is_pending();
        let gives_way = batch.iter().chain(after).any(is_awaited);
        self.given_way += u32::from(gives_way);
        gives_way
    }
}

fn project(stale: &Stale) -> Project {
    let address = &stale.op.entry.address;
    (Arc::clone(&address.workspace), Arc::clone(&address.project))
}
