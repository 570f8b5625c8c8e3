//! The durable state of one subject (workflow-engine contract §4): what stages read and recorders write.

mod document;

use serde_json::value::RawValue;

pub use document::{Loaded, StateClass};

use super::clip::head;
use super::moment::Moment;

/// Check failure when a checker said FAIL and named nothing; a note follows it behind `: `.
pub const FALLBACK_FAILURE: &str =
    "The check found that the result does not meet the request, without naming a single point";

const SELF_VERIFY_FAILED: &str = "The check could not be carried out: it failed every time. Verify the result yourself, by any means that works: confirm that every requirement is met and repair what is not.";
const SELF_VERIFY_TIMEOUT: &str = "The check could not be carried out: it ran out of time. Verify the result yourself, by any means that works: confirm that every requirement is met and repair what is not.";
const SELF_VERIFY_BLOCKED: &str = "The check could not be carried out: it did not get at the result. Verify the result yourself, by any means that works: confirm that every requirement is met and repair what is not.";

/// Every wording of the work order that follows exhausted checks.
pub const SELF_VERIFY: [&str; 3] = [SELF_VERIFY_FAILED, SELF_VERIFY_TIMEOUT, SELF_VERIFY_BLOCKED];

/// The areas a write tap may name.
pub const AREAS: [&str; 4] = ["frontend", "backend", "config", "tests"];

const ERRORS: usize = 12;
const ERROR_CHARS: usize = 500;

/// Why a check gave no verdict; colours the work order only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// The checker's run failed or crashed.
    Failed,
    /// The checker ran out of time.
    TimedOut,
    /// It ran, and did not get at the result.
    Blocked,
}

impl Unchecked {
    /// Reads the status of the checker's run.
    pub fn from_status(status: &str) -> Self {
        match status {
            "failed" | "error" => Self::Failed,
            "timeout" => Self::TimedOut,
            _ => Self::Blocked,
        }
    }

    fn order(self) -> &'static str {
        match self {
            Self::Failed => SELF_VERIFY_FAILED,
            Self::TimedOut => SELF_VERIFY_TIMEOUT,
            Self::Blocked => SELF_VERIFY_BLOCKED,
        }
    }
}

/// One word for where the work stands; derived, never stored, never read by a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Verified.
    Done,
    /// The model provider is down.
    PausedInfra,
    /// A person is to be asked.
    Gated,
    /// The result is staged and not yet verified.
    Checking,
    /// None of these.
    Working,
}

impl Phase {
    /// The word in the journal.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::PausedInfra => "paused_infra",
            Self::Gated => "gated",
            Self::Checking => "checking",
            Self::Working => "working",
        }
    }
}

/// The state of one subject. The table of the contract says who sets and who clears each field.
///
/// Loading keeps what it does not know: unknown keys stay verbatim, in place and order.
#[derive(Clone, Debug)]
pub struct WorkState {
    /// Version of the document.
    pub schema: u32,
    /// Work rounds counted since the budget was last reset.
    pub rounds: u32,
    /// The budget is spent and a person is to be asked.
    pub awaiting_user_decision: bool,
    /// Something failed since the engine last took a turn.
    pub pending_round: bool,
    /// The worker finished and the stage action has not run yet.
    pub built: bool,
    /// The result is ready to be checked.
    pub staged: bool,
    /// The check passed.
    pub verified: bool,
    /// What the last check found, at most 10 entries of 300 characters.
    pub check_failures: Vec<String>,
    /// Reports without a verdict in a row.
    pub check_attempts: u32,
    /// Features found to work since the last work outcome, the last 60.
    pub checked_ok: Vec<String>,
    /// The last work outcome.
    pub last_result: Option<LastResult>,
    /// What users said, the last 5, at most 1000 characters each.
    pub user_leads: Vec<String>,
    /// What users said in earlier tasks and nobody served, the last 10.
    pub backlog: Vec<String>,
    /// The provider was down; nothing is spent until a message or a real outcome.
    pub infra_blocked: bool,
    /// The notify action was handed out.
    pub notify_step_issued: bool,
    /// The presentation was asked for.
    pub presentation_asked: bool,
    /// The task is a change of something that stands.
    pub update_scope: bool,
    /// What was written to, of [`AREAS`].
    pub touched_areas: Vec<String>,
    layout: Vec<document::Slot>,
}

impl Default for WorkState {
    fn default() -> Self {
        Self {
            schema: 1,
            rounds: 0,
            awaiting_user_decision: false,
            pending_round: false,
            built: false,
            staged: false,
            verified: false,
            check_failures: Vec::new(),
            check_attempts: 0,
            checked_ok: Vec::new(),
            last_result: None,
            user_leads: Vec::new(),
            backlog: Vec::new(),
            infra_blocked: false,
            notify_step_issued: false,
            presentation_asked: false,
            update_scope: false,
            touched_areas: Vec::new(),
            layout: Vec::new(),
        }
    }
}

impl WorkState {
    /// Where the work stands, first match wins.
    pub fn phase(&self) -> Phase {
        if self.verified {
            Phase::Done
        } else if self.infra_blocked {
            Phase::PausedInfra
        } else if self.awaiting_user_decision {
            Phase::Gated
        } else if self.staged {
            Phase::Checking
        } else {
            Phase::Working
        }
    }

    /// Whether the work is held by a pause or a gate; only a message or a real outcome ends that.
    pub fn is_held(&self) -> bool {
        !self.verified && (self.infra_blocked || self.awaiting_user_decision)
    }

    /// The round in labels and traces: the first one is 1.
    pub fn round(&self) -> u32 {
        self.rounds.saturating_add(1)
    }

    /// Hands exhausted checks back to the worker; its order is to verify the result itself.
    pub(crate) fn exhaust_checks(&mut self, why: Unchecked) {
        self.staged = false;
        self.check_attempts = 0;
        self.check_failures = vec![why.order().to_owned()];
        self.pending_round = true;
    }

    /// Settles what failed since the last turn into at most one round (contract §5).
    pub(crate) fn settle(&mut self, round_budget: u32) -> Settled {
        if !self.pending_round || self.infra_blocked {
            return Settled::Nothing;
        }
        self.pending_round = false;
        if self.staged || self.verified {
            return Settled::Forgiven;
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds >= round_budget {
            self.awaiting_user_decision = true;
        }
        Settled::Counted
    }

    /// All fields back to their defaults; what the engine does not know stays.
    pub(crate) fn reset(&mut self) {
        let layout = std::mem::take(&mut self.layout);
        *self = Self { schema: self.schema, layout, ..Self::default() };
    }
}

/// What settling did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing was pending, or the provider is down.
    Nothing,
    /// A later success made up for the failures: no round.
    Forgiven,
    /// One round.
    Counted,
}

/// The last work outcome: `success`, or the step that failed with its errors.
///
/// One that came from disk is written back byte for byte.
#[derive(Clone, Debug)]
pub struct LastResult {
    step: String,
    errors: Vec<String>,
    raw: Box<RawValue>,
}

impl LastResult {
    pub(crate) fn success(at: Moment) -> Self {
        Self::new("success", None, at)
    }

    /// Keeps the first 12 errors, 500 characters of each.
    pub(crate) fn failure(step: &str, errors: &[String], at: Moment) -> Self {
        let kept = errors.iter().take(ERRORS).map(|error| head(error, ERROR_CHARS).to_owned());
        Self::new(step, Some(kept.collect()), at)
    }

    fn new(step: &str, errors: Option<Vec<String>>, at: Moment) -> Self {
        let text = document::last_result_text(step, &at.seconds(), errors.as_deref());
        let raw = RawValue::from_string(text).expect("the text is put together from JSON parts");
        Self { step: step.to_owned(), errors: errors.unwrap_or_default(), raw }
    }

    /// `success`, or the step that failed; may be empty.
    pub fn step(&self) -> &str {
        &self.step
    }

    /// Errors of the failed step.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Whether a step failed.
    pub fn is_failure(&self) -> bool {
        self.step != "success"
    }
}

#[cfg(test)]
mod tests;
