//! Routes of agent tasks: say something to one, start one, look at them. They work in every serving host; the tasks
//! themselves run where `--agent` or `agent serve` says so.

use std::sync::Arc;

use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::State;
use super::error::Failure;
use super::routes::{Incoming, data};
use crate::agent::provider::Absent;
use crate::agent::{AgentError, AgentLoop, NewTask, TasksError};
use crate::error::HostError;

/// Lines of journal and events in the answer about one task, if the query names no other number.
const LINES: usize = 20;
/// The most of them that may be asked for.
const MOST_LINES: usize = 1000;

/// What to say, and to whom. Without a task it is the request of a new one, which a client may name: sent again, it makes
/// no second one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Said {
    text: String,
    task: String,
    id: String,
    workflow: String,
    subject: String,
    project: String,
    actions: Vec<String>,
}

#[derive(Serialize)]
struct Taken {
    task: String,
    /// Whether it is a new task.
    started: bool,
    /// Whether this host runs it; otherwise another process does, or will.
    served_here: bool,
}

/// `POST /api/agent/message`: durable when the answer comes.
pub(super) async fn message(state: &State, incoming: Incoming<'_>) -> Result<Vec<u8>, Failure> {
    let said: Said = serde_json::from_slice(&incoming.body).map_err(|error| {
        HostError::BadRequest { message: format!("the body is no message: {error}") }
    })?;
    let is_new = said.task.is_empty();
    if said.text.trim().is_empty() {
        let needs = if is_new { AgentError::NoRequest } else { AgentError::NoWords };
        let message = format!("{needs}: `text` is missing or blank");
        return Err(HostError::BadRequest { message }.into());
    }
    let beside = [
        ("id", !said.id.is_empty()),
        ("workflow", !said.workflow.is_empty()),
        ("subject", !said.subject.is_empty()),
        ("project", !said.project.is_empty()),
        ("actions", !said.actions.is_empty()),
    ];
    if !is_new && let Some((name, _)) = beside.iter().find(|(_, given)| *given) {
        let message = format!("`{name}` is for a new task: leave it out, or leave out `task`");
        return Err(HostError::BadRequest { message }.into());
    }
    let (task, started) = blocking(state, move |agent| {
        if said.task.is_empty() {
            let is_known = !said.id.is_empty() && agent.tasks().read(&said.id)?.is_some();
            let task = agent.start(NewTask {
                id: said.id,
                request: said.text,
                workflow_id: said.workflow,
                project: said.project,
                subject: said.subject,
                actions: said.actions,
            })?;
            Ok((task, !is_known))
        } else {
            agent.post(&said.task, &said.text).map(|()| (said.task, false))
        }
    })
    .await?;
    let bell = &state.host.bell;
    bell.ring();
    data(&Taken { task, started, served_here: bell.is_attended() })
}

#[derive(Serialize)]
struct Row {
    task: String,
    project: String,
    workflow: String,
    status: crate::agent::Status,
    parked: Option<crate::agent::Parked>,
    turns: u64,
}

#[derive(Serialize)]
struct Rows {
    tasks: Vec<Row>,
    served_here: bool,
}

/// `GET /api/agent/tasks`: those that did not end.
pub(super) async fn tasks(state: &State, _: Incoming<'_>) -> Result<Vec<u8>, Failure> {
    let tasks = blocking(state, |agent| {
        let mut rows = Vec::new();
        for id in agent.tasks().ids()? {
            // One that is corrupt is named when it is asked for.
            if let Ok(Some(file)) = agent.tasks().read(&id)
                && !file.is_ended()
            {
                rows.push(Row {
                    task: file.id,
                    project: file.project,
                    workflow: file.workflow_id,
                    status: file.status,
                    parked: file.parked,
                    turns: file.turns,
                });
            }
        }
        Ok(rows)
    })
    .await?;
    data(&Rows { tasks, served_here: state.host.bell.is_attended() })
}

/// `GET /api/agent/tasks/{id}`: one task, its phase, its step, and what happened last.
pub(super) async fn task(state: &State, incoming: Incoming<'_>) -> Result<Vec<u8>, Failure> {
    let lines = match incoming.parameter("lines")? {
        None => LINES,
        Some(text) => text.parse().ok().filter(|lines| *lines <= MOST_LINES).ok_or_else(|| {
            let message = format!("`lines` is `{text}`, not a number up to {MOST_LINES}");
            HostError::BadRequest { message }
        })?,
    };
    let id = incoming.arguments.first().map(|id| id.clone().into_owned()).unwrap_or_default();
    data(&blocking(state, move |agent| agent.view(&id, lines)).await?)
}

async fn blocking<T: Send + 'static>(
    state: &State,
    job: impl FnOnce(&AgentLoop) -> Result<T, AgentError> + Send + 'static,
) -> Result<T, Failure> {
    let host = state.host.clone();
    let done =
        tokio::task::spawn_blocking(move || job(&AgentLoop::of_host(&host, Arc::new(Absent))));
    let done = done.await.map_err(|join| HostError::Internal {
        message: "the look at agent tasks ended without a result".to_owned(),
        detail: join.to_string(),
    })?;
    done.map_err(|error| match &error {
        AgentError::Tasks(TasksError::Unknown(_)) => {
            Failure::new(StatusCode::NOT_FOUND, error.to_string())
        }
        AgentError::Ended(_) => Failure::new(StatusCode::CONFLICT, error.to_string()),
        _ => HostError::from(error).into(),
    })
}
