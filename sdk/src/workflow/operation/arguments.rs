//! What the calls take as `arguments`. Outcomes are read generously, but a misspelt name is no outcome: a caller that
//! writes one is told, and nothing is recorded.

use serde_json::{Map, Value};

/// The form of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A text; numbers and words stand for theirs, null for none.
    Text,
    /// A text, or any JSON, which is then read as its text.
    Anything,
    /// An object.
    Object,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count,
    /// A list.
    List,
}

impl Form {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => !value.is_object() && !value.is_array(),
            Self::Anything => true,
            Self::Object => value.is_object(),
            Self::Flag => value.is_boolean(),
            Self::Count => value.is_u64(),
            Self::List => value.is_array(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Anything => "a value",
            Self::Object => "an object",
            Self::Flag => "true or false",
            Self::Count => "a whole number",
            Self::List => "a list",
        }
    }
}

/// One argument: its name, its form, and whether it must be there.
type Argument = (&'static str, Form, bool);

/// The arguments of a call; `None` for one that takes what its domain makes of them.
fn known(call: &str) -> Option<&'static [Argument]> {
    use Form::{Anything, Count, Flag, List, Object, Text};
    Some(match call {
        "record_outcome" => {
            &[("agent", Text, true), ("status", Text, true), ("result", Anything, false)]
        }
        "record_spawn" => &[
            ("agent", Text, true),
            ("status", Text, true),
            ("result", Anything, false),
            ("query", Text, false),
        ],
        "record_work_outcome" | "record_validate_outcome" => &[("result", Object, true)],
        "record_check_outcome" | "record_walk_outcome" => {
            &[("status", Text, false), ("report", Text, false)]
        }
        "record_user_lead" => &[("text", Text, true)],
        "adopt_reset" => {
            &[("targeted", Flag, false), ("incoming", Text, false), ("task", Text, false)]
        }
        "record_touch" | "record_invalidated" => &[("area", Text, true)],
        "record_interrupted" => &[("stage", Text, true)],
        "task_end_gate" | "task_ended" => &[("status", Text, false)],
        "boot_restore" => &[("running", List, true)],
        "journal" => &[("limit", Count, false)],
        _ => return None,
    })
}

/// Holds the arguments of a call against what it takes; the text names the first that is wrong.
pub(super) fn check(call: &str, arguments: &Value) -> Result<(), String> {
    let Some(known) = known(call) else { return Ok(()) };
    let none = Map::new();
    let given = match arguments {
        Value::Null => &none,
        Value::Object(given) => given,
        _ => return Err(format!("`arguments` of `{call}` are not an object")),
    };
    if let Some(name) = given.keys().find(|name| known.iter().all(|(known, ..)| known != name)) {
        let names: Vec<&str> = known.iter().map(|(name, ..)| *name).collect();
        return Err(format!("`{call}` has no argument `{name}`; it takes {}", names.join(", ")));
    }
    for (name, form, required) in known {
        match given.get(*name) {
            None if *required => return Err(format!("`{call}` needs the argument `{name}`")),
            Some(value) if !form.takes(value) => {
                return Err(format!("the argument `{name}` of `{call}` is not {}", form.words()));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_held_against_what_a_call_takes() {
        for (call, arguments, want) in [
            ("record_user_lead", json!({"text": "x"}), Ok(())),
            ("record_user_lead", json!({"text": 7}), Ok(())),
            ("record_user_lead", json!({"text": " "}), Ok(())),
            ("record_user_lead", json!(null), Err("needs the argument `text`")),
            ("record_user_lead", json!({"txt": "x"}), Err("no argument `txt`; it takes text")),
            ("record_user_lead", json!({"text": ["x"]}), Err("is not a text")),
            ("record_user_lead", json!(["x"]), Err("are not an object")),
            ("record_work_outcome", json!({"result": {"status": "success", "url": "u"}}), Ok(())),
            ("record_work_outcome", json!({"result": "success"}), Err("is not an object")),
            ("record_validate_outcome", json!({"status": "success"}), Err("no argument `status`")),
            ("record_check_outcome", json!({"status": "error", "report": null}), Ok(())),
            ("record_check_outcome", json!({}), Ok(())),
            ("record_walk_outcome", json!({"result": "VERDICT: PASS"}), Err("status, report")),
            ("record_outcome", json!({"agent": "w", "status": "completed", "result": {}}), Ok(())),
            ("record_outcome", json!({"agent": "w"}), Err("needs the argument `status`")),
            ("adopt_reset", json!({"targeted": "yes"}), Err("is not true or false")),
            ("journal", json!({"limit": -1}), Err("is not a whole number")),
            ("boot_restore", json!({"running": "t1"}), Err("is not a list")),
            ("step", json!({"whatever": 1}), Ok(())),
        ] {
            let checked = check(call, &arguments);
            match want {
                Ok(()) => assert_eq!(checked, Ok(()), "{call} {arguments}"),
                Err(part) => {
                    let error = checked.unwrap_err();
                    assert!(error.contains(part), "{call} {arguments}: {error}");
                }
            }
        }
    }
}
