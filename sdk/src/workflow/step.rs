//! What one turn does: code-made actions, one bounded question to the model, waiting, or the end.

use serde_json::{Map, Value, json};

use super::decision::Decision;

/// Purpose of the one question that asks a person for help; its messages always wait for the answer
/// (decision O11).
pub const BUDGET_GATE_ASK: &str = "budget_gate_ask";
/// Purpose of a reply to a user message.
pub const ANSWER_USER: &str = "answer_user";
/// Purpose of the message that hands over the verified result.
pub const PRESENTATION: &str = "presentation";

/// One step (workflow-engine contract §2). "No opinion" is `None` of an `Option<Step>`.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Actions chosen by code, in order; no model call.
    Actions {
        /// Reasoning shown beside every action.
        label: String,
        /// At least one.
        actions: Vec<ActionCall>,
    },
    /// One question to the model, carried as the directive of this very turn.
    Llm {
        /// Why the model is asked: [`ANSWER_USER`], [`BUDGET_GATE_ASK`], [`PRESENTATION`] or a
        /// domain's own word.
        purpose: String,
        /// Never blank.
        prompt: String,
        /// Names the model may choose; `None` leaves it unbounded.
        allowed_actions: Option<Vec<String>>,
    },
    /// The task parks until a message or a real outcome arrives.
    Wait {
        /// Shown to whoever looks at the parked task.
        label: String,
    },
    /// The task ends; a complete end still passes the end gate.
    End {
        /// How the task ends.
        status: EndStatus,
        /// One line saying why.
        reason: String,
        /// What was produced.
        summary: String,
        /// Reasoning shown beside the end.
        label: String,
    },
}

/// One action chosen by code.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionCall {
    /// Never empty.
    pub action_name: String,
    /// Parameters by name.
    pub parameters: Map<String, Value>,
}

/// How a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStatus {
    /// Done; asks the end gate.
    Complete,
    /// Given up; never gated.
    Abort,
}

impl EndStatus {
    /// The word in data.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Abort => "abort",
        }
    }

    /// Reads the word; `None` for any other.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "complete" => Some(Self::Complete),
            "abort" => Some(Self::Abort),
            _ => None,
        }
    }
}

/// Why a step that arrived as data is not one (contract §2). The loop logs it and treats the step as none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepError {
    /// Neither null nor an object.
    NotAnObject,
    /// `kind` is missing or none of the four words.
    UnknownKind(String),
    /// `actions` is not a list, or an empty one.
    NoActions,
    /// The entry at this position has no non-empty `action_name`.
    NamelessAction(usize),
    /// The entry at this position has `parameters` that are not a map.
    BadParameters(usize),
    /// `prompt` is missing or blank.
    BlankPrompt,
    /// `allowed_actions` is not a list of names.
    BadAllowedActions,
    /// `status` is neither `complete` nor `abort`.
    BadStatus(String),
}

impl std::fmt::Display for StepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("a step is null or an object"),
            Self::UnknownKind(kind) => {
                write!(f, "unknown step kind `{kind}`; use actions, llm, wait or end")
            }
            Self::NoActions => f.write_str("`actions` needs a non-empty list"),
            Self::NamelessAction(at) => write!(f, "action {at} has no `action_name`"),
            Self::BadParameters(at) => write!(f, "`parameters` of action {at} are not a map"),
            Self::BlankPrompt => f.write_str("`prompt` is blank"),
            Self::BadAllowedActions => f.write_str("`allowed_actions` is not a list of names"),
            Self::BadStatus(status) => {
                write!(f, "unknown end status `{status}`; use complete or abort")
            }
        }
    }
}

impl std::error::Error for StepError {}

impl Step {
    /// Reads a step that crossed a boundary as data; null means no opinion.
    ///
    /// # Errors
    /// One of [`StepError`]: the step is to be logged and ignored.
    pub fn from_value(value: &Value) -> Result<Option<Self>, StepError> {
        if value.is_null() {
            return Ok(None);
        }
        let map = value.as_object().ok_or(StepError::NotAnObject)?;
        let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
        let step = match kind {
            "none" => return Ok(None),
            "actions" => Self::Actions { label: text(map, "label"), actions: calls(map)? },
            "llm" => {
                let prompt = text(map, "prompt");
                if prompt.trim().is_empty() {
                    return Err(StepError::BlankPrompt);
                }
                Self::Llm { purpose: text(map, "purpose"), prompt, allowed_actions: bound(map)? }
            }
            "wait" => Self::Wait { label: text(map, "label") },
            "end" => Self::End {
                status: status(map)?,
                reason: text(map, "reason"),
                summary: text(map, "summary"),
                label: text(map, "label"),
            },
            other => return Err(StepError::UnknownKind(other.to_owned())),
        };
        Ok(Some(step))
    }

    /// The step as data, the form [`Step::from_value`] reads.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Actions { label, actions } => {
                let actions: Vec<Value> = actions
                    .iter()
                    .map(|call| json!({"action_name": call.action_name, "parameters": call.parameters}))
                    .collect();
                json!({"kind": "actions", "label": label, "actions": actions})
            }
            Self::Llm { purpose, prompt, allowed_actions } => {
                json!({"kind": "llm", "purpose": purpose, "prompt": prompt, "allowed_actions": allowed_actions})
            }
            Self::Wait { label } => json!({"kind": "wait", "label": label}),
            Self::End { status, reason, summary, label } => json!({
                "kind": "end", "status": status.word(), "reason": reason, "summary": summary, "label": label
            }),
        }
    }

    /// The word of the kind in data and journal.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Actions { .. } => "actions",
            Self::Llm { .. } => "llm",
            Self::Wait { .. } => "wait",
            Self::End { .. } => "end",
        }
    }

    /// What a step decided by code hands to the driver, in order; `None` for a step that asks the model.
    ///
    /// A wait is one decision without a name, an end is one `task_end`.
    pub fn decisions(&self) -> Option<Vec<Decision>> {
        match self {
            Self::Llm { .. } => None,
            Self::Actions { label, actions } => Some(
                actions
                    .iter()
                    .map(|call| {
                        Decision::new(&call.action_name, call.parameters.clone(), label.as_str())
                    })
                    .collect(),
            ),
            Self::Wait { label } => Some(vec![Decision::new("", Map::new(), label.as_str())]),
            Self::End { status, reason, summary, label } => {
                let mut parameters = Map::new();
                parameters.insert("status".into(), status.word().into());
                for (key, value) in [("reason", reason), ("summary", summary)] {
                    if !value.is_empty() {
                        parameters.insert(key.into(), value.as_str().into());
                    }
                }
                Some(vec![Decision::new("task_end", parameters, label.as_str())])
            }
        }
    }
}

fn text(map: &Map<String, Value>, key: &str) -> String {
    map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn calls(map: &Map<String, Value>) -> Result<Vec<ActionCall>, StepError> {
    let entries = map.get("actions").and_then(Value::as_array).ok_or(StepError::NoActions)?;
    if entries.is_empty() {
        return Err(StepError::NoActions);
    }
    let call = |(at, entry): (usize, &Value)| {
        let name = entry.get("action_name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            return Err(StepError::NamelessAction(at));
        }
        let parameters = match entry.get("parameters") {
            None => Map::new(),
            Some(Value::Object(parameters)) => parameters.clone(),
            Some(_) => return Err(StepError::BadParameters(at)),
        };
        Ok(ActionCall { action_name: name.to_owned(), parameters })
    };
    entries.iter().enumerate().map(call).collect()
}

fn bound(map: &Map<String, Value>) -> Result<Option<Vec<String>>, StepError> {
    let names = match map.get("allowed_actions") {
        None | Some(Value::Null) => return Ok(None),
        Some(names) => names.as_array().ok_or(StepError::BadAllowedActions)?,
    };
    let name =
        |value: &Value| value.as_str().map(str::to_owned).ok_or(StepError::BadAllowedActions);
    names.iter().map(name).collect::<Result<Vec<_>, _>>().map(Some)
}

fn status(map: &Map<String, Value>) -> Result<EndStatus, StepError> {
    match map.get("status") {
        None => Ok(EndStatus::Complete),
        Some(Value::String(word)) => {
            EndStatus::from_word(word).ok_or_else(|| StepError::BadStatus(word.clone()))
        }
        Some(other) => Err(StepError::BadStatus(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_survive_the_boundary() {
        for data in [
            json!({"kind": "actions", "label": "work 1", "actions": [
                {"action_name": "spawn_subagent", "parameters": {"agent_type": "w"}}, {"action_name": "b", "parameters": {}}]}),
            json!({"kind": "llm", "purpose": "answer_user", "prompt": "say", "allowed_actions": ["send_message"]}),
            json!({"kind": "llm", "purpose": "", "prompt": "say", "allowed_actions": null}),
            json!({"kind": "wait", "label": "waiting"}),
            json!({"kind": "end", "status": "abort", "reason": "r", "summary": "s", "label": ""}),
        ] {
            let step = Step::from_value(&data).unwrap().unwrap();
            assert_eq!(step.to_value(), data);
            assert_eq!(step.kind(), data["kind"]);
        }
        assert_eq!(Step::from_value(&Value::Null), Ok(None));
    }

    #[test]
    fn defaults_fill_what_is_missing() {
        for (data, want) in [
            (json!({"kind": "wait"}), Step::Wait { label: String::new() }),
            (
                json!({"kind": "llm", "prompt": "p"}),
                Step::Llm { purpose: String::new(), prompt: "p".into(), allowed_actions: None },
            ),
            (
                json!({"kind": "end"}),
                Step::End {
                    status: EndStatus::Complete,
                    reason: String::new(),
                    summary: String::new(),
                    label: String::new(),
                },
            ),
            (
                json!({"kind": "actions", "actions": [{"action_name": "a"}]}),
                Step::Actions {
                    label: String::new(),
                    actions: vec![ActionCall { action_name: "a".into(), parameters: Map::new() }],
                },
            ),
        ] {
            assert_eq!(Step::from_value(&data), Ok(Some(want)));
        }
    }

    #[test]
    fn what_is_no_step_is_refused() {
        for (data, want) in [
            (json!([1]), StepError::NotAnObject),
            (json!({"kind": "sleep"}), StepError::UnknownKind("sleep".into())),
            (json!({"label": "x"}), StepError::UnknownKind(String::new())),
            (json!({"kind": "actions"}), StepError::NoActions),
            (json!({"kind": "actions", "actions": []}), StepError::NoActions),
            (json!({"kind": "actions", "actions": {"action_name": "a"}}), StepError::NoActions),
            (
                json!({"kind": "actions", "actions": [{"action_name": "a"}, {"action_name": ""}]}),
                StepError::NamelessAction(1),
            ),
            (json!({"kind": "actions", "actions": ["a"]}), StepError::NamelessAction(0)),
            (
                json!({"kind": "actions", "actions": [{"action_name": "a", "parameters": [1]}]}),
                StepError::BadParameters(0),
            ),
            (json!({"kind": "llm"}), StepError::BlankPrompt),
            (json!({"kind": "llm", "prompt": " \n"}), StepError::BlankPrompt),
            (
                json!({"kind": "llm", "prompt": "p", "allowed_actions": "send_message"}),
                StepError::BadAllowedActions,
            ),
            (
                json!({"kind": "llm", "prompt": "p", "allowed_actions": [1]}),
                StepError::BadAllowedActions,
            ),
            (json!({"kind": "end", "status": "done"}), StepError::BadStatus("done".into())),
            (json!({"kind": "end", "status": 1}), StepError::BadStatus("1".into())),
        ] {
            assert_eq!(Step::from_value(&data), Err(want), "{data}");
        }
    }

    #[test]
    fn code_steps_become_decisions() {
        let wait = Step::Wait { label: "waiting".into() };
        assert_eq!(wait.decisions(), Some(vec![Decision::new("", Map::new(), "waiting")]));
        let end = Step::from_value(&json!({"kind": "end", "reason": "ok"})).unwrap().unwrap();
        let parameters = json!({"status": "complete", "reason": "ok"}).as_object().unwrap().clone();
        assert_eq!(end.decisions(), Some(vec![Decision::new("task_end", parameters, "")]));
        let ask = Step::from_value(&json!({"kind": "llm", "prompt": "p"})).unwrap().unwrap();
        assert_eq!(ask.decisions(), None);
    }
}
