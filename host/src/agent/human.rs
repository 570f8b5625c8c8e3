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

/// A question as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Its id.
    pub id: String,
    /// The key it was asked under; empty without one.
    pub key: String,
    /// What it came to.
    pub answer: Answer,
}

/// A run of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub status: String,
    /// Whether it came to an end.
    pub is_over: bool,
    /// What was done.
    pub summary: String,
}

/// What the task store says of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    /// Its project.
    pub project: String,
    /// What is asked for.
    pub request: String,
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

impl Card {
    fn of(card: &Value) -> Self {
        let text = |key: &str| card.get(key).and_then(Value::as_str).unwrap_or_default();
        let answer = match text("status") {
            "pending" => Answer::Pending,
            // An app may let a question run out or be put aside: that is no answer, and decides nothing.
            "superseded" | "cancelled" | "expired" | "dismissed" | "" => Answer::Withdrawn,
            status => Answer::Given(words(card.get("result").unwrap_or(&Value::Null), status)),
        };
        Self { id: text("id").to_owned(), key: text("idempotencyKey").to_owned(), answer }
    }
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

    /// How often the agent has said exactly this.
    ///
    /// # Errors
    /// The comments cannot be read.
    pub fn said(&self, task_id: &str, message: &str) -> Result<usize, CallError> {
        let wanted = [("task_id", task_id), ("fields", "author,body")];
        let comments =
            self.operations.call(&core("task-management", "list_comments"), params(&wanted))?;
        let is_it = |comment: &&Value| comment["author"] == AGENT && comment["body"] == message;
        Ok(comments.as_array().into_iter().flatten().filter(is_it).count())
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

    /// The cards of a task, oldest first. Those that wake nobody are left out.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn cards(&self, task_id: &str) -> Result<Vec<Card>, CallError> {
        let wanted =
            [("task", task_id), ("fields", "id,status,continuationPolicy,idempotencyKey,result")];
        let cards =
            self.operations.call(&core("feedback-management", "list_cards"), params(&wanted))?;
        let Value::Array(cards) = cards else {
            return Err(CallError(format!("the cards of {task_id} are no list: {cards}")));
        };
        Ok(cards.iter().filter(|card| card["continuationPolicy"] != "none").map(Card::of).collect())
    }

    /// Withdraws what a task still asks.
    ///
    /// # Errors
    /// The store refuses.
    pub fn withdraw(&self, task_id: &str) -> Result<(), CallError> {
        let task = params(&[("task", task_id)]);
        self.operations.call(&core("feedback-management", "cancel_task_cards"), task)?;
        Ok(())
    }

    /// Withdraws one question. An answer that came first stands.
    ///
    /// # Errors
    /// The store refuses.
    pub fn withdraw_card(&self, card: &str) -> Result<(), CallError> {
        let outcome = [("id", card), ("status", "cancelled"), ("resolved_by", AGENT)];
        self.operations.call(&core("feedback-management", "resolve_card"), params(&outcome))?;
        Ok(())
    }

    /// Runs of a task that are known, and whether each is over.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn runs(&self, task_id: &str) -> Result<Vec<Run>, CallError> {
        // A JSON list: an id may hold a comma.
        let ids = json!([task_id]).to_string();
        let wanted = [("task_ids", ids.as_str()), ("fields", "id,status,finishedAt,summary")];
        let runs = self.operations.call(&core("run-management", "read"), params(&wanted))?;
        let text = |run: &Value, key: &str| {
            run.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Ok(runs
            .as_array()
            .into_iter()
            .flatten()
            .map(|run| Run {
                id: text(run, "id"),
                status: text(run, "status"),
                is_over: !text(run, "finishedAt").is_empty(),
                summary: text(run, "summary"),
            })
            .collect())
    }

    /// The request of a task in the task store, if there is one of this id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn stored_task(&self, id: &str) -> Result<Option<StoredTask>, CallError> {
        let wanted = params(&[("fields", "id,project,title,description,status")]);
        let tasks = self.operations.call(&core("task-management", "read"), wanted)?;
        let found = tasks.as_array().into_iter().flatten().find(|task| task["id"] == id);
        Ok(found.map(|task| {
            let text = |key: &str| task.get(key).and_then(Value::as_str).unwrap_or_default();
            let (title, description) = (text("title"), text("description"));
            StoredTask {
                project: text("project").to_owned(),
                request: if description.trim().is_empty() { title } else { description }.to_owned(),
            }
        }))
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
    fn only_an_answer_is_one() {
        let card =
            |status: &str| Card::of(&json!({"id": "c", "status": status, "result": null})).answer;
        for status in ["superseded", "cancelled", "expired", "dismissed"] {
            assert_eq!(card(status), Answer::Withdrawn, "{status}");
        }
        for status in ["answered", "approved", "rejected"] {
            assert_eq!(card(status), Answer::Given(status.to_owned()), "{status}");
        }
        assert_eq!(card("pending"), Answer::Pending);
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
