//! Commands that need no model: look at tasks, write to them, take them back.

use clap::Args;

use super::{Exit, HELP, document, idle, output, print, standing, view};
use crate::agent::AgentError;
use crate::config::Config;
use crate::error::HostError;

/// Lines of journal and events that `agent show` prints.
const LINES: usize = 20;

/// Say something to a task; its next turn answers.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Say {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    id: String,
    /// What to say.
    text: String,
}

/// List the tasks that are not done, and what each waits for.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Tasks {
    /// Those that ended as well.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Show one task: phase, step, and what happened last.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Show {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    id: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// End a task, wherever it runs.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Cancel {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    id: String,
}

impl Say {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let (_host, agent) = idle(config)?;
        agent.post(&self.id, &self.text)?;
        output::line(&format!(
            "{} will answer at its next turn; where nothing serves it: udf-host agent resume {}",
            self.id, self.id
        ))?;
        Ok(Exit::Done)
    }
}

impl Tasks {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let (_host, agent) = idle(config)?;
        let mut files = Vec::new();
        let mut ids = agent.tasks().ids().map_err(AgentError::from)?;
        if self.all {
            ids.extend(agent.tasks().ended_ids().map_err(AgentError::from)?);
        }
        for id in ids {
            match agent.tasks().read(&id) {
                Ok(Some(file)) if self.all || !file.is_ended() => files.push(file),
                Ok(_) => {}
                Err(error) => output::error(&error.to_string()),
            }
        }
        if self.json {
            output::json(&files.iter().map(view).collect::<Vec<_>>())?;
            return Ok(Exit::Done);
        }
        if files.is_empty() {
            output::line(if self.all { "no tasks" } else { "no tasks that are not done" })?;
        }
        let rows: Vec<Vec<String>> = files
            .iter()
            .map(|file| {
                let workflow = if file.workflow_id.is_empty() { "-" } else { &file.workflow_id };
                vec![file.id.clone(), workflow.to_owned(), standing(file)]
            })
            .collect();
        output::table(&rows)?;
        Ok(Exit::Done)
    }
}

impl Show {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let (_host, agent) = idle(config)?;
        let view = agent.view(&self.id, LINES)?;
        if self.json {
            output::json(&view)?;
            return Ok(Exit::Done);
        }
        print(&document(&agent, &self.id)?)?;
        let step = view.step.map(|step| format!(", {} of round {}", step.stage, step.round));
        output::line(&format!("{}{}", view.phase, step.unwrap_or_default()))?;
        for event in &view.events {
            output::line(&event.line(200))?;
        }
        Ok(Exit::Done)
    }
}

impl Cancel {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let (_host, agent) = idle(config)?;
        document(&agent, &self.id)?;
        let done = agent.cancel(&self.id)?;
        output::line(&match done {
            true => format!("{} is ended", self.id),
            false => format!("{} ends as soon as its turn is over", self.id),
        })?;
        Ok(Exit::Done)
    }
}
