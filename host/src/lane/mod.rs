//! Where a call runs. A [`Lane`] takes a [`Job`] and gives the reply; everything before and after it, waiting,
//! timing, limits and records, is dispatch and equal for all lanes.
//!
//! - [`Inline`]: in the host's own process. A panic costs the call; an abort costs the host.
//! - [`Workers`]: in a child process, of which a `Pool` holds a project's; a `Visit` is one call there. One `Supervisor`
//!   starts and buries them; a `Link` is the socket to one, on which `frames` go, out by its `Outbox`; `Cause` is what
//!   ended one, `CrashRecord` who has to answer for it.
//! - [`Lanes`] chooses.

mod cause;
pub(crate) mod frames;
mod inline;
mod link;
mod outbox;
mod output;
mod pool;
mod process;
mod record;
mod supervisor;
mod visit;
mod workers;

use std::fmt;
use std::time::Instant;

use crate::dispatch::{Call, Dispatcher};
use crate::error::HostError;
use crate::logging::budget::Budget;
use crate::plugins::{Entry, LaneChoice, Loaded};
use crate::program;

pub(crate) use cause::CUT_OFF;
pub use cause::{Cause, Company};
pub(crate) use inline::Inline;
pub(crate) use record::CrashRecord;
pub(crate) use workers::{WorkerOptions, Workers};

/// The lane that runs the calls of an operation that is meant for `wanted`. A process that is not the host itself (a
/// test or a bench that uses it as a library) has no program to start workers with, and runs everything inline.
pub(crate) fn runs_in(wanted: LaneChoice) -> LaneChoice {
    if program::own().is_some() { wanted } else { LaneChoice::Inline }
}

/// One call that is ready to run.
pub(crate) struct Job<'a> {
    /// For calls of one operation by another.
    pub(crate) dispatcher: &'a Dispatcher,
    /// The operation.
    pub(crate) entry: &'a Entry,
    /// The version of it that was current when the call began; it stays that one to the end.
    pub(crate) loaded: &'a Loaded,
    /// What is asked.
    pub(crate) call: &'a Call,
    /// When this call began.
    pub(crate) began: Instant,
    /// When the answer is due.
    pub(crate) deadline: Instant,
    /// How many calls are around this one.
    pub(crate) depth: usize,
    /// What it may still say in the log.
    pub(crate) lines: Budget,
}

impl Job<'_> {
    /// What the caller is told when its time is up.
    pub(crate) fn timeout(&self) -> HostError {
        let had = self.deadline.saturating_duration_since(self.began);
        HostError::Timeout { op: self.entry.address.clone(), after: had.min(self.began.elapsed()) }
    }
}

/// Where a call runs.
pub(crate) trait Lane: Send + Sync + fmt::Debug {
    /// Runs the job to its end on this thread.
    fn run(&self, job: &Job<'_>) -> Result<sdk::Reply, HostError>;
}

/// All lanes; each call runs in the one of its operation.
#[derive(Debug)]
pub(crate) struct Lanes {
    inline: Inline,
    workers: Option<Workers>,
}

impl Lanes {
    /// `workers` is absent where there is no program to start them with.
    pub(crate) fn new(inline: Inline, workers: Option<Workers>) -> Self {
        Self { inline, workers }
    }
}

impl Lane for Lanes {
    fn run(&self, job: &Job<'_>) -> Result<sdk::Reply, HostError> {
        match (job.entry.lane_of(job.loaded), &self.workers) {
            (LaneChoice::Worker, Some(workers)) => workers.run(job),
            (LaneChoice::Inline, _) | (LaneChoice::Worker, None) => self.inline.run(job),
        }
    }
}
