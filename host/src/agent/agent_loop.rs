//! [`AgentLoop`]: makes tasks, takes messages for them, and holds what their turns need.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use core_store::Store;

use super::agent_type::AgentType;
use super::bell::Stop;
use super::error::AgentError;
use super::hooks::Hooks;
use super::human::{Human, StoredTask};
use super::limits::Limits;
use super::operations::{HostOperations, Operations, WorkflowPlace};
use super::provider::Provider;
use super::task_file::TaskFile;
use super::tasks::{Tasks, TasksError};
use super::tools;
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

    /// Replies of a script that were of no use, with their places.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.provider.faults()
    }

    /// Why the provider is never going to answer again: a script that ran out.
    #[must_use]
    pub fn ran_out(&self) -> Option<String> {
        self.provider.ran_out()
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
    /// A blank request, a workflow that is unknown or cannot do what it is for, an action that no task can use, or a store
    /// that refuses.
    pub fn start(&self, new: NewTask) -> Result<String, AgentError> {
        if new.request.trim().is_empty() {
            return Err(AgentError::NoRequest);
        }
        if !new.workflow_id.is_empty() {
            let place = self.operations.workflow(&new.workflow_id);
            let place = place.ok_or_else(|| AgentError::NoWorkflow {
                workflow: new.workflow_id.clone(),
                known: self.known_workflows(&new.workflow_id),
            })?;
            self.check(&place).map_err(|reason| AgentError::Unusable {
                workflow: new.workflow_id.clone(),
                reason,
            })?;
        }
        for action in &new.actions {
            if let Some(reason) = tools::refusal(&*self.operations, action) {
                return Err(AgentError::NoAction { action: action.clone(), reason });
            }
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

    fn known_workflows(&self, like: &str) -> String {
        let ids = self.operations.workflows();
        match ids.is_empty() {
            true => "none".to_owned(),
            false => tools::known(like, ids.iter().map(String::as_str)),
        }
    }

    /// Whether a workflow can do what it is for, as far as that shows before anything runs: whoever asks for a task hears
    /// of it, not a person who waits for a result. What is still being built shows at its turns.
    fn check(&self, place: &WorkflowPlace) -> Result<(), String> {
        if let Some(reason) = self.operations.lacks(&place.address, false) {
            return Err(reason);
        }
        if self.operations.tool(&place.address).is_none() {
            return Ok(());
        }
        let description = WorkflowClient::new(&*self.operations, place).describe();
        let description = description.map_err(|error| error.to_string())?;
        for kind in std::iter::once(&description.worker_agent).chain(&description.checker_agent) {
            AgentType::usable(&place.folder, kind, &*self.operations, false)?;
        }
        Ok(())
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
