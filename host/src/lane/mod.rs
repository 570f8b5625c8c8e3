//! Where a call runs. A [`Lane`] takes a [`Job`] and gives the reply; everything before and after it, waiting,
//! timing, limits and records, is dispatch and equal for all lanes.

mod inline;

use std::fmt;
use std::time::Instant;

use crate::dispatch::{Call, Dispatcher};
use crate::error::HostError;
use crate::plugins::{Entry, LaneChoice, Loaded};

pub(crate) use inline::Inline;

/// The lane that runs the calls of an operation that is meant for `wanted`. This build has the inline lane alone, so
/// everything runs there.
pub(crate) fn runs_in(_wanted: LaneChoice) -> LaneChoice {
    LaneChoice::Inline
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
}

/// Where a call runs.
pub(crate) trait Lane: Send + Sync + fmt::Debug {
    /// Runs the job to its end on this thread.
    fn run(&self, job: &Job<'_>) -> Result<sdk::Reply, HostError>;
}
