//! `agent run`, `agent turn` and `agent resume`: drive tasks from here, to where they wait or end.

use clap::Args;

use super::{Exit, HELP, Model, document, driver, exit, output, print, unless_ran_out, view};
use crate::agent::{AgentError, AgentLoop, NewTask, Stop, Turned};
use crate::config::Config;
use crate::error::HostError;

/// Which task, and what it is if it is a new one.
#[derive(Debug, Args)]
struct Which {
    /// A task of the task store, or one that was run before; without one a new task is made.
    #[arg(value_name = "TASK_ID")]
    id: Option<String>,
    /// What is asked for; of a task of the store it is its description.
    #[arg(long, value_name = "TEXT")]
    request: Option<String>,
    /// The workflow that drives it; without one the model alone does.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// What the work is about, when it is a change of something that stands.
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// The project of the task and its cards [default: that of the stored task, else `agent`]
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// An operation that it may use, and no other ones [repeatable]
    #[arg(long = "action", value_name = "ADDRESS")]
    actions: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: Model,
}

/// Run a task until it is done or waits for somebody: a new one, one of the task store, or one that is under way.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Run {
    #[command(flatten)]
    which: Which,
}

/// Let a task take one turn.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Turn {
    #[command(flatten)]
    which: Which,
}

/// Go on with a task, or with every task that can go on: after a message, an answered card, a timer, or a crash.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Resume {
    /// The task; without one all of them.
    #[arg(value_name = "TASK_ID")]
    id: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: Model,
}

impl Run {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        self.which.drive(config, AgentLoop::run)
    }
}

impl Turn {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        self.which.drive(config, AgentLoop::turn)
    }
}

impl Which {
    fn drive(
        self,
        config: Config,
        how: impl Fn(&AgentLoop, &str) -> Result<Turned, AgentError>,
    ) -> Result<Exit, HostError> {
        if self.id.is_none() && self.request.is_none() {
            let message = "which task? Give its TASK_ID, or make a new one with `--request TEXT`";
            return Err(HostError::BadRequest { message: message.to_owned() });
        }
        let (_host, agent) = driver(config, &self.model, Stop::default())?;
        let json = self.json;
        let id = self.task(&agent)?;
        how(&agent, &id)?;
        let file = document(&agent, &id)?;
        if json {
            output::json(&view(&file))?;
        } else {
            print(&file)?;
        }
        Ok(unless_ran_out(&agent, exit(&file)))
    }

    /// The id of the task that is meant; it is made if need be.
    fn task(self, agent: &AgentLoop) -> Result<String, HostError> {
        let bad = |message: String| HostError::BadRequest { message };
        let mut new = NewTask {
            id: self.id.unwrap_or_default(),
            request: self.request.unwrap_or_default(),
            workflow_id: self.workflow.unwrap_or_default(),
            project: self.project.unwrap_or_default(),
            subject: self.subject.unwrap_or_default(),
            actions: self.actions,
        };
        if new.id.is_empty() {
            return Ok(agent.start(new)?);
        }
        if let Some(file) = agent.tasks().read(&new.id).map_err(AgentError::from)? {
            if !new.workflow_id.is_empty() && new.workflow_id != file.workflow_id {
                let of =
                    if file.workflow_id.is_empty() { "no workflow" } else { &file.workflow_id };
                return Err(bad(format!("task `{}` runs already, with {of}", new.id)));
            }
            return Ok(new.id);
        }
        let stored = agent.stored(&new.id)?;
        if let Some(stored) = stored {
            if new.request.is_empty() {
                new.request = stored.request;
            }
            if new.project.is_empty() {
                new.project = stored.project;
            }
        } else if new.request.is_empty() {
            return Err(bad(format!(
                "there is no task `{}`: create it with task-management.create, or say what is asked for with `--request`",
                new.id
            )));
        }
        Ok(agent.start(new)?)
    }
}

impl Resume {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let (_host, agent) = driver(config, &self.model, Stop::default())?;
        let restored = agent.restore()?;
        let ids: Vec<String> = match self.id {
            Some(id) => vec![id],
            None => {
                restored.into_iter().filter(|task| !task.ghost).map(|task| task.file.id).collect()
            }
        };
        let mut files = Vec::new();
        for id in &ids {
            match agent.run(id) {
                Ok(Turned::Again | Turned::Parked(_) | Turned::Ended(_)) => {}
                // The others must not wait for one that another process drives.
                Err(error) if ids.len() > 1 => output::error(&error.to_string()),
                Err(error) => return Err(error.into()),
            }
            files.push(document(&agent, id)?);
        }
        if self.json {
            output::json(&files.iter().map(view).collect::<Vec<_>>())?;
        } else {
            files.iter().try_for_each(print)?;
        }
        let worst = files.iter().map(exit).find(|exit| *exit != Exit::Done);
        Ok(unless_ran_out(&agent, worst.unwrap_or(Exit::Done)))
    }
}
