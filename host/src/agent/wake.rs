//! What wakes a task: a message, an answered card, a run that ended, an outcome, its timer. Each is durable where it
//! comes from and taken exactly once, by the document that names it as taken (workflow-engine contract §10).

use serde_json::{Value, json};

use super::agent_loop::AgentLoop;
use super::error::AgentError;
use super::human::{Answer, Run};
use super::stream::Event;
use super::task_file::{Parked, Status, Taken, TaskFile, Why};
use super::tasks::OpenTask;
use super::tools::{SEND_MESSAGE, TASK_END};
use super::workflow::WorkflowClient;

/// What there is for a task to do.
#[derive(Debug)]
enum Trigger {
    /// Nothing: it goes on waiting.
    None,
    /// Its next turn.
    Go,
    /// Somebody wants it ended.
    Cancel,
    /// A message of its inbox.
    Message { name: String, text: String },
    /// A card was answered.
    Answer { card: String, text: String },
    /// A run that it waits for ended.
    Run(Run),
}

/// Words that give a task up that asks whether to go on.
const GIVES_UP: [&str; 3] = ["abort", "stop", "cancel"];

impl AgentLoop {
    /// Whether a task has something to do. Looks only; nothing is locked.
    ///
    /// # Errors
    /// The durable side refuses.
    pub fn is_ready(&self, file: &TaskFile) -> Result<bool, AgentError> {
        if file.is_ended() {
            return Ok(file.closing);
        }
        Ok(!matches!(self.look(file)?, Trigger::None))
    }

    fn look(&self, file: &TaskFile) -> Result<Trigger, AgentError> {
        // Whoever removes a task from the task store wants it ended.
        if self.tasks.is_cancelled(&file.id)? || self.is_forgotten(file) {
            return Ok(Trigger::Cancel);
        }
        let Some(message) = &file.message else {
            if let Some((name, text)) = self.tasks.oldest(&file.id, &file.served)? {
                return Ok(Trigger::Message { name, text });
            }
            if let Some((card, text)) = self.answer(file) {
                return Ok(Trigger::Answer { card, text });
            }
            return Ok(file
                .parked
                .as_ref()
                .map_or(Trigger::Go, |parked| self.look_at(file, parked)));
        };
        // One is being served already: a newer one only ends the wait.
        let Some(parked) = &file.parked else { return Ok(Trigger::Go) };
        let newest = self.tasks.newest(&file.id)?;
        if newest > parked.seen && newest > super::inbox::number(&message.name).unwrap_or(0) {
            return Ok(Trigger::Go);
        }
        Ok(self.look_at(file, parked))
    }

    /// Whether what a task waits for has come.
    fn look_at(&self, file: &TaskFile, parked: &Parked) -> Trigger {
        if parked.why == Why::NoWorkflow && self.operations.workflow(&file.workflow_id).is_some() {
            return Trigger::Go;
        }
        if parked.is_due(self.now()) && parked.why.ends_by_timer() {
            return Trigger::Go;
        }
        if !parked.runs.is_empty()
            && let Ok(runs) = self.human().runs(&file.id)
            && let Some(run) =
                runs.into_iter().find(|run| run.is_over && parked.runs.contains(&run.id))
        {
            return Trigger::Run(run);
        }
        // A real outcome that somebody recorded meanwhile ends a pause or a gate (contract §3).
        if !parked.phase.is_empty()
            && let Some(phase) = self.phase(file)
            && phase != parked.phase
        {
            return Trigger::Go;
        }
        Trigger::None
    }

    /// Phase of a task's work; `None` without a workflow, or if it cannot be read.
    pub(super) fn phase(&self, file: &TaskFile) -> Option<String> {
        if file.workflow_id.is_empty() {
            return None;
        }
        let place = self.operations.workflow(&file.workflow_id)?;
        let state = WorkflowClient::new(&*self.operations, &place).state(&file.to_workflow());
        state.ok()?.get("phase")?.as_str().map(str::to_owned)
    }

    /// The first answer that was not taken yet.
    pub(super) fn answer(&self, file: &TaskFile) -> Option<(String, String)> {
        if !file.registered {
            return None;
        }
        let cards = self
            .human()
            .cards(&file.id)
            .inspect_err(|error| {
                tracing::warn!(target: "udf_host::agent", task = %file.id, "its cards cannot be read: {error}");
            })
            .ok()?;
        cards.into_iter().find_map(|card| match card.answer {
            Answer::Given(text) if !file.heard.contains(&card.id) => Some((card.id, text)),
            Answer::Given(_) | Answer::Pending | Answer::Withdrawn => None,
        })
    }

    /// Clears up what a crash left.
    pub(super) fn settle(&self, task: &mut OpenTask) -> Result<(), AgentError> {
        if task.file.asking.is_some() {
            let card = self.put(task).map_err(|source| AgentError::Call {
                what: "a question that was cut off cannot be put again",
                source,
            })?;
            if task.file.running.take().is_some() {
                let text = format!("asked as {card}; the task waits for the answer");
                self.note(task, "action_end", SEND_MESSAGE, &text)?;
            }
        }
        self.say_again(task)?;
        if let Some(action) = task.file.running.take() {
            let is_told = task.stream.events().last().is_some_and(|event| {
                matches!(event.kind.as_str(), "action_end" | "interrupted")
                    && event.action == action
            });
            if !is_told {
                let unknown =
                    "the host stopped meanwhile: its outcome is unknown, and it is not repeated";
                let (kind, text) = match action.as_str() {
                    TASK_END if task.file.is_ended() => ("action_end", "ended"),
                    _ => ("interrupted", unknown),
                };
                self.note(task, kind, &action, text)?;
                if kind == "interrupted" {
                    self.journal_interruption(&task.file);
                }
            }
        }
        // What the message led to was under way.
        if task.file.message.as_ref().is_some_and(|message| message.acted) {
            self.serve(task);
        }
        for name in std::mem::take(&mut task.file.served) {
            self.tasks.remove(&task.file.id, &name)?;
        }
        if !task.file.registered && !task.file.is_ended() {
            self.register(task);
        }
        task.save()?;
        Ok(())
    }

    /// The journal of the work shows which step a crash cut off. It is evidence: the work goes on without it.
    fn journal_interruption(&self, file: &TaskFile) {
        if file.workflow_id.is_empty() || file.state_dir.is_empty() {
            return;
        }
        let Some(place) = self.operations.workflow(&file.workflow_id) else { return };
        let client = WorkflowClient::new(&*self.operations, &place);
        // The step is the last thing that was written before it was taken, but for what it led to.
        let recorded = client.journal(&file.to_workflow(), 20).and_then(|lines| {
            let step = lines.iter().rev().find(|line| line["event"] == "step");
            let stage = step.and_then(|line| line["stage"].as_str()).unwrap_or_default();
            client.record("record_interrupted", &file.state_dir, &json!({"stage": stage}))
        });
        if let Err(error) = recorded {
            tracing::warn!(target: "udf_host::agent", task = %file.id, "the journal does not show what was cut off: {error}");
        }
    }

    fn register(&self, task: &mut OpenTask) {
        let TaskFile { id, project, query, .. } = &task.file;
        let human = self.human();
        // What was answered before the loop had the task was answered to somebody else.
        let before = human.cards(id).map(|cards| {
            let answered = cards.into_iter().filter(|card| matches!(card.answer, Answer::Given(_)));
            answered.map(|card| card.id).collect()
        });
        let registered = before.and_then(|before: Vec<String>| {
            human.register(id, project, query)?;
            Ok(before)
        });
        match registered {
            Ok(before) => {
                task.file.heard = before;
                task.file.registered = true;
            }
            Err(error) => {
                tracing::warn!(target: "udf_host::agent", task = %id, "the task store has no record of it: {error}");
            }
        }
    }

    /// Takes the trigger of this turn. `Some`: there is none, the task goes on waiting.
    pub(super) fn wake(&self, task: &mut OpenTask) -> Result<Option<Parked>, AgentError> {
        match self.look(&task.file)? {
            Trigger::Go => {
                if let Some(parked) = task.file.parked.take() {
                    task.file.outdated = parked.card;
                }
                task.save()?;
            }
            Trigger::Cancel => {
                task.file.parked = None;
                task.file.status = Status::Cancelled;
            }
            Trigger::Message { name, text } => self.take(task, name, text)?,
            Trigger::Answer { card, text } => {
                task.file.heard.push(card.clone());
                self.take(task, format!("card:{card}"), text)?;
            }
            Trigger::Run(run) => {
                let text = format!("{} is {}. {}", run.id, run.status, run.summary);
                let told = Event::new(self.now(), "run_finished", "", text.trim_end());
                if !is_last(task, &told) {
                    task.append(told)?;
                }
                task.file.parked = None;
                task.save()?;
            }
            Trigger::None => return self.wait_on(task).map(Some),
        }
        Ok(None)
    }

    fn wait_on(&self, task: &mut OpenTask) -> Result<Parked, AgentError> {
        let rearmed = self.after(self.limits.long_stop);
        let now = self.now();
        let cards = self.human().cards(&task.file.id).unwrap_or_default();
        let Some(parked) = &mut task.file.parked else {
            unreachable!("a task that is not parked has a turn")
        };
        if parked.is_due(now) {
            // A timer without a message is armed again (contract §10).
            (parked.wake_at, parked.since) = (rearmed, now);
        }
        let is_pending =
            |id: &String| cards.iter().any(|c| c.id == *id && c.answer == Answer::Pending);
        if parked.card.as_ref().is_some_and(|card| !is_pending(card)) {
            // Withdrawn, or another question of this task took its place.
            let open = cards.iter().rev().find(|card| card.answer == Answer::Pending);
            parked.card = open.map(|card| card.id.clone());
        }
        let parked = parked.clone();
        task.save()?;
        Ok(parked)
    }

    /// A message of a person: the waiting flag is cleared and both are saved before anything else happens.
    fn take(&self, task: &mut OpenTask, name: String, text: String) -> Result<(), AgentError> {
        let asked = task.file.parked.take();
        let may_give_up = asked
            .as_ref()
            .is_some_and(|it| matches!(it.why, Why::Limit | Why::Errors | Why::NoWorkflow));
        if let Some(asked) = asked
            && !asked.phase.is_empty()
            && !name.starts_with("card:")
        {
            // The message does what the answer would have done.
            task.file.outdated = asked.card;
        }
        let told = Event::new(self.now(), "user_message", "", &text);
        if !is_last(task, &told) {
            task.append(told)?;
        }
        if may_give_up && GIVES_UP.contains(&text.trim().to_lowercase().as_str()) {
            task.file.status = Status::Abort;
        }
        task.file.message = Some(Taken { name, text: text.clone(), lead: false, acted: false });
        task.file.unattended = 0;
        task.file.spent = 0;
        task.file.errors = 0;
        task.save()?;
        self.hooks.tell(|listener| listener.user_message_routed(&task.file, &text));
        Ok(())
    }

    /// The workflow hears a message once, as a lead, before the turn that answers it (decision O5).
    pub(super) fn lead(&self, task: &mut OpenTask) -> Result<(), String> {
        let Some(message) = task.file.message.clone().filter(|message| !message.lead) else {
            return Ok(());
        };
        let workflow_id = task.file.workflow_id.clone();
        if !workflow_id.is_empty() {
            // Without its workflow the message is kept until that is back.
            let Some(place) = self.operations.workflow(&workflow_id) else { return Ok(()) };
            let client = WorkflowClient::new(&*self.operations, &place);
            let document = task.file.to_workflow();
            let subject = client.subject(&document).map_err(|error| error.to_string())?;
            if let Some((_, state_dir)) = subject {
                // A crash between the recorder and this document left the lead in its place: the last one.
                let state = client.state(&document).map_err(|error| error.to_string())?;
                let leads = state.pointer("/state/user_leads").and_then(Value::as_array);
                let last = leads.and_then(|leads| leads.last()).and_then(Value::as_str);
                let kept: String = message.text.trim().chars().take(1000).collect();
                let held = state["phase"] == "gated" || state["phase"] == "paused_infra";
                if held || last != Some(kept.as_str()) {
                    client
                        .record("record_user_lead", &state_dir, &json!({"text": message.text}))
                        .map_err(|error| error.to_string())?;
                }
            }
        }
        if let Some(message) = &mut task.file.message {
            message.lead = true;
        }
        task.save().map_err(|error| error.to_string())
    }
}

/// Whether the newest event says the same: a crash between the event and the document left it.
fn is_last(task: &OpenTask, told: &Event) -> bool {
    let last = task.stream.events().last();
    last.is_some_and(|event| event.kind == told.kind && event.text == told.text)
}
