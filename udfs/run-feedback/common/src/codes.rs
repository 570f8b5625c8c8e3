//! Error words, their numbers, and the reply that carries them (§11).

use serde_json::{Map, Value, json};

use crate::operation::{Family, Operation};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $whole:literal, $low:literal;)*) => {
        /// The word of an error. Its number depends on the [`Family`] of the operation that refuses.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// The word as it stands in the reply.
            pub fn word(self) -> &'static str {
                match self { $(Code::$variant => $word,)* }
            }

            /// The number in the reply, which is also the exit status of the command line.
            pub fn number(self, family: Family) -> u8 {
                match (self, family) { $((Code::$variant, Family::Whole) => $whole, (Code::$variant, Family::Low) => $low,)* }
            }
        }
    };
}

codes! {
    /// No run id.
    MissingRunId = "MISSING_RUN_ID", 1, 1;
    /// A run id outside the grammar of §3, or a run directory that leaves the base.
    InvalidRunId = "INVALID_RUN_ID", 1, 1;
    /// No run directory.
    RunNotFound = "RUN_NOT_FOUND", 1, 1;
    /// A run directory of this id is there already.
    RunExists = "RUN_EXISTS", 1, 1;
    /// No `state.json`.
    StateNotFound = "STATE_NOT_FOUND", 1, 1;
    /// `state.json` is not one JSON object; said by operations that only read.
    StateCorrupted = "STATE_CORRUPTED", 1, 1;
    /// Required parameters are missing; detail `missing`.
    MissingFields = "MISSING_FIELDS", 1, 1;
    /// `init_run` without work id.
    MissingWorkId = "MISSING_WORK_ID", 1, 1;
    /// `emit_event` without type.
    MissingEventType = "MISSING_EVENT_TYPE", 1, 1;
    /// `update_feedback_state` without sub-operation.
    MissingOperation = "MISSING_OPERATION", 1, 1;
    /// A selection without options.
    MissingOptions = "MISSING_OPTIONS", 1, 1;
    /// Options of the wrong kind, or options nobody could tell apart.
    InvalidOptions = "INVALID_OPTIONS", 1, 1;
    /// A context that is not an object.
    InvalidContext = "INVALID_CONTEXT", 1, 1;
    /// A step index that is not a decimal integer.
    InvalidStepIndex = "INVALID_STEP_INDEX", 1, 1;
    /// Event metadata that are not an object.
    InvalidMetadata = "INVALID_METADATA", 1, 1;
    /// Event artifacts that are not an array.
    InvalidArtifacts = "INVALID_ARTIFACTS", 1, 1;
    /// A duration that is not a whole number of milliseconds.
    InvalidDuration = "INVALID_DURATION", 1, 1;
    /// An event error that is not an object.
    InvalidError = "INVALID_ERROR", 1, 1;
    /// An event type outside the list of §6.
    InvalidEventType = "INVALID_EVENT_TYPE", 1, 1;
    /// An unknown sub-operation.
    InvalidOperation = "INVALID_OPERATION", 1, 1;
    /// An identity source other than `cli` and `issue`.
    InvalidSource = "INVALID_SOURCE", 1, 1;
    /// A resume step that is not `phase:step`.
    InvalidStep = "INVALID_STEP", 1, 1;
    /// An organisation or project of which no segment is left.
    InvalidName = "INVALID_NAME", 1, 1;
    /// A run that is closed cannot be resumed.
    NotResumable = "NOT_RESUMABLE", 1, 1;
    /// An unknown feedback type; detail `valid_types`.
    InvalidFeedbackType = "INVALID_FEEDBACK_TYPE", 2, 1;
    /// Nothing is waiting; details `run_status`, `already_answered`.
    NotAwaitingFeedback = "NOT_AWAITING_FEEDBACK", 3, 1;
    /// Another request is open; details `expected_request_id`, `already_answered`.
    RequestIdMismatch = "REQUEST_ID_MISMATCH", 4, 1;
    /// Not an offered option; detail `valid_options`.
    InvalidResponse = "INVALID_RESPONSE", 5, 1;
    /// The comment was not posted. Only ever a warning inside a success.
    IssueCommentFailed = "ISSUE_COMMENT_FAILED", 6, 6;
    /// The state is not usable, or was not written.
    StateUpdateFailed = "STATE_UPDATE_FAILED", 7, 2;
    /// The state was not written.
    StateWriteFailed = "STATE_WRITE_FAILED", 7, 2;
    /// The event was not written.
    EventWriteError = "EVENT_WRITE_ERROR", 7, 2;
    /// Another writer kept the run's lock too long.
    LockTimeout = "LOCK_TIMEOUT", 7, 2;
    /// A comment that is none, or an issue that has no number.
    InvalidComment = "INVALID_COMMENT", 1, 1;
    /// Neither environment nor `project.toml` say which tracker to read.
    TrackerNotSetUp = "TRACKER_NOT_SET_UP", 1, 1;
    /// The tracker refuses, is away, or wants to be left alone; detail `retry_after_s`.
    TrackerUnavailable = "TRACKER_UNAVAILABLE", 6, 6;
    /// A finished run asks nobody; detail `run_status`.
    RunClosed = "RUN_CLOSED", 7, 1;
    /// A request is open already; detail `pending_request_id`.
    RequestPending = "REQUEST_PENDING", 7, 1;
}

/// Why an operation did nothing: a reply, not a failure of the call.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The word.
    pub code: Code,
    /// For people; the wording is free.
    pub message: String,
    /// Further members of `error`, in this order.
    pub details: Map<String, Value>,
}

impl Refusal {
    /// A refusal without details.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), details: Map::new() }
    }

    /// Adds a member to `error`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Refusal {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Required parameters are missing; `names` in the order of the contract.
    pub fn missing(names: &[&str]) -> Refusal {
        Refusal::new(Code::MissingFields, format!("missing: {}", names.join(", ")))
            .with("missing", names.to_vec())
    }

    /// A run id outside the grammar.
    pub fn invalid_run_id(text: &str) -> Refusal {
        Refusal::new(
            Code::InvalidRunId,
            format!(
                "{text:?} is not a run id: three segments org/project/uuid, lower case, nothing around them"
            ),
        )
    }

    /// The reply `{status: "error", operation, error: {code, number, message, …details}}`.
    ///
    /// `word` overrides the operation's word: `update_feedback_state` answers with its sub-operation.
    pub fn reply(&self, operation: Operation, word: Option<&str>) -> Value {
        let mut error = Map::new();
        error.insert("code".into(), self.code.word().into());
        error.insert("number".into(), self.code.number(operation.family()).into());
        error.insert("message".into(), self.message.clone().into());
        error.extend(self.details.clone());
        json!({ "status": "error", "operation": word.unwrap_or(operation.word()), "error": error })
    }
}

/// Something a success could not do (§9); stands in `warnings`.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// The word.
    pub code: Code,
    /// For people.
    pub message: String,
}

impl Warning {
    /// `{code, number, message}`, numbered as in a whole operation.
    pub fn to_json(&self) -> Value {
        json!({ "code": self.code.word(), "number": self.code.number(Family::Whole), "message": self.message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_number_per_family() {
        for (code, whole, low) in [
            (Code::MissingFields, 1, 1),
            (Code::InvalidFeedbackType, 2, 1),
            (Code::NotAwaitingFeedback, 3, 1),
            (Code::RequestIdMismatch, 4, 1),
            (Code::InvalidResponse, 5, 1),
            (Code::IssueCommentFailed, 6, 6),
            (Code::StateUpdateFailed, 7, 2),
            (Code::LockTimeout, 7, 2),
            (Code::RunClosed, 7, 1),
        ] {
            assert_eq!(
                (code.number(Family::Whole), code.number(Family::Low)),
                (whole, low),
                "{code:?}"
            );
        }
    }

    #[test]
    fn a_reply_lists_details_after_the_message() {
        let refusal = Refusal::missing(&["phase", "step"]);
        let text = refusal.reply(Operation::RequestFeedback, None).to_string();
        assert_eq!(
            text,
            r#"{"status":"error","operation":"request-feedback","error":{"code":"MISSING_FIELDS","number":1,"message":"missing: phase, step","missing":["phase","step"]}}"#
        );
        let update = Refusal::new(Code::LockTimeout, "held")
            .reply(Operation::UpdateFeedbackState, Some("set-awaiting"));
        assert_eq!(
            (&update["operation"], &update["error"]["number"]),
            (&json!("set-awaiting"), &json!(2))
        );
    }
}
