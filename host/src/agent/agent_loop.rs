//! [`AgentLoop`]: turns of tasks, from trigger to persisted outcome.
//!
//! Before an action is carried out its name is saved. A host that dies in between finds it at the next start, tells the
//! task that its outcome is unknown, and does not repeat it; a workflow chooses by its own durable state anyway.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use core_store::Store;

use super::act::{self, Act};
use super::bell::Stop;
use super::error::AgentError;
use super::hooks::Hooks;
use super::human::{Human, StoredTask};
use super::limits::Limits;
use super::operations::{HostOperations, Operations};
use super::provider::{Metered, Provider};
use super::stream::Event;
use super::task_file::{Parked, Status, TaskFile};
use super::task_turn::{TaskTurn, TurnError};
use super::tasks::{OpenTask, Tasks, TasksError};
use super::workflow::WorkflowClient;
use crate::Host;

/// Tells the time in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Turns of tasks. Cheap to clone.
#[derive(Clone)]
pub struct AgentLoop {
    pub(super) operations: Arc<dyn Operations>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) tasks: Tasks,
    pub(super) limits: Limits,
    pub(super) hooks: Hooks,
    pub(super) stop: Stop,
    clock: Clock,
}

/// What a request for a task says.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// Id of a task that the task store has already; empty makes one up.
    pub id: String,
    /// What is asked for.
    pub request: String,
    /// Its workflow; empty is a plain task.
    pub workflow_id: String,
    /// Project of the task and its cards; empty is `agent`.
    pub project: String,
    /// What the work is about, if it is something that stands already.
    pub subject: String,
    /// The only operations it may use; empty is no bound.
    pub actions: Vec<String>,
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
            stop: Stop::default(),
            clock: Arc::new(|| {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }),
        }
    }

    /// A loop over the operations and the state folder of a host.
    #[must_use]
    pub fn of_host(host: &Host, provider: Arc<dyn Provider>) -> Self {
        let app_dir = host.dispatcher.app_dir(None);
        let place = Some(app_dir.display().to_string());
        let operations = HostOperations::new(Arc::clone(&host.dispatcher), place);
        Self::new(Arc::new(operations), provider, host.store.clone(), app_dir)
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

    /// The same, told to stop by this: between turns, and between the turns of a sub-agent.
    #[must_use]
    pub fn with_stop(self, stop: Stop) -> Self {
        Self { stop, ..self }
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

    /// Makes a task; its id. It is durable when this returns, and nothing of it ran yet. A task that the loop has
    /// already under that id is left as it is.
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
        let id = if new.id.is_empty() { made_up_id()? } else { new.id };
        let project = if new.project.is_empty() { "agent".to_owned() } else { new.project };
        let file = TaskFile {
            schema: 1,
            id: id.clone(),
            project,
            adopting: !new.subject.is_empty() && !new.workflow_id.is_empty(),
            workflow_id: new.workflow_id,
            query: new.request,
            subject: new.subject,
            actions: new.actions,
            ..TaskFile::default()
        };
        self.tasks.create(&file)?;
        Ok(id)
    }

    /// What the task store says of a task, if it has one of this id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn stored(&self, id: &str) -> Result<Option<StoredTask>, AgentError> {
        let what = "the task store cannot be read";
        self.human().stored_task(id).map_err(|source| AgentError::Call { what, source })
    }

    /// Routes a message of a person to a task. It is durable when this returns; the task's next turn serves it.
    ///
    /// # Errors
    /// The message is blank, the task is unknown or at its end, or the store refuses.
    pub fn post(&self, id: &str, text: &str) -> Result<(), AgentError> {
        if text.trim().is_empty() {
            return Err(AgentError::NoWords);
        }
        match self.tasks.post(id, text) {
            Ok(_) => Ok(()),
            Err(TasksError::Ended(id)) => Err(AgentError::Ended(id)),
            Err(error) => Err(error.into()),
        }
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
        if self.stop.is_stopped() {
            return Err(AgentError::Stopped);
        }
        self.settle(task)?;
        if task.file.is_ended() {
            self.conclude(task)?;
            return Ok(Turned::Ended(task.file.status));
        }
        if let Some(parked) = self.take_over(task)? {
            return Ok(Turned::Parked(parked));
        }
        if let Some(parked) = self.wake(task)? {
            return Ok(Turned::Parked(parked));
        }
        if task.file.is_ended() {
            // Somebody gave it up.
            self.serve(task);
            task.file.closing = true;
            self.tasks.seal(task, false)?;
            self.conclude(task)?;
            return self.finish(task);
        }
        let file = &task.file;
        if file.unattended >= self.limits.unattended || file.spent >= self.limits.tokens {
            self.ask_to_go_on(task)?;
            return self.finish(task);
        }
        task.file.turns += 1;
        task.file.unattended += 1;
        if task.stream.is_long() {
            task.stream.summarise();
            task.session.end();
        }
        task.save()?;
        let meter = Metered::new(&*self.provider);
        let turned = self.decide_and_act(task, &meter);
        task.file.spent = task.file.spent.saturating_add(meter.tokens());
        match turned? {
            Ok(()) => {
                task.file.errors = 0;
                self.withdraw_outdated(task);
            }
            Err(error) => self.failed(task, &error)?,
        }
        self.finish(task)
    }

    fn decide_and_act(
        &self,
        task: &mut OpenTask,
        provider: &dyn Provider,
    ) -> Result<Result<(), TurnError>, AgentError> {
        // Nothing is said to a workflow, and nothing asked of it, in the name of a subject that is another task's.
        let owned = self.own(task).and_then(|owns| self.lead(task).map(|()| owns));
        let owns = match owned {
            Ok(owns) => owns,
            Err(error) => return Ok(Err(TurnError::Failed(error))),
        };
        let conversation = self.hooks.conversation_actions(&task.file);
        let turn = TaskTurn { operations: &*self.operations, provider, task, conversation };
        let decided = match turn.decide() {
            Ok(decided) => decided,
            Err(error) => return Ok(Err(error)),
        };
        if decided.has_subject
            && !owns
            && let Err(error) = self.own(task)
        {
            return Ok(Err(TurnError::Failed(error)));
        }
        if decided.batch.is_skipped() {
            let dropped = decided.batch.dropped.iter().take(act::DROPPED);
            let dropped: Vec<String> =
                dropped.map(|dropped| dropped.action_name.chars().take(100).collect()).collect();
            // The question was put; the work is scheduled again (decision O10).
            self.serve(task);
            let text = format!("nothing of the decision is allowed here: {}", dropped.join(", "));
            return Ok(Err(TurnError::Failed(text)));
        }
        Act { agent: self, task, decided: &decided, provider }.carry_out()?;
        self.serve(task);
        Ok(Ok(()))
    }

    /// Whatever the message led to was carried out; it is never served again.
    pub(super) fn serve(&self, task: &mut OpenTask) {
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

    fn withdraw_outdated(&self, task: &mut OpenTask) {
        let Some(card) = task.file.outdated.take() else { return };
        let is_asked = task.file.parked.as_ref().is_some_and(|it| it.card.as_ref() == Some(&card));
        if !is_asked && let Err(error) = self.human().withdraw_card(&card) {
            tracing::warn!(target: "udf_host::agent", task = %task.file.id, "{card} was not withdrawn: {error}");
        }
    }

    pub(super) fn note(
        &self,
        task: &mut OpenTask,
        kind: &str,
        action: &str,
        text: &str,
    ) -> Result<(), AgentError> {
        task.append(Event::new(self.now(), kind, action, text))?;
        Ok(())
    }

    /// Tells everybody of an end that is durable, and remembers that they were told.
    pub(super) fn conclude(&self, task: &mut OpenTask) -> Result<(), AgentError> {
        if task.file.closing {
            self.close(&task.file);
            task.file.closing = false;
            task.save()?;
        }
        Ok(())
    }

    /// A task that came to its end: the task store shows it, nobody is asked any more, and its workflow ends what it runs
    /// for it. The loop itself goes by its own document.
    fn close(&self, file: &TaskFile) {
        let human = self.human();
        if let Err(error) = human.set_status(&file.id, file.status.word()) {
            tracing::warn!(target: "udf_host::agent", task = %file.id, "its status was not stored: {error}");
        }
        if let Err(error) = human.withdraw(&file.id) {
            tracing::warn!(target: "udf_host::agent", task = %file.id, "its cards were not withdrawn: {error}");
        }
        if file.workflow_id.is_empty() {
            return;
        }
        if let Some(place) = self.operations.workflow(&file.workflow_id) {
            let client = WorkflowClient::new(&*self.operations, &place);
            if let Err(error) = client.task_ended(&file.to_workflow(), file.status) {
                tracing::warn!(target: "udf_host::agent", task = %file.id, "its workflow did not hear of the end: {error}");
            }
        }
    }
}

fn made_up_id() -> Result<String, AgentError> {
    let mut random = [0; 6];
    getrandom::fill(&mut random).map_err(|error| AgentError::NoId(error.to_string()))?;
    Ok(random.iter().fold("task_".to_owned(), |id, byte| format!("{id}{byte:02x}")))
}

impl std::fmt::Debug for AgentLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentLoop")
            .field("tasks", &self.tasks)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}
