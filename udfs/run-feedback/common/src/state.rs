//! A run's `state.json` (§4): an ordered map that keeps members it does not know and numbers as they were written.

use serde_json::{Map, Value};

use crate::codes::{Code, Refusal};
use crate::params::plain;
use sdk::Timestamp;

/// One JSON document as the run files hold it: two-space indent, final newline, non-ASCII as it is (§2).
pub fn document(value: &Value) -> String {
    // Writing to memory fails only for values with non-text keys, which a `Value` cannot hold.
    format!("{value:#}\n")
}

/// Where a run goes on after an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumePoint {
    /// Empty if the state names none.
    pub phase: String,
    /// Empty if the state names none.
    pub step: String,
    /// An integer as it was written, or null.
    pub step_index: Value,
}

impl ResumePoint {
    /// `{phase, step, step_index}`.
    pub fn to_json(&self) -> Value {
        serde_json::json!({ "phase": self.phase, "step": self.step, "step_index": self.step_index })
    }

    /// `{phase, step}`, the shorter form some replies use.
    pub fn short(&self) -> Value {
        serde_json::json!({ "phase": self.phase, "step": self.step })
    }
}

/// The current state of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State(Map<String, Value>);

impl State {
    /// Reads exactly one JSON object.
    ///
    /// # Errors
    /// What is wrong with the text, for people. Such a file is never written over.
    pub fn parse(text: &str) -> Result<State, String> {
        match crate::json::read(text) {
            Ok(Value::Object(members)) => Ok(State(members)),
            Ok(_) => Err("state.json is not a JSON object".to_owned()),
            Err(_) if text.trim().is_empty() => Err("state.json is empty".to_owned()),
            Err(fault) => Err(format!("state.json is not one JSON document: {fault}")),
        }
    }

    /// As [`State::parse`], for operations about to write.
    ///
    /// # Errors
    /// `STATE_UPDATE_FAILED`.
    pub fn for_update(text: &str) -> Result<State, Refusal> {
        State::parse(text).map_err(|why| {
            Refusal::new(Code::StateUpdateFailed, format!("{why}; nothing was written"))
        })
    }

    /// As [`State::parse`], for operations that only read.
    ///
    /// # Errors
    /// `STATE_CORRUPTED`.
    pub fn for_reading(text: &str) -> Result<State, Refusal> {
        State::parse(text).map_err(|why| Refusal::new(Code::StateCorrupted, why))
    }

    /// A state of the given members.
    pub fn from_members(members: Map<String, Value>) -> State {
        State(members)
    }

    /// The text of the file.
    pub fn render(&self) -> String {
        format!("{:#}\n", Value::Object(self.0.clone()))
    }

    /// All members, in file order.
    pub fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    /// All members, for replies.
    pub fn into_json(self) -> Value {
        Value::Object(self.0)
    }

    /// A member.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A member that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A member as it goes into a reply; null if absent.
    pub fn value(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or(Value::Null)
    }

    /// Sets a member in its place, or appends it.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Removes a member; the others keep their order.
    pub fn remove(&mut self, name: &str) {
        self.0.shift_remove(name);
    }

    /// The status word; `None` if there is none or it is no string.
    pub fn status(&self) -> Option<&str> {
        self.text("status")
    }

    /// Whether the run has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self.status(), Some("completed" | "cancelled"))
    }

    /// Whether the status word says that an answer is awaited.
    pub fn is_awaiting(&self) -> bool {
        self.status() == Some("awaiting_feedback")
    }

    /// The open request: present, and the status says so.
    pub fn open_request(&self) -> Option<&Map<String, Value>> {
        self.is_awaiting().then(|| self.get("feedback_request")?.as_object())?
    }

    /// Its id; any string counts, old data has other forms.
    pub fn open_request_id(&self) -> Option<&str> {
        self.open_request()?.get("request_id")?.as_str()
    }

    /// Changes the open request in place.
    pub(crate) fn open_request_mut(&mut self) -> Option<&mut Map<String, Value>> {
        if !self.is_awaiting() {
            return None;
        }
        self.0.get_mut("feedback_request")?.as_object_mut()
    }

    /// Past answers, oldest first; absent and null are empty.
    pub fn history(&self) -> &[Value] {
        self.get("feedback_history").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Appends an answer.
    ///
    /// # Errors
    /// `STATE_UPDATE_FAILED` if the history is something else than a list: appending would throw it away.
    pub fn push_history(&mut self, entry: Value) -> Result<(), Refusal> {
        match self.0.get_mut("feedback_history") {
            Some(Value::Array(entries)) => entries.push(entry),
            None | Some(Value::Null) => self.set("feedback_history", vec![entry]),
            Some(_) => {
                return Err(Refusal::new(
                    Code::StateUpdateFailed,
                    "feedback_history in state.json is not a list; nothing was written",
                ));
            }
        }
        Ok(())
    }

    /// Whether a request of this id is or was in this run.
    pub fn knows_request(&self, id: &str) -> bool {
        let is = |entry: &Value| entry.get("request_id").and_then(Value::as_str) == Some(id);
        self.get("feedback_request").is_some_and(is) || self.history().iter().any(is)
    }

    /// Number of the last event; 0 if the state has none that counts.
    pub fn last_event_id(&self) -> u64 {
        self.get("last_event_id").and_then(Value::as_u64).unwrap_or(0)
    }

    /// `resume_point`, else the one inside the request (older documents), else the current phase and step.
    pub fn resume_point(&self) -> ResumePoint {
        let inner = || self.get("feedback_request")?.get("resume_point");
        let point =
            [self.get("resume_point"), inner()].into_iter().flatten().find_map(Value::as_object);
        let text = |name: &str, fallback: &str| {
            let own = point.and_then(|p| p.get(name)).filter(|value| !value.is_null());
            own.or_else(|| self.get(fallback))
                .filter(|value| !value.is_null())
                .map_or_else(String::new, plain)
        };
        ResumePoint {
            phase: text("phase", "current_phase"),
            step: text("step", "current_step"),
            step_index: point.and_then(|p| p.get("step_index")).cloned().unwrap_or(Value::Null),
        }
    }

    /// Notes an event: its number, and its time as `updated_at`, unless a feedback operation sets its own.
    pub fn note_event(&mut self, event_id: u64, updated_at: impl Into<Value>) {
        self.set("last_event_id", event_id);
        self.set("updated_at", updated_at);
    }

    /// Sets `updated_at` in the form of the feedback operations.
    pub fn touch(&mut self, now: &Timestamp) {
        self.set("updated_at", now.to_seconds());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> State {
        State::parse(text).unwrap()
    }

    #[test]
    fn only_one_object_is_a_state() {
        for text in ["", "\n", "{oops", "[]", "null", "{} {}", "{\"status\": \"x\"\n", "\u{feff}{}"]
        {
            assert!(State::parse(text).is_err(), "{text:?}");
            assert_eq!(State::for_update(text).unwrap_err().code, Code::StateUpdateFailed);
            assert_eq!(State::for_reading(text).unwrap_err().code, Code::StateCorrupted);
        }
    }

    #[test]
    fn unknown_members_order_and_numbers_survive() {
        let text = "{\n  \"b\": 1.50,\n  \"status\": \"pending\",\n  \"a\": {\n    \"n\": [\n      1E5,\n      12345678901234567890\n    ],\n    \"e\": {}\n  },\n  \"ü\": \"設計\\n\",\n  \"z\": []\n}\n";
        let mut state = state(text);
        assert_eq!(state.render(), text);
        state.set("status", "failed");
        state.remove("b");
        assert_eq!(
            state.render(),
            text.replace("pending", "failed").replace("  \"b\": 1.50,\n", "")
        );
    }

    #[test]
    fn a_request_is_open_only_while_the_status_says_so() {
        assert_eq!(
            state(r#"{"status":"awaiting_feedback","feedback_request":{"request_id":"x"}}"#)
                .open_request_id(),
            Some("x")
        );
        for text in [
            r#"{"status":"in_progress","feedback_request":{"request_id":"x"}}"#,
            r#"{"status":"awaiting_feedback","feedback_request":null}"#,
            r#"{"status":"awaiting_feedback"}"#,
            r#"{}"#,
        ] {
            assert!(state(text).open_request().is_none(), "{text}");
        }
    }

    #[test]
    fn history_grows_only_as_a_list() {
        for text in ["{}", r#"{"feedback_history":null}"#, r#"{"feedback_history":[]}"#] {
            let mut state = state(text);
            state.push_history(Value::from(1)).unwrap();
            assert_eq!(state.history(), [Value::from(1)]);
        }
        let mut odd = state(r#"{"feedback_history":"gone"}"#);
        assert_eq!(odd.push_history(Value::Null).unwrap_err().code, Code::StateUpdateFailed);
        assert_eq!(odd.text("feedback_history"), Some("gone"));
    }

    #[test]
    fn the_resume_point_falls_back() {
        for (text, phase, step, index) in [
            (
                r#"{"resume_point":{"phase":"a","step":"b","step_index":2},"current_phase":"x"}"#,
                "a",
                "b",
                "2",
            ),
            (
                r#"{"feedback_request":{"resume_point":{"phase":"a","step":"b"}},"current_step":"x"}"#,
                "a",
                "b",
                "null",
            ),
            (r#"{"resume_point":null,"current_phase":"p","current_step":"s"}"#, "p", "s", "null"),
            (
                r#"{"resume_point":{"step":"b"},"current_phase":"p","current_step":"s"}"#,
                "p",
                "b",
                "null",
            ),
            ("{}", "", "", "null"),
        ] {
            let point = state(text).resume_point();
            assert_eq!(
                (point.phase.as_str(), point.step.as_str(), point.step_index.to_string().as_str()),
                (phase, step, index),
                "{text}"
            );
        }
    }
}
