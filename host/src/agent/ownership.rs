//! One owner task per subject, take-overs, cancelling, and what a restart finds (workflow-engine contract §10).

use std::collections::HashSet;
use std::time::Duration;

use sdk::workflow::registry::{Restored, ghosts};
use serde_json::{Value, json};

use super::agent_loop::AgentLoop;
use super::error::AgentError;
use super::operations::{CallError, WorkflowPlace};
use super::task_file::{Owners, Parked, Status, TaskFile, Why};
use super::tasks::{OpenTask, TasksError};
use super::workflow::WorkflowClient;

/// How long a new owner waits before it looks again whether the one before has let go.
const LETTING_GO: Duration = Duration::from_secs(2);

/// A task as a restart finds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its document.
    pub file: TaskFile,
    /// Whether it was cancelled just now, since nobody's subject is its own any more.
    pub ghost: bool,
}

fn call(what: &'static str) -> impl Fn(CallError) -> AgentError {
    move |source| AgentError::Call { what, source }
}

impl AgentLoop {
    /// The task owns its subject before anything is produced for it. False: it has none yet, or no workflow that knows.
    pub(super) fn own(&self, task: &mut OpenTask) -> Result<bool, String> {
        if task.file.workflow_id.is_empty() {
            return Ok(false);
        }
        let Some(place) = self.operations.workflow(&task.file.workflow_id) else {
            return Ok(false);
        };
        let client = WorkflowClient::new(&*self.operations, &place);
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let subject = client.subject(&task.file.to_workflow()).map_err(|error| text(&error))?;
        let Some((subject, state_dir)) = subject else { return Ok(false) };
        let owners = self.owners_of(&place).map_err(|error| text(&error))?.unwrap_or_default();
        let owner = match owners.get(&subject) {
            Some(owner) => owner.clone(),
            None => self
                .tasks
                .claim(&place.address.op, &subject, &task.file.id)
                .map_err(|error| text(&error))?,
        };
        if owner != task.file.id {
            return Err(format!("`{subject}` belongs to task {owner}"));
        }
        task.file.subject = subject;
        task.file.state_dir = state_dir;
        Ok(true)
    }

    /// Owners of all subjects of a workflow, those included that were bound while it had another name. `None`: none is
    /// on record, or the record is lost.
    fn owners_of(&self, place: &WorkflowPlace) -> Result<Option<Owners>, TasksError> {
        let mut found = self.tasks.owners(&place.address.op)?;
        for id in self.tasks.workflows()? {
            if *id == *place.address.op || self.operations.workflow(&id).as_ref() != Some(place) {
                continue;
            }
            let before = self.tasks.owners(&id)?.unwrap_or_default();
            let owners = found.get_or_insert_default();
            for (subject, task) in before {
                owners.entry(subject).or_insert(task);
            }
        }
        Ok(found)
    }

    /// Gives a subject that stands to a new task: the owner before is cancelled, the state starts anew but for its
    /// ledger and what was left unserved, and the request is its first lead.
    ///
    /// A task that names a subject does this by itself before its first turn; to call it makes it happen now.
    ///
    /// # Errors
    /// The durable side refuses, or the workflow cannot take it over. It is tried again at the next turn.
    pub fn adopt(&self, id: &str) -> Result<(), AgentError> {
        let mut task = self.tasks.open(id)?;
        self.take_over(&mut task)?;
        Ok(())
    }

    /// What a crash cuts off is done again as a whole: every part of it may be repeated. `Some`: the owner before is
    /// still at work.
    pub(super) fn take_over(&self, task: &mut OpenTask) -> Result<Option<Parked>, AgentError> {
        if !task.file.adopting {
            return Ok(None);
        }
        let file = &task.file;
        let Some(place) = self.operations.workflow(&file.workflow_id) else { return Ok(None) };
        let client = WorkflowClient::new(&*self.operations, &place);
        let failed = call("the subject cannot be taken over");
        let found = client.subject(&file.to_workflow()).map_err(&failed)?;
        let Some((subject, state_dir)) = found else {
            task.file.adopting = false;
            task.save()?;
            return Ok(None);
        };
        let owners = self.owners_of(&place)?.unwrap_or_default();
        let before = owners.get(&subject).filter(|owner| **owner != file.id).cloned();
        if let Some(before) = before.or_else(|| file.replaces.clone()) {
            task.file.replaces = Some(before.clone());
            task.save()?;
            if !self.cancel(&before)? {
                let note = format!("Waiting until task {before} lets go of `{subject}`.");
                self.park(task, Why::Timer, note, LETTING_GO);
                task.save()?;
                return Ok(task.file.parked.clone());
            }
        }
        self.tasks.bind(&place.address.op, &subject, &task.file.id)?;
        if task.file.replaces.is_some() {
            let adoption =
                json!({"targeted": true, "incoming": task.file.query, "task": task.file.id});
            let lead = json!({"text": task.file.query});
            for (recorder, arguments) in [("adopt_reset", adoption), ("record_user_lead", lead)] {
                client.record(recorder, &state_dir, &arguments).map_err(&failed)?;
            }
        }
        let file = &mut task.file;
        (file.subject, file.state_dir) = (subject, state_dir);
        (file.adopting, file.replaces, file.parked) = (false, None, None);
        task.session.end();
        task.save()?;
        Ok(None)
    }

    /// Cancels a task. False: another process drives it just now; it ends the task as soon as it looks.
    ///
    /// # Errors
    /// The durable side refuses.
    pub fn cancel(&self, id: &str) -> Result<bool, AgentError> {
        let Some(file) = self.tasks.read(id)? else { return Ok(true) };
        if file.is_ended() {
            return Ok(true);
        }
        self.tasks.request_cancel(id)?;
        self.end_cancelled(id)
    }

    /// Ends a task that is to be cancelled, and concludes one that came to its end. False: another process drives it.
    fn end_cancelled(&self, id: &str) -> Result<bool, AgentError> {
        let mut task = match self.tasks.open(id) {
            Ok(task) => task,
            Err(TasksError::Busy(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if !task.file.is_ended() {
            task.file.status = Status::Cancelled;
            task.file.parked = None;
            task.file.closing = true;
            self.tasks.seal(&mut task, false)?;
        }
        self.conclude(&mut task)?;
        self.put_aside(task);
        Ok(true)
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
                // Killed while it told of the end, or before it was moved aside.
                Ok(Some(_)) => {
                    if let Err(error) = self.end_cancelled(&id) {
                        tracing::error!(target: "udf_host::agent", task = %id, "its end is not known to all: {error}");
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(target: "udf_host::agent", task = %id, "a task is not restored: {error}");
                }
            }
        }
        let mut ids: Vec<&str> =
            standing.iter().map(|task| task.file.workflow_id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        // What is not there judges nobody.
        let places: Vec<WorkflowPlace> = distinct(
            ids.into_iter()
                .filter(|id| !id.is_empty())
                .filter_map(|id| self.operations.workflow(id)),
        );
        for place in &places {
            for ghost in self.ghosts_of(place, &standing) {
                if !self.cancel(&ghost)? {
                    continue;
                }
                for task in standing.iter_mut().filter(|task| task.file.id == ghost) {
                    task.ghost = true;
                    task.file.status = Status::Cancelled;
                }
            }
        }
        self.tell_workflows(&standing, &self.begun_since(&standing)?);
        Ok(standing)
    }

    /// What another host made while this one looked: what runs for it is not to be ended.
    fn begun_since(&self, standing: &[Standing]) -> Result<Vec<TaskFile>, AgentError> {
        let known: HashSet<&str> = standing.iter().map(|task| task.file.id.as_str()).collect();
        let mut begun = Vec::new();
        for id in self.tasks.ids()? {
            // A document that cannot be read was named above.
            if !known.contains(id.as_str())
                && let Ok(Some(file)) = self.tasks.read(&id)
                && !file.is_ended()
            {
                begun.push(file);
            }
        }
        Ok(begun)
    }

    /// Every workflow that ever had a subject hears which of its tasks did not end.
    fn tell_workflows(&self, standing: &[Standing], begun: &[TaskFile]) {
        let workflows = match self.tasks.workflows() {
            Ok(workflows) => workflows,
            Err(error) => {
                tracing::error!(target: "udf_host::agent", "no workflow hears of the start: {error}");
                return;
            }
        };
        // An alias is the same workflow: it hears once, of all its tasks.
        for place in distinct(workflows.iter().filter_map(|id| self.operations.workflow(id))) {
            let is_its = |file: &&TaskFile| {
                self.operations.workflow(&file.workflow_id).as_ref() == Some(&place)
            };
            let restored = standing.iter().filter(|task| !task.ghost).map(|task| &task.file);
            let running: Vec<&str> =
                restored.chain(begun).filter(is_its).map(|file| file.id.as_str()).collect();
            let client = WorkflowClient::new(&*self.operations, &place);
            if let Err(error) = client.boot_restore(&running) {
                tracing::warn!(target: "udf_host::agent", workflow = %place.address, "it did not hear of the start: {error}");
            }
        }
    }

    fn ghosts_of(&self, place: &WorkflowPlace, standing: &[Standing]) -> Vec<String> {
        let owners = self.owners_of(place).inspect_err(|error| {
            tracing::error!(target: "udf_host::agent", workflow = %place.address, "owners are unknown, so nobody is judged: {error}");
        });
        let owners = owners.ok().flatten();
        let owners: Option<Vec<&str>> =
            owners.as_ref().map(|owners| owners.values().map(String::as_str).collect());
        // Who never owned a subject has none to lose.
        let running: Vec<Restored<'_>> = standing
            .iter()
            .filter(|task| {
                !task.file.subject.is_empty() && task.file.turns > 0 && !task.file.adopting
            })
            .map(|task| Restored {
                task_id: &task.file.id,
                workflow_id: Some(&task.file.workflow_id),
            })
            .collect();
        let is_its = |id: &str| self.operations.workflow(id).as_ref() == Some(place);
        let found = ghosts(&running, owners.as_deref(), is_its);
        found.into_iter().map(str::to_owned).collect()
    }

    /// Whether the task store forgot a task that it had.
    pub(super) fn is_forgotten(&self, file: &TaskFile) -> bool {
        file.registered && self.tasks.is_forgotten(&file.id)
    }

    /// Whether a task is to stop at once: it was cancelled or removed, or the loop was told to.
    pub(super) fn is_halted(&self, file: &TaskFile) -> bool {
        self.stop.is_stopped()
            || self.tasks.is_cancelled(&file.id).unwrap_or(false)
            || self.is_forgotten(file)
            || matches!(self.tasks.read(&file.id), Ok(None))
    }

    /// What a workflow operation says of the state of a task's work; `None` without one.
    pub(super) fn work(&self, file: &TaskFile) -> Option<Result<(Value, Vec<Value>), CallError>> {
        if file.workflow_id.is_empty() {
            return None;
        }
        let place = self.operations.workflow(&file.workflow_id)?;
        let client = WorkflowClient::new(&*self.operations, &place);
        let task = file.to_workflow();
        Some(client.state(&task).and_then(|state| Ok((state, client.journal(&task, 500)?))))
    }
}

/// Each workflow once, whatever it is called.
fn distinct(places: impl Iterator<Item = WorkflowPlace>) -> Vec<WorkflowPlace> {
    let mut places: Vec<WorkflowPlace> = places.collect();
    places.sort_by(|a, b| a.folder.cmp(&b.folder));
    places.dedup();
    places
}
