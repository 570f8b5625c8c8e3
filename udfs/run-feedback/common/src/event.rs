//! Numbered events of a run, one file each, written once (§6).

use serde_json::{Map, Value};

use crate::codes::{Code, Refusal};
use crate::params::{decimal, json_array, json_object};
use crate::run_id::RunId;
use sdk::Timestamp;

/// `source` of an event unless the caller names one; readers know events by it.
pub const DEFAULT_SOURCE: &str = "emit-event.sh";

/// Types that may be written: those of the script, then three that the documents name.
pub const EVENT_TYPES: [&str; 37] = [
    "workflow_start",
    "workflow_complete",
    "workflow_error",
    "workflow_cancelled",
    "workflow_resumed",
    "workflow_rerun",
    "phase_start",
    "phase_skip",
    "phase_complete",
    "phase_error",
    "step_start",
    "step_complete",
    "step_error",
    "step_retry",
    "artifact_create",
    "artifact_modify",
    "commit_create",
    "branch_create",
    "pr_create",
    "pr_merge",
    "spec_generate",
    "spec_validate",
    "test_run",
    "docs_update",
    "checkpoint",
    "skill_invoke",
    "agent_invoke",
    "decision_point",
    "retry_loop_enter",
    "retry_loop_exit",
    "approval_request",
    "approval_granted",
    "approval_denied",
    "hook_execute",
    "feedback_received",
    "feedback_request",
    "step_skip",
];

/// Whether an event of this type may be written.
pub fn is_event_type(word: &str) -> bool {
    EVENT_TYPES.contains(&word)
}

/// What happened, without the number it will get. Empty texts and empty collections are left out of the file.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are the members of the contract")]
pub struct Event {
    pub kind: String,
    pub phase: String,
    pub step: String,
    pub status: String,
    /// Empty: [`DEFAULT_SOURCE`].
    pub source: String,
    pub message: String,
    pub metadata: Map<String, Value>,
    pub artifacts: Vec<Value>,
    /// A whole number; written even if 0.
    pub duration_ms: Option<Value>,
    /// Written even if empty.
    pub error: Option<Map<String, Value>>,
}

impl Event {
    /// The members of the file in the order of the contract. `user` is who runs the process, not who answered.
    pub fn to_json(&self, event_id: u64, run_id: &RunId, at: &Timestamp, user: &str) -> Value {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        put("event_id", event_id.into());
        put("type", self.kind.as_str().into());
        put("timestamp", at.to_string().into());
        put("run_id", run_id.to_string().into());
        for (name, text) in [("phase", &self.phase), ("step", &self.step), ("status", &self.status)]
        {
            if !text.is_empty() {
                put(name, text.as_str().into());
            }
        }
        put("user", user.into());
        put("source", if self.source.is_empty() { DEFAULT_SOURCE } else { &self.source }.into());
        if !self.message.is_empty() {
            put("message", self.message.as_str().into());
        }
        if !self.metadata.is_empty() {
            put("metadata", self.metadata.clone().into());
        }
        if !self.artifacts.is_empty() {
            put("artifacts", self.artifacts.clone().into());
        }
        if let Some(duration) = &self.duration_ms {
            put("duration_ms", duration.clone());
        }
        if let Some(error) = &self.error {
            put("error", error.clone().into());
        }
        Value::Object(members)
    }
}

/// What `emit_event` is given, as text (§13).
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the names are the parameters of the contract")]
pub struct EventParams<'a> {
    pub run_id: &'a str,
    pub kind: &'a str,
    pub phase: &'a str,
    pub step: &'a str,
    pub status: &'a str,
    pub message: &'a str,
    pub metadata: &'a str,
    pub artifacts: &'a str,
    pub duration_ms: &'a str,
    pub error: &'a str,
    pub source: &'a str,
}

impl EventParams<'_> {
    /// Checks the parameters in the order of the contract; the run's existence comes after.
    ///
    /// # Errors
    /// `INVALID_METADATA`, `INVALID_ARTIFACTS`, `INVALID_DURATION`, `INVALID_ERROR`, `MISSING_RUN_ID`,
    /// `MISSING_EVENT_TYPE`, `INVALID_RUN_ID`, `INVALID_EVENT_TYPE`.
    pub fn check(&self) -> Result<(RunId, Event), Refusal> {
        let metadata =
            json_object(self.metadata, "metadata", Code::InvalidMetadata)?.unwrap_or_default();
        let artifacts =
            json_array(self.artifacts, "artifacts", Code::InvalidArtifacts)?.unwrap_or_default();
        let duration_ms = match self.duration_ms {
            "" => None,
            digits => Some(decimal(digits).ok_or_else(|| {
                Refusal::new(
                    Code::InvalidDuration,
                    format!("duration_ms {digits:?} is not a whole number of milliseconds"),
                )
            })?),
        };
        let error = json_object(self.error, "error", Code::InvalidError)?;
        if self.run_id.is_empty() {
            return Err(Refusal::new(Code::MissingRunId, "run_id is missing"));
        }
        if self.kind.is_empty() {
            return Err(Refusal::new(Code::MissingEventType, "type is missing"));
        }
        let run_id =
            RunId::parse(self.run_id).ok_or_else(|| Refusal::invalid_run_id(self.run_id))?;
        if !is_event_type(self.kind) {
            return Err(Refusal::new(
                Code::InvalidEventType,
                format!("{:?} is not an event type", self.kind),
            )
            .with("valid_types", EVENT_TYPES.to_vec()));
        }
        let event = Event {
            kind: self.kind.to_owned(),
            phase: self.phase.to_owned(),
            step: self.step.to_owned(),
            status: self.status.to_owned(),
            source: self.source.to_owned(),
            message: self.message.to_owned(),
            metadata,
            artifacts,
            duration_ms,
            error,
        };
        Ok((run_id, event))
    }
}

/// Name of an event's file; the number takes four digits and more from 1000 on, so order by number, never by name.
pub fn event_file_name(event_id: u64, kind: &str) -> String {
    format!("{event_id:03}-{kind}.json")
}

/// An event file by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventFile {
    /// Its number.
    pub event_id: u64,
    /// Its type.
    pub kind: String,
}

impl EventFile {
    /// Reads `NNN-type.json`; `None` for everything else that may lie in the directory.
    pub fn parse(name: &str) -> Option<EventFile> {
        let (digits, kind) = name.strip_suffix(".json")?.split_once('-')?;
        let kind_fits = !kind.is_empty()
            && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        (kind_fits && digits.bytes().all(|b| b.is_ascii_digit())).then(|| {
            Some(EventFile { event_id: countable(digits.parse().ok()?)?, kind: kind.to_owned() })
        })?
    }
}

/// The number in `.next-id` if it is plain decimal, leading zeros allowed; any other text counts for nothing and
/// is never evaluated.
pub fn parse_counter(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('\n').unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| countable(digits.parse().ok()?))?
}

/// Numbers beyond what JSON readers hold exactly come from a damaged file.
fn countable(number: u64) -> Option<u64> {
    (number < 1 << 53).then_some(number)
}

/// The next free number: above every event present, the state, and at least what the counter says.
pub fn next_event_id(counter: Option<&str>, highest_file: Option<u64>, last_event_id: u64) -> u64 {
    let last = countable(last_event_id).unwrap_or(0);
    counter
        .and_then(parse_counter)
        .unwrap_or(1)
        .max(highest_file.map_or(1, |n| n + 1))
        .max(last + 1)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_above_everything_present() {
        for (counter, files, last, want) in [
            (None, None, 0, 1),
            (Some("41\n"), None, 0, 41),
            (Some("008\n"), None, 0, 8),
            (Some("2\n"), Some(3), 0, 4),
            (Some(""), Some(3), 0, 4),
            (Some("1\n"), None, 9, 10),
            (Some("a[$(touch x)]\n"), None, 0, 1),
            (Some("0\n"), None, 0, 1),
            (Some("-5\n"), None, 0, 1),
            (Some("7\n8\n"), None, 0, 1),
            (Some("99999999999999999999999\n"), Some(2), 0, 3),
            (Some("18446744073709551615\n"), None, u64::MAX, 1),
            (Some("999\n"), Some(1001), 3, 1002),
        ] {
            assert_eq!(next_event_id(counter, files, last), want, "{counter:?} {files:?} {last}");
        }
    }

    #[test]
    fn file_names_go_both_ways() {
        for (id, kind, name) in [
            (1, "checkpoint", "001-checkpoint.json"),
            (999, "step_start", "999-step_start.json"),
            (1000, "test_run", "1000-test_run.json"),
        ] {
            assert_eq!(event_file_name(id, kind), name);
            assert_eq!(
                EventFile::parse(name),
                Some(EventFile { event_id: id, kind: kind.to_owned() })
            );
        }
        for name in [
            ".next-id",
            "x.json",
            "-checkpoint.json",
            "001-.json",
            "001-a.json.tmp",
            ".001-a.json",
            "001.json",
            "1 -a.json",
        ] {
            assert_eq!(EventFile::parse(name), None, "{name}");
        }
    }

    #[test]
    fn members_stand_in_order_and_only_when_given() {
        let id = RunId::parse("a/b/0f0e0d0c-0b0a-4908-8706-050403020100").unwrap();
        let at = Timestamp::from_unix_ms(1_765_044_249_120);
        let (_, event) = EventParams {
            run_id: &id.to_string(),
            kind: "step_error",
            phase: "build",
            message: "é \"q\"",
            metadata: r#"{"n":1.50}"#,
            artifacts: "[]",
            duration_ms: "007",
            error: "{}",
            ..EventParams::default()
        }
        .check()
        .unwrap();
        assert_eq!(
            event.to_json(7, &id, &at, "alex").to_string(),
            r#"{"event_id":7,"type":"step_error","timestamp":"2025-12-06T18:04:09.120Z","run_id":"a/b/0f0e0d0c-0b0a-4908-8706-050403020100","phase":"build","user":"alex","source":"emit-event.sh","message":"é \"q\"","metadata":{"n":1.50},"duration_ms":7,"error":{}}"#
        );
    }

    #[test]
    fn arguments_are_checked_in_order() {
        let run_id = "a/b/0f0e0d0c-0b0a-4908-8706-050403020100";
        for (params, want) in [
            (
                EventParams { metadata: "[1]", artifacts: "{}", ..EventParams::default() },
                Code::InvalidMetadata,
            ),
            (
                EventParams { artifacts: "{}", duration_ms: "-5", ..EventParams::default() },
                Code::InvalidArtifacts,
            ),
            (
                EventParams { duration_ms: "-5", error: "1", ..EventParams::default() },
                Code::InvalidDuration,
            ),
            (EventParams { duration_ms: "1.5", ..EventParams::default() }, Code::InvalidDuration),
            (EventParams { error: "\"boom\"", ..EventParams::default() }, Code::InvalidError),
            (EventParams { kind: "nonsense", ..EventParams::default() }, Code::MissingRunId),
            (EventParams { run_id: "x", ..EventParams::default() }, Code::MissingEventType),
            (
                EventParams { run_id: "x", kind: "nonsense", ..EventParams::default() },
                Code::InvalidRunId,
            ),
            (
                EventParams { run_id, kind: "feedback", ..EventParams::default() },
                Code::InvalidEventType,
            ),
        ] {
            assert_eq!(params.check().unwrap_err().code, want, "{params:?}");
        }
    }
}
