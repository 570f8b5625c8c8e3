//! [`Human`]: the one channel to people. A word is a comment on the task, a question is an interaction card.

use serde_json::{Value, json};

use super::operations::{CallError, Operations};
use crate::plugins::Address;

/// Who speaks, in comments and cards.
const AGENT: &str = "agent";
/// Characters of a question that stand in the inbox's line.
const SUMMARY: usize = 200;

/// The channel to people.
#[derive(Clone, Copy)]
pub struct Human<'a> {
    operations: &'a dyn Operations,
}

/// What a card came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nobody answered yet.
    Pending,
    /// Somebody did.
    Given(String),
    /// It was withdrawn; nobody will.
    Withdrawn,
}

fn core(project: &str, op: &str) -> Address {
    Address::new("_core", project, op)
}

fn params(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

impl<'a> Human<'a> {
    /// The channel over these operations.
    #[must_use]
    pub fn new(operations: &'a dyn Operations) -> Self {
        Self { operations }
    }

    /// Says something: a comment on the task that shows in the inbox.
    ///
    /// # Errors
    /// The comment was not taken.
    pub fn say(&self, task_id: &str, message: &str) -> Result<(), CallError> {
        let comment =
            [("task_id", task_id), ("author", AGENT), ("body", message), ("kind", "notify")];
        self.operations.call(&core("task-management", "add_comment"), params(&comment))?;
        Ok(())
    }

    /// Asks something: a card whose answer wakes the task. A card of the same `key` is asked once.
    ///
    /// # Errors
    /// There is no card.
    pub fn ask(
        &self,
        project: &str,
        task_id: &str,
        key: &str,
        message: &str,
        payload: &Value,
    ) -> Result<String, CallError> {
        let summary: String = message.chars().take(SUMMARY).collect();
        let card = self.operations.call(
            &core("feedback-management", "create_card"),
            params(&[
                ("project", project),
                ("task_id", task_id),
                ("effect", "reply"),
                ("continuation_policy", "wake_assignee"),
                ("idempotency_key", key),
                ("summary", &summary),
                ("payload", &payload.to_string()),
                ("created_by", AGENT),
            ]),
        )?;
        let id = card.get("id").and_then(Value::as_str);
        id.map(str::to_owned).ok_or_else(|| CallError(format!("no card was made: {card}")))
    }

    /// Looks whether a card was answered.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn answer(&self, card: &str) -> Result<Answer, CallError> {
        let card = self
            .operations
            .call(&core("feedback-management", "get_card"), params(&[("id", card)]))?;
        Ok(match card.get("status").and_then(Value::as_str) {
            Some("pending") => Answer::Pending,
            Some("superseded" | "cancelled") | None => Answer::Withdrawn,
            Some(status) => {
                Answer::Given(words(card.get("result").unwrap_or(&Value::Null), status))
            }
        })
    }

    /// Puts the task into the task store, or leaves the one that is there.
    ///
    /// # Errors
    /// The store refuses.
    pub fn register(&self, id: &str, project: &str, query: &str) -> Result<(), CallError> {
        let title: String =
            query.lines().next().unwrap_or_default().chars().take(SUMMARY).collect();
        self.operations.call(
            &core("task-management", "create"),
            params(&[
                ("id", id),
                ("project", project),
                ("title", &title),
                ("description", query),
                ("status", "in_progress"),
                ("created_by", AGENT),
            ]),
        )?;
        Ok(())
    }

    /// Tells the task store how far the task is.
    ///
    /// # Errors
    /// The store refuses.
    pub fn set_status(&self, id: &str, status: &str) -> Result<(), CallError> {
        let change = [("id", id), ("status", status)];
        self.operations.call(&core("task-management", "update_status"), params(&change))?;
        Ok(())
    }
}

impl std::fmt::Debug for Human<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Human")
    }
}

/// What somebody answered, in words: a text, or the member of an object that holds one.
fn words(result: &Value, status: &str) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Null => status.to_owned(),
        Value::Object(map) => ["text", "message", "answer", "reply", "comment", "body", "value"]
            .into_iter()
            .find_map(|key| map.get(key).and_then(Value::as_str))
            .map_or_else(|| result.to_string(), str::to_owned),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => result.to_string(),
    }
}

/// What a question about a stuck work carries besides its words: what was tried, and whether failures shrink.
pub(super) fn evidence(message: &str, state: &Value, journal: &[Value]) -> Value {
    let failures: Vec<u64> = journal
        .iter()
        .filter(|line| line["event"] == "check_outcome" && line["kind"] == "defects")
        // A report without a single line still found something.
        .filter_map(|line| line["defects"].as_u64().map(|defects| defects.max(1)))
        .collect();
    let shrinking = match (failures.first(), failures.last()) {
        (Some(first), Some(last)) if failures.len() > 1 => json!(last < first),
        _ => Value::Null,
    };
    let errors = state.pointer("/state/last_result/errors").cloned().unwrap_or(json!([]));
    let found = state.pointer("/state/check_failures").cloned().unwrap_or(json!([]));
    json!({
        "message": message,
        "tried": state.get("outcomes").cloned().unwrap_or(json!([])),
        "still_failing": {"errors": errors, "found": found},
        "failures": failures,
        "shrinking": shrinking,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_words() {
        for (result, want) in [
            (json!("use port 3"), "use port 3"),
            (json!({"text": "a"}), "a"),
            (json!({"choice": 1}), "{\"choice\":1}"),
            (json!(null), "answered"),
            (json!(true), "true"),
        ] {
            assert_eq!(words(&result, "answered"), want);
        }
    }

    #[test]
    fn evidence_says_whether_failures_shrink() {
        let check =
            |defects: u64| json!({"event": "check_outcome", "kind": "defects", "defects": defects});
        let state = json!({"outcomes": ["check failed"], "state": {"check_failures": ["a"]}});
        for (journal, failures, shrinking) in [
            (vec![], json!([]), json!(null)),
            (vec![check(3)], json!([3]), json!(null)),
            (vec![check(3), json!({"event": "step"}), check(1)], json!([3, 1]), json!(true)),
            (vec![check(0), check(0)], json!([1, 1]), json!(false)),
        ] {
            let payload = evidence("help", &state, &journal);
            assert_eq!((&payload["failures"], &payload["shrinking"]), (&failures, &shrinking));
            assert_eq!(payload["tried"], json!(["check failed"]));
            assert_eq!(payload["still_failing"]["found"], json!(["a"]));
        }
    }
}
