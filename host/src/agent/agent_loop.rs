//! [`AgentLoop`]: turns of tasks, from trigger to persisted outcome.
//!
//! Before an action is carried out its name is saved. A host that dies in between finds it at the next start, tells the
//! task that its outcome is unknown, and does not repeat it; a workflow chooses by its own durable state anyway.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use core_store::Store;
use sdk::workflow::registry::{Restored, ghosts};
use serde_json::{Value, json};

use super::act::Act;
use super::hooks::Hooks;
use super::human::{Answer, Human};
use super::operations::{Operations, WorkflowPlace};
use super::provider::Provider;
use super::stream::Event;
use super::task_file::{Parked, Status, Taken, TaskFile, Why};
use super::task_turn::{TaskTurn, TurnError};
use super::tasks::{OpenTask, Tasks, TasksError};
use super::workflow::WorkflowClient;
use crate::error::HostError;

/// Tells the time in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What the loop allows itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A task that waits for a person is looked at again after this; the look alone never ends the wait.
    pub long_stop: Duration,
    /// A task whose provider is broken, or that failed, tries again after this.
    pub retry: Duration,
    /// Turns in a row that fail before the task parks (decision O9).
    pub errors: u32,
    /// Turns without a person before one is asked whether to go on.
    pub unattended: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            long_stop: Duration::from_secs(10_800),
            retry: Duration::from_secs(900),
            errors: sdk::workflow::engine::ERRORS_BEFORE_PARKING,
            unattended: 200,
        }
    }
}

/// Turns of tasks. Cheap to clone.
#[derive(Clone)]
pub struct AgentLoop {
    pub(super) operations: Arc<dyn Operations>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) tasks: Tasks,
    pub(super) limits: Limits,
    pub(super) hooks: Hooks,
    clock: Clock,
}

/// What a request for a task says.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// What is asked for.
    pub request: String,
    /// Its workflow; empty is a plain task.
    pub workflow_id: String,
    /// Project of the task and its cards; empty is `agent`.
    pub project: String,
    /// What the work is about, if it is something that stands already.
    pub subject: String,
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turned {
    /// The next turn can follow at once.
    Again,
    /// The task waits.
    Parked(Parked),
    /// The task came to an end.
    Ended(Status),
}

/// A task as a restart finds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its document.
    pub file: TaskFile,
    /// Whether it was cancelled just now, since nobody's subject is its own any more.
    pub ghost: bool,
}

/// Why the loop could not serve a task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The durable side refuses.
    #[error(transparent)]
    Tasks(#[from] TasksError),
    /// The event stream could not be written.
    #[error(transparent)]
    Store(#[from] core_store::StoreError),
    /// The request names a workflow that is not there.
    #[error("there is no workflow `{0}`")]
    NoWorkflow(String),
    /// The request is blank.
    #[error("a task needs a request")]
    NoRequest,
    /// The system has no random bytes.
    #[error("no id could be made: {0}")]
    NoId(String),
}

impl From<AgentError> for HostError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::NoWorkflow(_)
            | AgentError::NoRequest
            | AgentError::Tasks(
                TasksError::Unknown(_) | TasksError::BadId(_) | TasksError::Busy(_),
            ) => Self::BadRequest { message: error.to_string() },
            AgentError::Tasks(_) | AgentError::Store(_) | AgentError::NoId(_) => {
                Self::Internal { message: error.to_string(), detail: String::new() }
            }
        }
    }
}

impl AgentLoop {
    /// A loop over these operations, its state below `agent/` of a state folder.
    #[must_use]
    pub fn new(
        operations: Arc<dyn Operations>,
        provider: Arc<dyn Provider>,
        store: Store,
        app_dir: PathBuf,
    ) -> Self {
        Self {
            operations,
            provider,
            tasks: Tasks::new(store, app_dir),
            limits: Limits::default(),
            hooks: Hooks::default(),
            clock: Arc::new(|| {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }),
        }
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same with these listeners.
    #[must_use]
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The durable side.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(super) fn now(&self) -> u64 {
        (self.clock)()
    }

    pub(super) fn after(&self, wait: Duration) -> u64 {
        self.now().saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn human(&self) -> Human<'_> {
        Human::new(&*self.operations)
    }

    /// Makes a task; its id. It is durable when this returns, and nothing of it ran yet.
    ///
    /// # Errors
    /// A blank request, an unknown workflow, or a store that refuses.
    pub fn start(&self, new: NewTask) -> Result<String, AgentError> {
        if new.request.trim().is_empty() {
            return Err(AgentError::NoRequest);
        }
        if !new.workflow_id.is_empty() && self.operations.workflow(&new.workflow_id).is_none() {
            return Err(AgentError::NoWorkflow(new.workflow_id));
        }
        let mut random = [0; 6];
        getrandom::fill(&mut random).map_err(|error| AgentError::NoId(error.to_string()))?;
        let id = random.iter().fold("task_".to_owned(), |id, byte| format!("{id}{byte:02x}"));
        let project = if new.project.is_empty() { "agent".to_owned() } else { new.project };
        let file = TaskFile {
            schema: 1,
            id: id.clone(),
            project,
            workflow_id: new.workflow_id,
            query: new.request,
            subject: new.subject,
            ..TaskFile::default()
        };
        self.tasks.create(&file)?;
        Ok(id)
    }

    /// Routes a message of a person to a task. It is durable when this returns; the task's next turn serves it.
    ///
    /// # Errors
    /// The task is unknown, or the store refuses.
    pub fn post(&self, id: &str, text: &str) -> Result<(), AgentError> {
        self.tasks.post(id, text)?;
        Ok(())
    }

    /// Turns until the task parks or ends.
    ///
    /// # Errors
    /// As [`AgentLoop::turn`].
    pub fn run(&self, id: &str) -> Result<Turned, AgentError> {
        let mut task = self.tasks.open(id)?;
        self.provider.seek(task.file.position);
        loop {
            match self.turn_of(&mut task)? {
                Turned::Again => {}
                turned => return Ok(turned),
            }
        }
    }

    /// One turn.
    ///
    /// # Errors
    /// The task is unknown or driven by another, or its state cannot be written. What fails inside a turn is an event of
    /// the task, not an error.
    pub fn turn(&self, id: &str) -> Result<Turned, AgentError> {
        let mut task = self.tasks.open(id)?;
        self.provider.seek(task.file.position);
        self.turn_of(&mut task)
    }

    fn turn_of(&self, task: &mut OpenTask) -> Result<Turned, AgentError> {
        self.settle(task)?;
        if task.file.is_ended() {
            return Ok(Turned::Ended(task.file.status));
        }
        if let Some(parked) = self.wake(task)? {
            return Ok(Turned::Parked(parked));
        }
        if task.file.is_ended() {
            // The answer was to give up.
            self.store_status(&task.file);
            self.serve(task);
            return self.finish(task);
        }
        if task.file.unattended >= self.limits.unattended {
            return self.ask_to_go_on(task);
        }
        task.file.turns += 1;
        task.file.unattended += 1;
        if task.stream.is_long() {
            task.stream.summarise();
            task.session.end();
        }
        task.save()?;
        if let Err(error) = self.lead(task) {
            return self.failed(task, &TurnError::Failed(error));
        }
        let turn = TaskTurn { operations: &*self.operations, provider: &*self.provider, task };
        let decided = match turn.decide() {
            Ok(decided) => decided,
            Err(error) => return self.failed(task, &error),
        };
        if decided.has_subject
            && let Err(error) = self.own(task, &decided)
        {
            return self.failed(task, &TurnError::Failed(error));
        }
        if decided.batch.is_skipped() {
            let dropped: Vec<&str> =
                decided.batch.dropped.iter().map(|dropped| dropped.action_name.as_str()).collect();
            let text = format!("nothing of the decision is allowed here: {}", dropped.join(", "));
            // The question was put; the work is scheduled again (decision O10).
            self.serve(task);
            return self.failed(task, &TurnError::Failed(text));
        }
        Act { agent: self, task, decided: &decided }.carry_out()?;
        self.serve(task);
        task.file.errors = 0;
        self.finish(task)
    }

    /// Clears up what a crash left.
    fn settle(&self, task: &mut OpenTask) -> Result<(), AgentError> {
        if let Some(action) = task.file.running.take() {
            let text = "the host stopped meanwhile: its outcome is unknown, and it is not repeated";
            self.note(task, "interrupted", &action, text)?;
            // What the message led to was under way.
            if task.file.message.as_ref().is_some_and(|message| message.lead) {
                self.serve(task);
            }
        }
        for name in std::mem::take(&mut task.file.served) {
            self.tasks.remove(&task.file.id, &name)?;
        }
        if !task.file.registered {
            let TaskFile { id, project, query, .. } = &task.file;
            match self.human().register(id, project, query) {
                Ok(()) => task.file.registered = true,
                Err(error) => {
                    tracing::warn!(target: "udf_host::agent", task = %id, "the task store has no record of it: {error}");
                }
            }
        }
        task.save()?;
        Ok(())
    }

    /// Takes the next message or answer, or looks at the timer. `Some`: the task goes on waiting.
    fn wake(&self, task: &mut OpenTask) -> Result<Option<Parked>, AgentError> {
        let waiting_message = task.file.message.as_ref().map(|message| message.name.clone());
        let known: Vec<String> = waiting_message.iter().cloned().collect();
        if let Some((name, text)) = self.tasks.oldest(&task.file.id, &known)? {
            if waiting_message.is_some() {
                // One is being served already; the new one only ends the wait.
                task.file.parked = None;
            } else {
                self.take(task, name, text)?;
            }
            return Ok(None);
        }
        let Some(parked) = task.file.parked.clone() else { return Ok(None) };
        if let Some(card) = parked.card.as_deref() {
            match self.human().answer(card) {
                Ok(Answer::Given(text)) => {
                    self.take(task, format!("card:{card}"), text)?;
                    return Ok(None);
                }
                Ok(Answer::Pending) => {}
                Ok(Answer::Withdrawn) => {
                    if let Some(parked) = &mut task.file.parked {
                        parked.card = None;
                    }
                }
                Err(error) => {
                    tracing::warn!(target: "udf_host::agent", card, "the card cannot be read: {error}");
                }
            }
        }
        let workflow_is_back = parked.why == Why::NoWorkflow
            && self.operations.workflow(&task.file.workflow_id).is_some();
        let due = self.now() >= parked.wake_at;
        if workflow_is_back || (due && parked.why.ends_by_timer()) {
            task.file.parked = None;
            task.save()?;
            return Ok(None);
        }
        if due {
            // A timer without a message is armed again (contract §10).
            let wake_at = self.after(self.limits.long_stop);
            if let Some(parked) = &mut task.file.parked {
                parked.wake_at = wake_at;
            }
        }
        task.save()?;
        Ok(task.file.parked.clone())
    }

    /// A message of a person: the waiting flag is cleared and both are saved before anything else happens.
    fn take(&self, task: &mut OpenTask, name: String, text: String) -> Result<(), AgentError> {
        let limit = task.file.parked.take().is_some_and(|parked| parked.why == Why::Limit);
        self.note(task, "user_message", "", &text)?;
        let gives_up = ["abort", "stop", "cancel"];
        if limit && gives_up.contains(&text.trim().to_lowercase().as_str()) {
            task.file.status = Status::Abort;
        }
        task.file.message = Some(Taken { name, text: text.clone(), lead: false });
        task.file.unattended = 0;
        task.file.errors = 0;
        task.save()?;
        self.hooks.tell(|listener| listener.user_message_routed(&task.file, &text));
        Ok(())
    }

    /// The workflow hears a message once, as a lead, before the turn that answers it (decision O5).
    fn lead(&self, task: &mut OpenTask) -> Result<(), String> {
        let Some(message) = task.file.message.clone().filter(|message| !message.lead) else {
            return Ok(());
        };
        let workflow_id = task.file.workflow_id.clone();
        if let Some(place) =
            self.operations.workflow(&workflow_id).filter(|_| !workflow_id.is_empty())
        {
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

    /// The task owns its subject before anything is produced for it (contract §10).
    fn own(&self, task: &mut OpenTask, decided: &super::task_turn::Decided) -> Result<(), String> {
        let Some((place, _)) = &decided.workflow else { return Ok(()) };
        let client = WorkflowClient::new(&*self.operations, place);
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let subject = client.subject(&task.file.to_workflow()).map_err(|error| text(&error))?;
        let Some((subject, _)) = subject else { return Ok(()) };
        let workflow_id = task.file.workflow_id.clone();
        let owners = self.tasks.owners(&workflow_id).map_err(|error| text(&error))?;
        match owners.get(&subject) {
            Some(owner) if *owner == task.file.id => {}
            Some(owner) => return Err(format!("`{subject}` belongs to task {owner}")),
            None => {
                self.tasks
                    .bind(&workflow_id, &subject, &task.file.id)
                    .map_err(|error| text(&error))?;
            }
        }
        task.file.subject = subject;
        Ok(())
    }

    /// Whatever the message led to was carried out; it is never served again.
    fn serve(&self, task: &mut OpenTask) {
        if let Some(message) = task.file.message.take()
            && !message.name.starts_with("card:")
        {
            task.file.served.push(message.name);
        }
    }

    /// The end of a turn: durable, then known.
    fn finish(&self, task: &mut OpenTask) -> Result<Turned, AgentError> {
        task.file.position = self.provider.position().unwrap_or_default();
        task.save()?;
        for name in std::mem::take(&mut task.file.served) {
            self.tasks.remove(&task.file.id, &name)?;
        }
        task.save()?;
        if task.file.is_ended() {
            return Ok(Turned::Ended(task.file.status));
        }
        Ok(match &task.file.parked {
            Some(parked) => {
                self.hooks.tell(|listener| listener.parked(&task.file, &parked.note));
                Turned::Parked(parked.clone())
            }
            None => Turned::Again,
        })
    }

    /// A turn that decided nothing: an event, and the next turn tries again; a few in a row park the task.
    fn failed(&self, task: &mut OpenTask, error: &TurnError) -> Result<Turned, AgentError> {
        let (why, text) = match error {
            TurnError::Provider(text) => (Some(Why::Provider), text),
            TurnError::NoWorkflow(text) => (Some(Why::NoWorkflow), text),
            TurnError::Failed(text) => (None, text),
        };
        self.note(task, "error", "", text)?;
        task.file.errors += 1;
        let (why, shown) = match why {
            Some(why) => (why, text.clone()),
            None if task.file.errors >= self.limits.errors => {
                (Why::Errors, sdk::workflow::texts::parked_after_errors(text))
            }
            None => return self.finish(task),
        };
        // An outage ends by itself; the others need somebody to look.
        if why != Why::Provider
            && let Err(error) = self.human().say(&task.file.id, &shown)
        {
            tracing::warn!(target: "udf_host::agent", task = %task.file.id, "nobody could be told: {error}");
        }
        task.file.errors = 0;
        self.park(task, why, shown, None, self.limits.retry);
        self.finish(task)
    }

    fn ask_to_go_on(&self, task: &mut OpenTask) -> Result<Turned, AgentError> {
        let text = format!(
            "This task took {} turns without a word from you. Shall it go on? Answer `abort` to end it.",
            task.file.unattended
        );
        let TaskFile { id, project, turns, .. } = &task.file;
        let card = self.human().ask(
            project,
            id,
            &format!("{id}-limit-{turns}"),
            &text,
            &json!({"message": text}),
        );
        let card = card
            .inspect_err(|error| {
                tracing::warn!(target: "udf_host::agent", task = %id, "nobody could be asked: {error}");
            })
            .ok();
        self.park(task, Why::Limit, text, card, self.limits.long_stop);
        self.finish(task)
    }

    pub(super) fn park(
        &self,
        task: &mut OpenTask,
        why: Why,
        note: String,
        card: Option<String>,
        wait: Duration,
    ) {
        task.file.parked = Some(Parked { why, note, wake_at: self.after(wait), card });
    }

    pub(super) fn note(
        &self,
        task: &mut OpenTask,
        kind: &str,
        action: &str,
        text: &str,
    ) -> Result<(), AgentError> {
        let event =
            Event { ts: self.now(), kind: kind.into(), action: action.into(), text: text.into() };
        task.stream.append(event)?;
        Ok(())
    }

    /// Gives a subject that stands to a new task: the owner before is cancelled, the state starts anew but for its
    /// ledger and what was left unserved, and the request is its first lead (contract §10).
    ///
    /// # Errors
    /// The durable side refuses, or the workflow cannot take it over.
    pub fn adopt(&self, id: &str) -> Result<(), AgentError> {
        let mut task = self.tasks.open(id)?;
        let file = task.file.clone();
        let Some(place) = self.operations.workflow(&file.workflow_id) else { return Ok(()) };
        let client = WorkflowClient::new(&*self.operations, &place);
        let found = client.subject(&file.to_workflow());
        let Ok(Some((subject, state_dir))) = found else { return Ok(()) };
        let owners = self.tasks.owners(&file.workflow_id)?;
        let before = owners.get(&subject).filter(|owner| **owner != file.id).cloned();
        if let Some(before) = &before {
            self.cancel(before)?;
        }
        self.tasks.bind(&file.workflow_id, &subject, id)?;
        task.file.subject = subject;
        task.session.end();
        task.save()?;
        if before.is_some() {
            let adoption = json!({"targeted": true, "incoming": file.query, "task": file.id});
            let lead = json!({"text": file.query});
            for (recorder, arguments) in [("adopt_reset", adoption), ("record_user_lead", lead)] {
                if let Err(error) = client.record(recorder, &state_dir, &arguments) {
                    self.note(&mut task, "error", recorder, &error.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Cancels a task that lives; one that is driven elsewhere stays until its driver is done with it.
    fn cancel(&self, id: &str) -> Result<(), AgentError> {
        let mut task = match self.tasks.open(id) {
            Ok(task) => task,
            Err(TasksError::Unknown(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if task.file.is_ended() {
            return Ok(());
        }
        task.file.status = Status::Cancelled;
        task.file.parked = None;
        task.save()?;
        self.store_status(&task.file);
        Ok(())
    }

    /// The task store shows how far the task is; the loop itself goes by its own document.
    pub(super) fn store_status(&self, file: &TaskFile) {
        if let Err(error) = self.human().set_status(&file.id, file.status.word()) {
            tracing::warn!(target: "udf_host::agent", task = %file.id, "its status was not stored: {error}");
        }
        if !file.is_ended() || file.workflow_id.is_empty() {
            return;
        }
        // What the workflow runs for the task is ended with it. Whatever a crash leaves running here is ended
        // by `boot_restore` at the next start.
        if let Some(place) = self.operations.workflow(&file.workflow_id) {
            let client = WorkflowClient::new(&*self.operations, &place);
            if let Err(error) = client.task_ended(&file.to_workflow(), file.status) {
                tracing::warn!(target: "udf_host::agent", task = %file.id, "its workflow did not hear of the end: {error}");
            }
        }
    }

    /// Every workflow that ever had a subject hears which of its tasks did not end.
    fn tell_workflows(&self, standing: &[Standing]) {
        let workflows = match self.tasks.workflows() {
            Ok(workflows) => workflows,
            Err(error) => {
                tracing::error!(target: "udf_host::agent", "no workflow hears of the start: {error}");
                return;
            }
        };
        // An alias is the same workflow: it hears once, of all its tasks.
        let mut places: Vec<WorkflowPlace> =
            workflows.iter().filter_map(|id| self.operations.workflow(id)).collect();
        places.sort_by(|a, b| a.folder.cmp(&b.folder));
        places.dedup();
        for place in places {
            let is_its = |task: &&Standing| {
                !task.ghost
                    && self.operations.workflow(&task.file.workflow_id).as_ref() == Some(&place)
            };
            let running: Vec<&str> =
                standing.iter().filter(is_its).map(|task| task.file.id.as_str()).collect();
            let client = WorkflowClient::new(&*self.operations, &place);
            if let Err(error) = client.boot_restore(&running) {
                tracing::warn!(target: "udf_host::agent", workflow = %place.address, "it did not hear of the start: {error}");
            }
        }
    }

    /// What a restart finds: every task that did not end, ghosts cancelled. Parked tasks stay parked.
    ///
    /// # Errors
    /// The durable side refuses. A corrupt document is logged and passed over.
    pub fn restore(&self) -> Result<Vec<Standing>, AgentError> {
        self.hooks.tell(|listener| listener.boot_restore());
        let mut standing = Vec::new();
        for id in self.tasks.ids()? {
            match self.tasks.read(&id) {
                Ok(Some(file)) if !file.is_ended() => {
                    standing.push(Standing { file, ghost: false });
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(target: "udf_host::agent", task = %id, "a task is not restored: {error}");
                }
            }
        }
        let mut workflows: Vec<String> =
            standing.iter().map(|task| task.file.workflow_id.clone()).collect();
        workflows.sort();
        workflows.dedup();
        for workflow in workflows.iter().filter(|workflow| !workflow.is_empty()) {
            let owners = self.tasks.owners(workflow).inspect_err(|error| {
                tracing::error!(target: "udf_host::agent", %workflow, "owners are unknown, so nobody is judged: {error}");
            });
            let owners = owners.ok();
            let owners: Option<Vec<&str>> =
                owners.as_ref().map(|owners| owners.values().map(String::as_str).collect());
            // Who never owned a subject has none to lose.
            let running: Vec<Restored<'_>> = standing
                .iter()
                .filter(|task| !task.file.subject.is_empty() && task.file.turns > 0)
                .map(|task| Restored {
                    task_id: &task.file.id,
                    workflow_id: Some(&task.file.workflow_id),
                })
                .collect();
            let found = ghosts(&running, owners.as_deref(), |id| id == workflow);
            let found: Vec<String> = found.into_iter().map(str::to_owned).collect();
            for ghost in found {
                match self.cancel(&ghost) {
                    Ok(()) => {}
                    Err(AgentError::Tasks(TasksError::Busy(_))) => continue,
                    Err(error) => return Err(error),
                }
                for task in standing.iter_mut().filter(|task| task.file.id == ghost) {
                    task.ghost = true;
                    task.file.status = Status::Cancelled;
                }
            }
        }
        self.tell_workflows(&standing);
        Ok(standing)
    }
}

impl std::fmt::Debug for AgentLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentLoop")
            .field("tasks", &self.tasks)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}
