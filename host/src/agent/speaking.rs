//! `send_message`: words that are said once, whatever happens to the host meanwhile.
//!
//! What is to be said is saved together with the mark that it is under way. A host that dies in between is followed by
//! one that looks whether it was said, and says it if it was not: an answer to a person is not lost.

use serde_json::{Map, Value, json};

use super::act::text;
use super::agent_loop::AgentLoop;
use super::error::AgentError;
use super::human::evidence;
use super::parking::Question;
use super::task_file::{Saying, TaskFile, Why};
use super::tasks::OpenTask;
use super::tools::SEND_MESSAGE;

impl AgentLoop {
    /// What the parameters say is to be said.
    pub(super) fn saying(
        &self,
        task: &TaskFile,
        parameters: &Map<String, Value>,
    ) -> Option<Saying> {
        let message = text(parameters, "message");
        if message.trim().is_empty() {
            return None;
        }
        let waits = match parameters.get("wait_for_user_reply") {
            Some(Value::Bool(waits)) => *waits,
            Some(Value::String(waits)) => waits.trim().eq_ignore_ascii_case("true"),
            _ => false,
        };
        let before = self.human().said(&task.id, &message).ok();
        Some(Saying { message, waits, before })
    }

    /// Says what is saved. The outer error is the loop's own.
    pub(super) fn send(&self, task: &mut OpenTask) -> Result<Result<String, String>, AgentError> {
        let Some(saying) = task.file.saying.take() else {
            return Ok(Err("`message` is empty".to_owned()));
        };
        let Saying { message, waits, .. } = saying;
        if !waits {
            let said = self.human().say(&task.file.id, &message);
            return Ok(said.map(|()| "sent".to_owned()).map_err(|error| error.to_string()));
        }
        let (payload, phase) = self.payload(&task.file, &message);
        let wait = self.limits.long_stop;
        let question = Question { kind: None, why: Why::User, message, payload, wait, phase };
        let card = self.ask(task, question)?;
        Ok(card
            .map(|card| format!("asked as {card}; the task waits for the answer"))
            .map_err(|error| error.to_string()))
    }

    /// Says what a crash cut off, unless it was said.
    pub(super) fn say_again(&self, task: &mut OpenTask) -> Result<(), AgentError> {
        let Some(saying) = &task.file.saying else { return Ok(()) };
        let is_under_way = task.file.running.as_deref() == Some(SEND_MESSAGE);
        // A question has a key of its own; words that could not be counted are said at most once.
        let before = if saying.waits { Some(usize::MAX) } else { saying.before };
        let Some(before) = before.filter(|_| is_under_way && !task.file.is_ended()) else {
            task.file.saying = None;
            return Ok(());
        };
        let said = self.human().said(&task.file.id, &saying.message);
        let said = said.map_err(|source| AgentError::Call {
            what: "whether a message was said cannot be read",
            source,
        })?;
        let is_said = said > before;
        let outcome = if is_said { Ok("sent".to_owned()) } else { self.send(task)? };
        task.file.saying = None;
        task.file.running = None;
        let told = outcome.unwrap_or_else(|error| format!("error: {error}"));
        self.note(task, "action_end", SEND_MESSAGE, &told)
    }

    /// What a question shows, of stuck work also what was tried and whether failures shrink; and the phase whose end
    /// ends the wait.
    fn payload(&self, task: &TaskFile, message: &str) -> (Value, String) {
        match self.work(task) {
            Some(Ok((state, journal))) => {
                let phase = state["phase"].as_str().unwrap_or_default();
                let holds = matches!(phase, "gated" | "paused_infra");
                let phase = if holds { phase.to_owned() } else { String::new() };
                (evidence(message, &state, &journal), phase)
            }
            Some(Err(_)) | None => (json!({"message": message}), String::new()),
        }
    }
}
