//! How a task comes to wait: for a person, whom a card asks, or for time (workflow-engine contract §10 and §11).
//!
//! A question is saved with its key before it is put. A host that dies in between puts it again under the same key,
//! which gives the card that is there and asks nobody twice.

use std::time::Duration;

use serde_json::{Value, json};

use super::agent_loop::AgentLoop;
use super::error::AgentError;
use super::human::Answer;
use super::operations::CallError;
use super::task_file::{Asking, Parked, TaskFile, Why};
use super::task_turn::TurnError;
use super::tasks::OpenTask;

/// A question to be put.
pub(super) struct Question {
    /// Of several of one kind only one stands open; `None` is always a new one.
    pub(super) kind: Option<&'static str>,
    pub(super) why: Why,
    pub(super) message: String,
    pub(super) payload: Value,
    /// When the task is looked at again.
    pub(super) wait: Duration,
    pub(super) phase: String,
}

impl Question {
    /// One that says no more than its words.
    pub(super) fn plain(
        kind: &'static str,
        why: Why,
        message: String,
        wait: Duration,
        phase: &str,
    ) -> Self {
        let payload = json!({"message": message});
        Self { kind: Some(kind), why, message, payload, wait, phase: phase.to_owned() }
    }
}

impl AgentLoop {
    /// Parks without asking anybody.
    pub(super) fn park(&self, task: &mut OpenTask, why: Why, note: String, wait: Duration) {
        let seen = self.tasks.newest(&task.file.id).unwrap_or_default();
        let (wake_at, since) = (self.after(wait), self.now());
        task.file.parked = Some(Parked { why, note, wake_at, since, seen, ..Parked::default() });
    }

    /// Asks a person and parks until the answer comes. The card's id, or why there is none; the task is not parked then.
    pub(super) fn ask(
        &self,
        task: &mut OpenTask,
        question: Question,
    ) -> Result<Result<String, CallError>, AgentError> {
        let Question { kind, why, message, payload, wait, phase } = question;
        let id = &task.file.id;
        let prefix = kind.map(|kind| format!("{id}-{kind}-"));
        let asking = Asking {
            // The stream only grows.
            key: format!(
                "{}{}",
                prefix.clone().unwrap_or_else(|| format!("{id}-ask-")),
                task.stream.events().len()
            ),
            message,
            payload,
            why,
            wake_at: self.after(wait),
            phase,
        };
        if let Some(prefix) = prefix
            && let Ok(cards) = self.human().cards(id)
            && let Some(open) = cards
                .iter()
                .find(|card| card.answer == Answer::Pending && card.key.starts_with(&prefix))
        {
            self.park_on(task, asking, open.id.clone());
            return Ok(Ok(open.id.clone()));
        }
        task.file.asking = Some(asking);
        task.save()?;
        let put = self.put(task);
        if put.is_err() {
            task.file.asking = None;
        }
        Ok(put)
    }

    /// Puts the question that is saved.
    pub(super) fn put(&self, task: &mut OpenTask) -> Result<String, CallError> {
        let Some(asking) = task.file.asking.clone() else {
            return Err(CallError("there is no question".to_owned()));
        };
        let TaskFile { project, id, .. } = &task.file;
        let card = self.human().ask(project, id, &asking.key, &asking.message, &asking.payload)?;
        self.park_on(task, asking, card.clone());
        Ok(card)
    }

    fn park_on(&self, task: &mut OpenTask, asking: Asking, card: String) {
        let Asking { message, why, wake_at, phase, .. } = asking;
        let seen = self.tasks.newest(&task.file.id).unwrap_or_default();
        task.file.asking = None;
        task.file.parked = Some(Parked {
            why,
            note: message,
            wake_at,
            since: self.now(),
            card: Some(card),
            phase,
            runs: Vec::new(),
            seen,
        });
    }

    /// Asks, and parks also if nobody can be asked.
    fn ask_or_park(&self, task: &mut OpenTask, question: Question) -> Result<(), AgentError> {
        let (why, note, wait, phase) =
            (question.why, question.message.clone(), question.wait, question.phase.clone());
        if let Err(error) = self.ask(task, question)? {
            tracing::warn!(target: "udf_host::agent", task = %task.file.id, "nobody could be asked: {error}");
            self.park(task, why, note, wait);
            if let Some(parked) = &mut task.file.parked {
                parked.phase = phase;
            }
        }
        Ok(())
    }

    /// A wait that code decided: its label is put to a person, whose answer ends it. `phase` is that of the work.
    pub(super) fn wait_by_code(
        &self,
        task: &mut OpenTask,
        label: String,
        phase: &str,
    ) -> Result<(), AgentError> {
        let wait = self.limits.long_stop;
        if task.file.parked.as_ref().is_some_and(|parked| parked.why == Why::User) {
            // What is waited for stays as it is.
            let (wake_at, since) = (self.after(wait), self.now());
            if let Some(parked) = &mut task.file.parked {
                (parked.wake_at, parked.since) = (wake_at, since);
            }
            return Ok(());
        }
        let label = if label.is_empty() { "Waiting for you.".to_owned() } else { label };
        self.ask_or_park(task, Question::plain("wait", Why::User, label, wait, phase))
    }

    /// A turn that decided nothing: an event, and the next turn tries again; a few in a row park the task.
    pub(super) fn failed(&self, task: &mut OpenTask, error: &TurnError) -> Result<(), AgentError> {
        let (TurnError::Provider(text) | TurnError::NoWorkflow(text) | TurnError::Failed(text)) =
            error;
        self.note(task, "error", "", text)?;
        task.file.errors += 1;
        let retry = self.limits.retry;
        let question = match error {
            TurnError::Provider(text) => {
                // An outage ends by itself.
                task.file.errors = 0;
                self.park(task, Why::Provider, text.clone(), retry);
                return Ok(());
            }
            TurnError::Failed(_) if task.file.errors < self.limits.errors => return Ok(()),
            TurnError::Failed(text) => {
                let text = match task.file.workflow_id.as_str() {
                    "" => format!(
                        "This task waits: it failed several times in a row. The last error: {text}"
                    ),
                    _ => sdk::workflow::texts::parked_after_errors(text),
                };
                Question::plain("errors", Why::Errors, text, retry, "")
            }
            TurnError::NoWorkflow(text) => {
                Question::plain("workflow", Why::NoWorkflow, text.clone(), retry, "")
            }
        };
        task.file.errors = 0;
        self.ask_or_park(task, question)
    }

    pub(super) fn ask_to_go_on(&self, task: &mut OpenTask) -> Result<(), AgentError> {
        let file = &task.file;
        let text = format!(
            "This task took {} turns and about {} tokens without a word from you. Shall it go on? Answer `abort` to end it.",
            file.unattended, file.spent
        );
        let wait = self.limits.long_stop;
        self.ask_or_park(task, Question::plain("limit", Why::Limit, text, wait, ""))
    }
}
