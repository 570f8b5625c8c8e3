//! [`TaskView`]: a task as people and programs look at it.

use serde::Serialize;
use serde_json::{Map, Value};

use super::agent_loop::AgentLoop;
use super::error::AgentError;
use super::stream::Event;
use super::task_file::{Ending, Parked, Status, TaskFile};
use super::tasks::TasksError;

/// A task as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskView {
    /// Its id.
    pub task: String,
    /// Its project.
    pub project: String,
    /// Its workflow; empty is a plain task.
    pub workflow: String,
    /// What its work is about; empty while nobody knows.
    pub subject: String,
    /// What was asked for.
    pub request: String,
    /// How far it is.
    pub status: Status,
    /// Phase of a workflow's work: `working`, `checking`, `gated`, `paused_infra` or `done`; of a plain task `working`,
    /// `waiting` or `done`.
    pub phase: String,
    /// The step that the workflow chose last.
    pub step: Option<Step>,
    /// Why it waits, if it does.
    pub parked: Option<Parked>,
    /// Turns so far.
    pub turns: u64,
    /// How it ended.
    pub ended: Option<Ending>,
    /// The last lines of the workflow's journal, `step` lines left out.
    pub journal: Vec<Value>,
    /// The last events of the task.
    pub events: Vec<Event>,
    /// Why phase, step and journal could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The stage that chose it.
    pub stage: String,
    /// `actions`, `llm`, `wait` or `end`.
    pub kind: String,
    /// Which round it belongs to, from 1.
    pub round: u64,
}

impl Step {
    fn of(line: &Map<String, Value>) -> Option<Self> {
        let text = |key: &str| Some(line.get(key)?.as_str()?.to_owned());
        Some(Self {
            stage: text("stage")?,
            kind: text("kind")?,
            round: line.get("round")?.as_u64()?,
        })
    }
}

impl AgentLoop {
    /// A task as it stands, with the last `lines` of journal and events. Takes no lock: it may be running meanwhile.
    ///
    /// # Errors
    /// The task is unknown or corrupt, or the store refuses.
    pub fn view(&self, id: &str, lines: usize) -> Result<TaskView, AgentError> {
        let file = self.tasks.read(id)?.ok_or_else(|| TasksError::Unknown(id.to_owned()))?;
        let mut events = self.tasks.events(id)?;
        events.drain(..events.len().saturating_sub(lines));
        let mut view = TaskView::of(file.clone(), events);
        match self.work(&file) {
            None => {}
            Some(Err(error)) => view.fault = Some(error.to_string()),
            Some(Ok((state, journal))) => {
                if let Some(phase) = state["phase"].as_str() {
                    view.phase = phase.to_owned();
                }
                let is_step = |line: &&Value| line["event"] == "step";
                view.step =
                    journal.iter().rev().find(is_step).and_then(|line| Step::of(line.as_object()?));
                view.journal = journal.into_iter().filter(|line| !is_step(&line)).collect();
                view.journal.drain(..view.journal.len().saturating_sub(lines));
            }
        }
        Ok(view)
    }
}

impl TaskView {
    fn of(file: TaskFile, events: Vec<Event>) -> Self {
        let phase = match (&file.parked, file.status) {
            (Some(_), Status::Running) => "waiting",
            (None, Status::Running) => "working",
            _ => "done",
        };
        Self {
            task: file.id,
            project: file.project,
            workflow: file.workflow_id,
            subject: file.subject,
            request: file.query,
            status: file.status,
            phase: phase.to_owned(),
            step: None,
            parked: file.parked,
            turns: file.turns,
            ended: file.ended,
            journal: Vec::new(),
            events,
            fault: None,
        }
    }
}
