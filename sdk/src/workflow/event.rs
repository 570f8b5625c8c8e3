//! What happened to the work, as a recorder hears it (workflow-engine contract §6).

use serde_json::{Map, Value};

/// An outcome, a message or a change of owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sub-agent came to an end. Its query is not part of this: what it was given comes from the state.
    Spawn {
        /// Agent type; only the domain's worker is recorded.
        agent: String,
        /// Status of its run.
        status: String,
        /// What it reported.
        result: String,
    },
    /// The work or its stage action came to an end.
    Work(WorkResult),
    /// The checker came to an end.
    Check {
        /// Status of its run; never changes the verdict.
        status: String,
        /// Its report; `None` reads as empty.
        report: Option<String>,
    },
    /// A user said something.
    UserLead {
        /// As it was said.
        text: String,
    },
    /// A new task owns the subject.
    Adopt {
        /// The task is a change of something that stands.
        targeted: bool,
        /// What the new task asks for.
        incoming: Option<String>,
    },
    /// The work wrote to an area of the product.
    Touch {
        /// One of [`super::state::AREAS`]; others are ignored.
        area: String,
    },
    /// Somebody wrote to the product after it was verified (decision O4).
    Invalidated {
        /// Any area; `docs` changes nothing.
        area: String,
    },
    /// A turn ended before its step was taken, seen at the next start: evidence only.
    Interrupted {
        /// The stage that chose the step.
        stage: String,
    },
}

/// Result of the work or of its stage action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkResult {
    /// Whether its status was `success`.
    pub ok: bool,
    /// The step that failed; may be empty.
    pub step: String,
    /// What went wrong.
    pub errors: Vec<String>,
}

impl WorkResult {
    /// Reads the result of an action: `{status, step?, errors?}`. Whatever is not a success is a failure.
    pub fn from_value(value: &Value) -> Self {
        let errors = match value.get("errors") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(errors)) => errors.iter().map(plain).collect(),
            Some(other) => vec![plain(other)],
        };
        let step = value.get("step").filter(|step| !step.is_null()).map(plain).unwrap_or_default();
        Self { ok: value.get("status").and_then(Value::as_str) == Some("success"), step, errors }
    }

    /// What the end of a worker amounts to in a domain without a stage action.
    pub fn from_worker(status: &str, result: &str) -> Self {
        if status == "completed" {
            return Self { ok: true, ..Self::default() };
        }
        let error = if result.trim().is_empty() { status } else { result };
        Self {
            ok: false,
            step: "worker".to_owned(),
            errors: vec![super::clip::head(error, 500).to_owned()],
        }
    }
}

/// A text as it is, anything else as its JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Event {
    /// Reads a recorder call that arrived as data: the recorder's name and its arguments by name.
    ///
    /// The names of §6 are known, and for app builds their older names: `record_validate_outcome` is
    /// `record_work_outcome`, `record_walk_outcome` is `record_check_outcome`.
    /// `None`: there is no such recorder.
    pub fn from_call(recorder: &str, arguments: &Map<String, Value>) -> Option<Self> {
        let text = |key: &str| arguments.get(key).filter(|value| !value.is_null()).map(plain);
        let word = |key: &str| text(key).unwrap_or_default();
        Some(match recorder {
            "record_spawn" => {
                Self::Spawn { agent: word("agent"), status: word("status"), result: word("result") }
            }
            "record_work_outcome" | "record_validate_outcome" => {
                Self::Work(WorkResult::from_value(arguments.get("result").unwrap_or(&Value::Null)))
            }
            "record_check_outcome" | "record_walk_outcome" => {
                Self::Check { status: word("status"), report: text("report") }
            }
            "record_user_lead" => Self::UserLead { text: word("text") },
            "adopt_reset" => {
                let targeted =
                    arguments.get("targeted").and_then(Value::as_bool).unwrap_or_default();
                Self::Adopt { targeted, incoming: text("incoming") }
            }
            "record_touch" => Self::Touch { area: word("area") },
            "record_invalidated" => Self::Invalidated { area: word("area") },
            "record_interrupted" => Self::Interrupted { stage: word("stage") },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_read_generously() {
        for (value, ok, step, errors) in [
            (json!({"status": "success"}), true, "", vec![]),
            (json!({"status": "SUCCESS"}), false, "", vec![]),
            (
                json!({"status": "error", "step": "build", "errors": ["a", 1, {"b": 2}]}),
                false,
                "build",
                vec!["a", "1", "{\"b\":2}"],
            ),
            (json!({"status": "error", "step": null, "errors": "dead"}), false, "", vec!["dead"]),
            (json!({"errors": null}), false, "", vec![]),
            (json!(null), false, "", vec![]),
            (json!("success"), false, "", vec![]),
        ] {
            let result = WorkResult::from_value(&value);
            assert_eq!((result.ok, result.step.as_str()), (ok, step), "{value}");
            assert_eq!(result.errors, errors, "{value}");
        }
    }

    #[test]
    fn a_worker_s_end_is_a_work_outcome() {
        assert!(WorkResult::from_worker("completed", "did it").ok);
        for (status, result, error) in
            [("timeout", "", "timeout"), ("failed", " \n", "failed"), ("error", "boom", "boom")]
        {
            let outcome = WorkResult::from_worker(status, result);
            assert_eq!((outcome.ok, outcome.step.as_str()), (false, "worker"));
            assert_eq!(outcome.errors, [error]);
        }
        assert_eq!(WorkResult::from_worker("failed", &"x".repeat(501)).errors[0].len(), 500);
    }

    #[test]
    fn calls_by_name() {
        let call =
            |name: &str, arguments: Value| Event::from_call(name, arguments.as_object().unwrap());
        assert_eq!(
            call("record_walk_outcome", json!({"status": "error", "report": null})),
            Some(Event::Check { status: "error".into(), report: None })
        );
        assert_eq!(
            call("record_validate_outcome", json!({"result": {"status": "success"}})),
            Some(Event::Work(WorkResult { ok: true, ..WorkResult::default() }))
        );
        assert_eq!(
            call("adopt_reset", json!({"targeted": true, "incoming": "x"})),
            Some(Event::Adopt { targeted: true, incoming: Some("x".into()) })
        );
        assert_eq!(call("record_weather", json!({})), None);
    }
}
