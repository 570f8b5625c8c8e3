//! [`TaskFile`]: what the loop knows of a task beyond its record. One document below `agent/tasks/<id>/`, replaced whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::stream::Summary;

/// The document of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFile {
    /// Version of the document.
    pub schema: u32,
    /// Id of the task, in the task store too.
    pub id: String,
    /// Project of the task and of its cards.
    pub project: String,
    /// Its workflow; empty is a plain task.
    pub workflow_id: String,
    /// What was asked for.
    pub query: String,
    /// What the work is about, if the request named it or the workflow said so.
    pub subject: String,
    /// State directory of that, once the workflow said so.
    pub state_dir: String,
    /// The only operations it may use; empty is no bound. What is built in is not counted.
    pub actions: Vec<String>,
    /// Whether the task store has the task.
    pub registered: bool,
    /// Its subject is to be taken over before anything else, from the task in `replaces` if there was one.
    pub adopting: bool,
    /// The owner before, while the take-over is under way.
    pub replaces: Option<String>,
    /// How far it is.
    pub status: Status,
    /// Why nothing happens until somebody or something wakes it: the waiting flag.
    pub parked: Option<Parked>,
    /// The message that is being served.
    pub message: Option<Taken>,
    /// Messages that were served and may still lie in the inbox after a crash.
    pub served: Vec<String>,
    /// Cards whose answers were taken: each wakes the task once.
    pub heard: Vec<String>,
    /// What is being said: after a crash it is said, unless it was.
    pub saying: Option<Saying>,
    /// The question that is being put: after a crash it is put again under the same key, which asks nobody twice.
    pub asking: Option<Asking>,
    /// A card whose question came to an end without its answer: it is withdrawn after the next turn that goes well.
    pub outdated: Option<String>,
    /// The action that is being carried out: after a crash its outcome is unknown and it is not repeated.
    pub running: Option<String>,
    /// Turns so far.
    pub turns: u64,
    /// Turns since a person last spoke.
    pub unattended: u64,
    /// Tokens, estimated, since a person last spoke.
    pub spent: u64,
    /// Turns in a row that failed.
    pub errors: u32,
    /// Replies taken of a provider that numbers them.
    pub position: usize,
    /// Where the summary of its events ends.
    pub summary: Summary,
    /// How it ended.
    pub ended: Option<Ending>,
    /// It came to its end, and not everybody who has to know was told.
    pub closing: bool,
    /// What others wrote, kept as it is.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Running or parked.
    #[default]
    Running,
    /// Done.
    Complete,
    /// Given up.
    Abort,
    /// Another task took its subject over, or nobody owned it after a restart.
    Cancelled,
}

impl Status {
    /// The word in the task store.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "in_progress",
            Self::Complete => "done",
            Self::Abort | Self::Cancelled => "cancelled",
        }
    }
}

/// Why and until when a task waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// What would wake it.
    pub why: Why,
    /// Shown to whoever looks.
    pub note: String,
    /// When its timer is due, in milliseconds since 1970.
    pub wake_at: u64,
    /// When it was set; 0 if nobody knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since: u64,
    /// The card whose answer it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// Phase of the work when a workflow parked it: an outcome that is recorded meanwhile changes it and ends the wait.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Runs of the task that were not finished then: the first that is ends a pause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
    /// Number of the newest message then: one that is held back by the wait itself does not end it, a newer one does.
    #[serde(default)]
    pub seen: u64,
}

/// A clock that was put back by less than this changes a wait by no more than that.
const PUT_BACK: u64 = 60_000;

impl Parked {
    /// Whether its timer is due. One that was set by a clock that has been put back since says nothing about how long
    /// it is still to run: it is due.
    #[must_use]
    pub fn is_due(&self, now: u64) -> bool {
        now >= self.wake_at || now.saturating_add(PUT_BACK) < self.since
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Words on their way to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saying {
    /// The words.
    pub message: String,
    /// Whether the task waits for an answer to them.
    pub waits: bool,
    /// How often the same was said before; `None` if that could not be read.
    pub before: Option<usize>,
}

/// A question on its way to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    /// Names the question within the task.
    pub key: String,
    /// Its words.
    pub message: String,
    /// What is shown with it.
    pub payload: Value,
    /// Why the task waits for the answer.
    pub why: Why,
    /// When its timer is due, in milliseconds since 1970.
    pub wake_at: u64,
    /// As in [`Parked::phase`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
}

/// What would wake a parked task besides a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A person, or a real outcome; the timer never ends it.
    #[default]
    User,
    /// Its timer, or the end of one of its runs: the model asked for a pause.
    Timer,
    /// Its timer: the provider is broken.
    Provider,
    /// Its timer: it failed several times in a row.
    Errors,
    /// Its workflow, once it is there.
    NoWorkflow,
    /// A person: it took many turns without one.
    Limit,
}

impl Why {
    /// Whether the timer alone lets the task go on.
    #[must_use]
    pub fn ends_by_timer(self) -> bool {
        match self {
            Self::User | Self::Limit | Self::NoWorkflow => false,
            Self::Timer | Self::Provider | Self::Errors => true,
        }
    }
}

/// A message that is being served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Its name in the inbox; `card:<id>` for an answer.
    pub name: String,
    /// What was said.
    pub text: String,
    /// Whether the workflow has it as a lead.
    pub lead: bool,
    /// Whether what it led to was begun: then it is not served again.
    #[serde(default)]
    pub acted: bool,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why.
    pub reason: String,
    /// What was produced.
    pub summary: String,
}

impl TaskFile {
    /// The task as a workflow operation takes it.
    #[must_use]
    pub fn to_workflow(&self) -> Value {
        json!({
            "id": self.id,
            "query": self.query,
            "waiting": self.parked.is_some(),
            "project": self.project,
            "subject": self.subject,
        })
    }

    /// Whether it came to an end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.status != Status::Running
    }
}

/// Owners of a workflow's subjects: subject id to task id.
pub(super) type Owners = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_another_version_is_kept() {
        let text = r#"{"schema":9,"id":"t","parked":{"why":"user","note":"n","wake_at":5},"later":{"a":[1]}}"#;
        let file: TaskFile = serde_json::from_str(text).unwrap();
        assert_eq!(file.parked.as_ref().map(|parked| parked.why), Some(Why::User));
        let again: Value = serde_json::to_value(&file).unwrap();
        assert_eq!(again["later"], json!({"a": [1]}));
        assert_eq!(file.to_workflow()["waiting"], true);
    }

    #[test]
    fn a_timer_is_due_when_its_time_is_over_or_its_clock_was_put_back() {
        let parked = Parked { wake_at: 1_000_000, since: 900_000, ..Parked::default() };
        for (now, due) in [
            (900_000, false),
            (999_999, false),
            (1_000_000, true),
            (850_000, false),
            (839_999, true),
        ] {
            assert_eq!(parked.is_due(now), due, "{now}");
        }
        assert!(!Parked { since: 0, ..parked }.is_due(5), "a document of before has no `since`");
    }
}
