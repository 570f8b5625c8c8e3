//! `udf-host agent`: tasks that go on by themselves, run from a terminal.

mod model;
mod shown;

use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use self::model::Model;
use self::shown::Shown;
use super::{Exit, output, progress};
use crate::Host;
use crate::agent::provider::Scripted;
use crate::agent::{AgentLoop, Hooks, HostOperations, NewTask, Provider, Status, TaskFile, Turned};
use crate::config::Config;
use crate::error::HostError;

const HELP: &str = "\
Exit codes:
  0  the task is done, or waits for somebody
  1  the task was given up or cancelled
  2  the command line, a setting or a parameter is wrong
  4  the machine said no: a port, a file, a permission";

/// Run tasks that go on by themselves: by a workflow, or by a model alone.
#[derive(Debug, Args)]
pub(super) struct Agent {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    Run(Run),
    Resume(Resume),
    Say(Say),
    Tasks(Tasks),
}

/// Make a task and run it until it is done or waits for somebody.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
struct Run {
    /// What is asked for.
    #[arg(long, value_name = "TEXT")]
    request: String,
    /// The workflow that drives it; without one the model alone does.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// What the work is about, when it is a change of something that stands.
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// The project of the task and its cards.
    #[arg(long, default_value = "agent")]
    project: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: Model,
}

/// Go on with a task, or with every task that can go on: after a message, an answered card, a timer, or a crash.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
struct Resume {
    /// The task; without one all of them.
    #[arg(value_name = "TASK_ID")]
    id: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: Model,
}

/// Say something to a task; its next turn answers.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
struct Say {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    id: String,
    /// What to say.
    text: String,
}

/// List the tasks that are not done, and what each waits for.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
struct Tasks {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Agent {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        match self.command {
            AgentCommand::Run(run) => run.run(config),
            AgentCommand::Resume(resume) => resume.run(config),
            AgentCommand::Say(say) => {
                let (_host, agent) = idle(config)?;
                agent.post(&say.id, &say.text)?;
                output::line(&format!(
                    "{} will answer at its next turn: udf-host agent resume {}",
                    say.id, say.id
                ))?;
                Ok(Exit::Done)
            }
            AgentCommand::Tasks(tasks) => tasks.run(config),
        }
    }
}

impl Run {
    fn run(self, config: Config) -> Result<Exit, HostError> {
        let agent = driver(config, &self.model)?;
        let new = NewTask {
            request: self.request,
            workflow_id: self.workflow.unwrap_or_default(),
            project: self.project,
            subject: self.subject.unwrap_or_default(),
        };
        let id = agent.start(new)?;
        agent.adopt(&id)?;
        agent.run(&id)?;
        let file = document(&agent, &id)?;
        if self.json {
            output::json(&view(&file))?
        } else {
            print(&file)?
        }
        Ok(exit(&file))
    }
}

impl Resume {
    fn run(self, config: Config) -> Result<Exit, HostError> {
        let agent = driver(config, &self.model)?;
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
        Ok(files.iter().map(exit).find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done))
    }
}

impl Tasks {
    fn run(self, config: Config) -> Result<Exit, HostError> {
        let (_host, agent) = idle(config)?;
        let mut files = Vec::new();
        for id in agent.tasks().ids().map_err(crate::agent::AgentError::from)? {
            match agent.tasks().read(&id) {
                Ok(Some(file)) if !file.is_ended() => files.push(file),
                Ok(_) => {}
                Err(error) => output::error(&error.to_string()),
            }
        }
        if self.json {
            output::json(&files.iter().map(view).collect::<Vec<_>>())?;
        } else {
            let rows: Vec<Vec<String>> = files
                .iter()
                .map(|file| {
                    let workflow =
                        if file.workflow_id.is_empty() { "-" } else { &file.workflow_id };
                    vec![file.id.clone(), workflow.to_owned(), standing(file)]
                })
                .collect();
            output::table(&rows)?;
        }
        Ok(Exit::Done)
    }
}

/// A loop that is only looked at, or written a message for: nothing is built for it.
fn idle(config: Config) -> Result<(Host, AgentLoop), HostError> {
    let host = Host::start(Config { no_build: true, ..config })?;
    let scripted = Scripted::parse("-")
        .map_err(|message| HostError::Config { place: "the script".to_owned(), message })?;
    let agent = agent_loop(&host, Arc::new(scripted));
    Ok((host, agent))
}

/// A loop that can run tasks: everything is built, the model is connected.
fn driver(config: Config, model: &Model) -> Result<AgentLoop, HostError> {
    let provider = model.connect()?;
    let host = Host::start(config)?;
    progress::until_settled(&host);
    let mut hooks = Hooks::default();
    hooks.register(Arc::new(Shown));
    Ok(agent_loop(&host, provider).with_hooks(hooks))
}

fn agent_loop(host: &Host, provider: Arc<dyn Provider>) -> AgentLoop {
    let app_dir = host.dispatcher.app_dir(None);
    let operations =
        HostOperations::new(Arc::clone(&host.dispatcher), Some(app_dir.display().to_string()));
    AgentLoop::new(Arc::new(operations), provider, host.store.clone(), app_dir)
}

fn document(agent: &AgentLoop, id: &str) -> Result<TaskFile, HostError> {
    let file = agent.tasks().read(id).map_err(crate::agent::AgentError::from)?;
    file.ok_or_else(|| HostError::BadRequest { message: format!("no agent task `{id}`") })
}

fn view(file: &TaskFile) -> serde_json::Value {
    json!({
        "task": file.id,
        "workflow": file.workflow_id,
        "subject": file.subject,
        "status": file.status,
        "parked": file.parked,
        "turns": file.turns,
        "ended": file.ended,
    })
}

fn standing(file: &TaskFile) -> String {
    match (&file.parked, file.status) {
        (_, Status::Complete) => "done".to_owned(),
        (_, Status::Abort) => "given up".to_owned(),
        (_, Status::Cancelled) => "cancelled".to_owned(),
        (None, Status::Running) => "can go on".to_owned(),
        (Some(parked), Status::Running) => match &parked.card {
            Some(card) => format!("waits for the answer to {card}: {}", parked.note),
            None => format!("waits: {}", parked.note),
        },
    }
}

fn print(file: &TaskFile) -> Result<(), HostError> {
    output::line(&format!("{}: {}", file.id, standing(file)))?;
    match &file.ended {
        Some(ending) if !ending.summary.is_empty() => output::line(&ending.summary),
        _ => Ok(()),
    }
}

fn exit(file: &TaskFile) -> Exit {
    match file.status {
        Status::Running | Status::Complete => Exit::Done,
        Status::Abort | Status::Cancelled => Exit::Failed,
    }
}
