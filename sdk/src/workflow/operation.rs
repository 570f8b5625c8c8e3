//! Makes a [`Workflow`] an operation: [`serve`] answers its `call`s over the folders of the call
//! (workflow-engine contract §3 to §10).
//!
//! Any loop can drive the work through it, over HTTP too: `step` chooses, the recorders record, and the
//! state lies in files between any two calls.

mod arguments;
mod place;

use std::cell::{Cell, OnceCell};

use serde_json::{Map, Value, json};

use self::place::{FolderPlace, open};
use super::engine::{Engine, EngineError};
use super::event::Event;
use super::moment::Moment;
use super::recorders::Recorded;
use super::state::WorkState;
use super::step::EndStatus;
use super::tap::{Agents, outcome_events};
use super::workflow::{DomainError, Task, Workflow};
use super::{journal, ledger};
use crate::context::Context;
use crate::error::UdfError;
use crate::folder::Folder;
use crate::reply::Reply;

/// What every workflow operation answers. The domain may add calls of its own before it hands over to
/// [`serve`].
pub const CALLS: &[&str] = &[
    "describe",
    "system_prompt",
    "subject",
    "step",
    "record_outcome",
    "record_spawn",
    "record_work_outcome",
    "record_check_outcome",
    "record_user_lead",
    "record_touch",
    "record_invalidated",
    "record_interrupted",
    "adopt_reset",
    "task_state",
    "task_end_gate",
    "task_ended",
    "boot_restore",
    "state",
    "journal",
];

/// The parameters of a workflow operation, as they came in.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// One of [`CALLS`].
    pub call: &'a str,
    /// The task: `{"id", "query", "waiting", ..}`; further members are the domain's to read.
    pub task: &'a Value,
    /// What the user said this turn; empty is nothing.
    pub message: &'a str,
    /// State directory of a call that is not a turn; empty is that of the task's subject.
    pub state_dir: &'a str,
    /// Arguments of a recorder by name, and of `task_end_gate` (`status`) and `journal` (`limit`).
    pub arguments: &'a Value,
}

/// Answers one call. The operation must declare `folders`.
///
/// | Call | Reply |
/// |---|---|
/// | `describe` | name, agents, actions, budgets, texts and wishes of the workflow |
/// | `system_prompt` | the text |
/// | `subject` | `{"id", "state_dir"}`, or null while there is none |
/// | `step` | `{"subject": true, "state_dir", "stage", "kind", "step", "round", "route", "fault"}`; without a subject `{"subject": false, "step": null}` |
/// | `record_…`, `adopt_reset` | `{"unparks", "phase"}` |
/// | `record_outcome` | the same, for the end of an agent: `{"agent", "status", "result"}` |
/// | `task_state` | the extra block of the full prompt |
/// | `task_end_gate` | `{"allowed", "refusal"}` |
/// | `task_ended` | `{"ok": true}`, the task being ended with the `status` of the arguments |
/// | `boot_restore` | `{"ghosts": [id]}`: which of the tasks `running` (arguments) are nobody's |
/// | `state` | `{"phase", "state", "ledger", "outcomes"}` |
/// | `journal` | the last `limit` lines (50) |
///
/// While a question of the engine runs, the state directory is locked: it must not call other operations.
///
/// # Errors
/// An unknown call, arguments that it does not take, a task without a subject where one is needed, or what the engine
/// could not do.
pub fn serve(
    ctx: &Context,
    workflow: &dyn Workflow,
    request: &Request<'_>,
) -> Result<Reply, UdfError> {
    arguments::check(request.call, request.arguments).map_err(UdfError::bad_parameter)?;
    let served = Served { ctx, workflow, request, task: task(request.task) };
    match request.call {
        "describe" => Ok(Reply::value(&describe(workflow))),
        "system_prompt" => Ok(Reply::text(workflow.system_prompt())),
        "subject" => served.subject(),
        "step" => served.step(),
        "task_state" => Ok(Reply::text(&workflow.task_state(&served.task))),
        "task_end_gate" => served.end_gate(),
        "task_ended" => {
            workflow.on_task_ended(&served.task, served.argument("status")).map_err(domain)?;
            Ok(Reply::value(&json!({"ok": true})))
        }
        "boot_restore" => served.boot(),
        "state" => served.state(),
        "journal" => served.journal(),
        "record_outcome" => served.record(&served.outcome()),
        recorder => match Event::from_call(recorder, &served.arguments()) {
            Some(event) => served.record(&[event]),
            None => Err(UdfError::bad_parameter(format!(
                "`call` is `{recorder}`; known: {}",
                CALLS.join(", ")
            ))),
        },
    }
}

fn task(value: &Value) -> Task {
    let mut data = value.as_object().cloned().unwrap_or_default();
    let mut text = |key: &str| match data.shift_remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (id, query) = (text("id"), text("query"));
    let waiting = data.shift_remove("waiting") == Some(Value::Bool(true));
    Task { id, query, waiting, data }
}

fn describe(workflow: &dyn Workflow) -> Value {
    json!({
        "name": workflow.name(),
        "system_prompt": workflow.system_prompt(),
        "select_action_prompt": workflow.select_action_prompt(),
        "worker_agent": workflow.worker_agent(),
        "checker_agent": workflow.checker_agent(),
        "stage_action": workflow.stage_action(),
        "notify_action": workflow.notify_action(),
        "round_budget": workflow.round_budget(),
        "check_attempt_budget": workflow.check_attempt_budget(),
        "inject_memory": workflow.inject_memory(),
        "include_skills": workflow.include_skills(),
        "inject_essentials": workflow.inject_essentials(),
    })
}

struct Served<'a> {
    ctx: &'a Context,
    workflow: &'a dyn Workflow,
    request: &'a Request<'a>,
    task: Task,
}

impl<'a> Served<'a> {
    fn now(&self) -> Moment {
        Moment(u64::try_from(self.ctx.now().unix_ms()).unwrap_or_default())
    }

    fn arguments(&self) -> Map<String, Value> {
        self.request.arguments.as_object().cloned().unwrap_or_default()
    }

    fn argument(&self, name: &str) -> &str {
        self.request.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The state directory that is meant; `None` while the task has no subject.
    fn state_dir(&self) -> Result<Option<String>, UdfError> {
        if !self.request.state_dir.is_empty() {
            return Ok(Some(self.request.state_dir.to_owned()));
        }
        let subject = self.workflow.resolve_subject(&self.task).map_err(domain)?;
        Ok(subject.map(|subject| self.workflow.state_dir(&subject)))
    }

    fn needed_state_dir(&self) -> Result<String, UdfError> {
        self.state_dir()?.ok_or_else(|| {
            UdfError::raised(
                "the task has no subject yet: give `state_dir`, or a task that the workflow knows",
            )
        })
    }

    fn subject(&self) -> Result<Reply, UdfError> {
        let subject = self.workflow.resolve_subject(&self.task).map_err(domain)?;
        Ok(Reply::value(&subject.map(|subject| {
            let state_dir = self.workflow.state_dir(&subject);
            json!({"id": subject.id, "state_dir": state_dir})
        })))
    }

    fn step(&self) -> Result<Reply, UdfError> {
        let folder: OnceCell<Folder<'_>> = OnceCell::new();
        let state_dir = Cell::new(String::new());
        let message = Some(self.request.message);
        let turn = Engine::new(self.workflow).turn(&self.task, message, self.now(), |dir| {
            state_dir.set(dir.to_owned());
            let opened = open(self.ctx, dir)?;
            let folder = folder.get_or_init(|| opened);
            FolderPlace::lock(self.ctx, folder, self.workflow)
        });
        let Some(turn) = turn.map_err(engine)? else {
            return Ok(Reply::value(&json!({"subject": false, "step": null})));
        };
        let route = turn
            .route
            .map(|route| json!({"workflow": route.workflow, "state_dir": route.state_dir}));
        Ok(Reply::value(&json!({
            "subject": true,
            "state_dir": state_dir.into_inner(),
            "stage": turn.stage.word(),
            "kind": turn.step.as_ref().map_or("none", |step| step.kind()),
            "step": turn.step.map(|step| step.to_value()),
            "round": turn.round,
            "route": route,
            "fault": turn.fault,
        })))
    }

    fn outcome(&self) -> Vec<Event> {
        let agents = Agents {
            worker: self.workflow.worker_agent(),
            checker: self.workflow.checker_agent(),
            has_stage_action: self.workflow.stage_action().is_some(),
        };
        let [agent, status, result] = ["agent", "status", "result"].map(|name| self.argument(name));
        outcome_events(agent, status, result, &agents)
    }

    /// Records the events in order under one lock.
    fn record(&self, events: &[Event]) -> Result<Reply, UdfError> {
        let dir = self.needed_state_dir()?;
        let folder = open(self.ctx, &dir).map_err(domain)?;
        let mut place = FolderPlace::lock(self.ctx, &folder, self.workflow).map_err(domain)?;
        let mut unparks = false;
        for event in events {
            let Recorded { unparks: woke, .. } = Engine::new(self.workflow)
                .record(&dir, event, self.now(), &mut place)
                .map_err(engine)?;
            unparks |= woke;
        }
        let phase = place.work_state().map_err(domain)?.phase().word();
        Ok(Reply::value(&json!({"unparks": unparks, "phase": phase})))
    }

    fn end_gate(&self) -> Result<Reply, UdfError> {
        let word = self.argument("status");
        let status = match word {
            "" => EndStatus::Complete,
            word => EndStatus::from_word(word).ok_or_else(|| {
                UdfError::bad_parameter(format!("`status` is `{word}`; complete or abort"))
            })?,
        };
        let refusal = match self.state_dir()? {
            None => None,
            Some(dir) => {
                let folder = open(self.ctx, &dir).map_err(domain)?;
                let mut place =
                    FolderPlace::lock(self.ctx, &folder, self.workflow).map_err(domain)?;
                Engine::new(self.workflow).end_gate(status, &mut place).map_err(engine)?
            }
        };
        Ok(Reply::value(&json!({"allowed": refusal.is_none(), "refusal": refusal})))
    }

    fn boot(&self) -> Result<Reply, UdfError> {
        let running = self.request.arguments.get("running").and_then(Value::as_array);
        let running: Vec<&str> = running.into_iter().flatten().filter_map(Value::as_str).collect();
        let ghosts = self.workflow.on_boot(&running).map_err(domain)?;
        Ok(Reply::value(&json!({"ghosts": ghosts})))
    }

    /// Looks without a lock: every file is one moment's.
    fn state(&self) -> Result<Reply, UdfError> {
        let folder = place::look(self.ctx, &self.needed_state_dir()?)?;
        let class = self.workflow.state_class();
        let bytes = place::state_bytes(&folder, &class)?;
        let state = WorkState::load(bytes.as_deref(), &class).state;
        let ledger = folder.read_lossy(&ledger::path(self.workflow.ledger_key()))?;
        let ledger = ledger.unwrap_or_default();
        Ok(Reply::value(&json!({
            "phase": state.phase().word(),
            "state": state.digest(),
            "ledger": ledger,
            "outcomes": ledger::outcomes(&ledger),
        })))
    }

    fn journal(&self) -> Result<Reply, UdfError> {
        let limit = self.request.arguments.get("limit").and_then(Value::as_u64).unwrap_or(50);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let folder = place::look(self.ctx, &self.needed_state_dir()?)?;
        let text = folder.read_lossy(journal::PATH)?.unwrap_or_default();
        let mut lines = journal::read(text.as_bytes());
        lines.drain(..lines.len().saturating_sub(limit));
        Ok(Reply::value(&lines))
    }
}

fn domain(error: DomainError) -> UdfError {
    UdfError::raised(error.to_string())
}

fn engine(error: EngineError) -> UdfError {
    UdfError::raised(error.to_string())
}

#[cfg(test)]
mod tests;
