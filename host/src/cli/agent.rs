//! `udf-host agent`: tasks that go on by themselves, run from a terminal.

mod look;
mod model;
mod run;
mod serve;
mod shown;

use std::sync::Arc;

use clap::{Args, Subcommand};

use self::model::Model;
use self::shown::Shown;
use super::{Exit, output, progress};
use crate::Host;
use crate::agent::provider::Absent;
use crate::agent::{AgentError, AgentLoop, Hooks, Status, Stop, TaskFile};
use crate::config::Config;
use crate::error::HostError;

const HELP: &str = "\
Exit codes:
  0  the task is done, or waits for somebody
  1  the task was given up or cancelled, or the script of a dry run ran out
  2  the command line, a setting or a parameter is wrong
  4  the machine said no: a port, a file, a permission";

/// Run tasks that go on by themselves: by a workflow, or by a model alone.
///
/// A task waits for people in the inbox (`udf-host inbox`): an answer wakes it at once where `agent serve` or `dev serve
/// --agent` runs, else at the next `agent resume`. Several of these may run over one state folder; a task runs in one of
/// them at a time. Killed at any moment, nothing is lost and nothing is carried out twice.
#[derive(Debug, Args)]
pub(super) struct Agent {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    Run(run::Run),
    Turn(run::Turn),
    Resume(run::Resume),
    Serve(serve::Serve),
    Say(look::Say),
    Tasks(look::Tasks),
    Show(look::Show),
    Cancel(look::Cancel),
}

impl Agent {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        match self.command {
            AgentCommand::Run(run) => run.run(config),
            AgentCommand::Turn(turn) => turn.run(config),
            AgentCommand::Resume(resume) => resume.run(config),
            AgentCommand::Serve(serve) => serve.run(config),
            AgentCommand::Say(say) => say.run(config),
            AgentCommand::Tasks(tasks) => tasks.run(config),
            AgentCommand::Show(show) => show.run(config),
            AgentCommand::Cancel(cancel) => cancel.run(config),
        }
    }
}

/// A loop that is only looked at, or written a message for: nothing is built for it.
fn idle(config: Config) -> Result<(Host, AgentLoop), HostError> {
    let host = Host::start(Config { no_build: true, ..config })?;
    let agent = AgentLoop::of_host(&host, Arc::new(Absent));
    Ok((host, agent))
}

/// A loop that can run tasks: everything is built, the model is connected. It shows what tasks do.
fn driver(config: Config, model: &Model, stop: Stop) -> Result<(Host, AgentLoop), HostError> {
    let provider = model.connect()?;
    let host = Host::start(config)?;
    progress::until_settled(&host);
    let mut hooks = Hooks::default();
    hooks.register(Arc::new(Shown));
    let agent = AgentLoop::of_host(&host, provider).with_hooks(hooks).with_stop(stop);
    Ok((host, agent))
}

fn document(agent: &AgentLoop, id: &str) -> Result<TaskFile, HostError> {
    let file = agent.tasks().read(id).map_err(AgentError::from)?;
    file.ok_or_else(|| HostError::BadRequest { message: format!("no agent task `{id}`") })
}

fn view(file: &TaskFile) -> serde_json::Value {
    serde_json::json!({
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

/// A dry run that needed more replies than its script has shows nothing of the task: it failed. What was wrong with the
/// script is said in any case.
fn unless_ran_out(agent: &AgentLoop, exit: Exit) -> Exit {
    if let Some(why) = agent.ran_out() {
        output::aside(&format!("udf-host: {why}"));
        return if exit == Exit::Done { Exit::Failed } else { exit };
    }
    for fault in agent.faults() {
        output::aside(&format!("udf-host: of the script, {fault}"));
    }
    exit
}

fn exit(file: &TaskFile) -> Exit {
    match file.status {
        Status::Running | Status::Complete => Exit::Done,
        Status::Abort | Status::Cancelled => Exit::Failed,
    }
}
