//! The questions a domain answers (workflow-engine contract §9). Everything else is the engine's.

use serde_json::{Map, Value};

use super::ledger;
use super::recorders::Rules;
use super::report::BROWSER_TOOL_MARKERS;
use super::stages::Stage;
use super::state::{StateClass, WorkState};
use super::step::{EndStatus, Step};
use super::tap::Route;
use super::texts;

/// What a domain says when it cannot answer; any error becomes one by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainError(String);

impl DomainError {
    /// An error with this message, a lower-case fragment.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl std::fmt::Display for DomainError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for DomainError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Answer of a domain.
pub type Answer<T> = Result<T, DomainError>;

/// The task a turn belongs to, as far as a workflow sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Id of the task.
    pub id: String,
    /// What was asked for.
    pub query: String,
    /// The task waits for a user.
    pub waiting: bool,
    /// Whatever else the loop knows of the task.
    pub data: Map<String, Value>,
}

impl Task {
    /// The task of a call that is no turn: about what the state directory is of, if one is given, else as the caller's
    /// own `task` (`id`, `subject`) says.
    pub fn of_call(state_dir: &str, task: &Value) -> Self {
        let text = |key: &str| task.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let subject = match state_dir.rsplit('/').next().unwrap_or_default() {
            "" => text("subject"),
            last => last.to_owned(),
        };
        let data = Map::from_iter([("subject".to_owned(), subject.into())]);
        Self { id: text("id"), data, ..Self::default() }
    }

    /// The name of what the work is about: `subject` of its data, else its own id; empty without either.
    pub fn subject_name(&self) -> &str {
        match self.data.get("subject").and_then(Value::as_str) {
            Some(name) if !name.is_empty() => name,
            _ => &self.id,
        }
    }
}

/// What the work is about: an app, a report, a booking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// Id, unique within the domain.
    pub id: String,
    /// Whatever the domain wants to have at hand in its answers.
    pub data: Map<String, Value>,
}

impl Subject {
    /// A subject without data.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), data: Map::new() }
    }
}

/// All that one turn's questions are about.
#[derive(Clone, Copy, Debug)]
pub struct TurnContext<'a> {
    /// What the work is about.
    pub subject: &'a Subject,
    /// The task that owns it.
    pub task: &'a Task,
    /// The state, loaded this turn.
    pub state: &'a WorkState,
    /// Where the subject's state lies.
    pub state_dir: &'a str,
    /// What the user said this turn; never empty.
    pub user_message: Option<&'a str>,
    /// Text of the ledger.
    pub ledger: &'a str,
}

/// Who does the first turn (decision O1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BootstrapMode {
    /// Code spawns the worker.
    #[default]
    Worker,
    /// The model sets things up in a turn of its own.
    Model,
}

/// A produce-and-verify domain. The required questions make a whole workflow; the others have answers.
pub trait Workflow {
    /// Id of the workflow: unique, not blank, the `workflow_id` of its tasks.
    fn name(&self) -> &str;

    /// Replaces the general system prompt; not blank.
    fn system_prompt(&self) -> &str;

    /// Agent type spawned to work.
    fn worker_agent(&self) -> &str;

    /// What the task is about; `None` while there is nothing to drive.
    ///
    /// # Errors
    /// Any: the turn is skipped and the error shown.
    fn resolve_subject(&self, task: &Task) -> Answer<Option<Subject>>;

    /// The directory that holds the subject's state, journal and ledger.
    fn state_dir(&self, subject: &Subject) -> String;

    /// False while the subject needs its first work: a worker is spawned, whatever the state says. Asked every turn:
    /// keep it cheap, and let it become true with what a worker leaves behind.
    ///
    /// # Errors
    /// Any: the turn is skipped and the error shown.
    fn is_bootstrapped(&self, ctx: &TurnContext<'_>) -> Answer<bool>;

    /// The brief of the worker. The engine adds blockers, check failures, leads and earlier attempts.
    ///
    /// # Errors
    /// Any: the turn is skipped and the error shown.
    fn work_query(&self, ctx: &TurnContext<'_>) -> Answer<String>;

    /// The brief of the checker. The engine adds what is covered already and the form of the report.
    ///
    /// # Errors
    /// Any: the turn is skipped and the error shown.
    fn check_query(&self, ctx: &TurnContext<'_>) -> Answer<String>;

    /// Agent type spawned to check; without one the staged result counts as verified.
    fn checker_agent(&self) -> Option<&str> {
        None
    }

    /// Name of the state file and its old keys.
    fn state_class(&self) -> StateClass {
        StateClass::WORK
    }

    /// Failed rounds before a person is asked.
    fn round_budget(&self) -> u32 {
        8
    }

    /// Checks without a verdict before the worker verifies the result itself.
    fn check_attempt_budget(&self) -> u32 {
        3
    }

    /// Lower-case phrases by which the checker names its own tools.
    fn tool_markers(&self) -> &[&str] {
        BROWSER_TOOL_MARKERS
    }

    /// File name of the ledger, without its ending.
    fn ledger_key(&self) -> &str {
        ledger::DEFAULT_KEY
    }

    /// Who does the first turn.
    fn bootstrap_mode(&self) -> BootstrapMode {
        BootstrapMode::Worker
    }

    /// Action that turns finished work into a staged result.
    fn stage_action(&self) -> Option<&str> {
        None
    }

    /// Parameters of the stage action.
    ///
    /// # Errors
    /// Any: the turn is skipped and the error shown.
    fn stage_params(&self, _ctx: &TurnContext<'_>) -> Answer<Map<String, Value>> {
        Ok(Map::new())
    }

    /// Action that tells others the result is ready.
    fn notify_action(&self) -> Option<&str> {
        None
    }

    /// Parameters of the notify action.
    ///
    /// # Errors
    /// Any: the turn is skipped and the error shown.
    fn notify_params(&self, _ctx: &TurnContext<'_>) -> Answer<Map<String, Value>> {
        Ok(Map::new())
    }

    /// Where outcomes of the spawned agents go; `None` for a domain that records them itself.
    fn spawn_context(&self, ctx: &TurnContext<'_>) -> Option<Route> {
        Some(Route { workflow: self.name().to_owned(), state_dir: ctx.state_dir.to_owned() })
    }

    /// Runs every turn, after the pending round is settled and saved, before the stages.
    fn on_turn(&self, _ctx: &TurnContext<'_>) {}

    /// Runs when the result was verified and that is saved.
    fn on_verified(&self, _state_dir: &str) {}

    /// Runs when the work failed and that is saved.
    fn on_work_failed(&self, _state_dir: &str, _step: &str) {}

    /// Runs when the check found defects and that is saved.
    fn on_check_failed(&self, _state_dir: &str) {}

    /// Runs when a task of this workflow came to its end, in whatever way: what runs on its behalf is to
    /// be ended. `status` is the word of the loop (`complete`, `abort`, `cancelled`). May run twice.
    ///
    /// # Errors
    /// Any: it is logged, the task stays ended.
    fn on_task_ended(&self, _task: &Task, _status: &str) -> Answer<()> {
        Ok(())
    }

    /// Runs when a host starts, before restored tasks go on. `running` are the ids of all tasks of this
    /// workflow that did not end; gives back those among them that are nobody's any more (contract §10,
    /// ghost guard). What runs for tasks that did end is to be ended here.
    ///
    /// # Errors
    /// Any: it is logged, and nobody is judged.
    fn on_boot(&self, _running: &[&str]) -> Answer<Vec<String>> {
        Ok(Vec::new())
    }

    /// Directive for the reply to a user message.
    fn answer_user_prompt(&self, ctx: &TurnContext<'_>, message: &str) -> String {
        texts::answer_user(&self.describe_subject(ctx), message, ctx.state.verified)
    }

    /// Directive for the message that asks a person for help.
    fn budget_gate_prompt(&self, ctx: &TurnContext<'_>) -> String {
        texts::budget_gate(
            &self.describe_subject(ctx),
            ctx.state,
            &self.budget_gate_tried_block(ctx),
        )
    }

    /// What of the ledger goes into that directive.
    fn budget_gate_tried_block(&self, ctx: &TurnContext<'_>) -> String {
        ledger::excerpt(ctx.ledger, ledger::EXCERPT_CHARS).text
    }

    /// Directive for handing over the result.
    fn presentation_prompt(&self, ctx: &TurnContext<'_>) -> String {
        texts::presentation(&self.describe_subject(ctx), &ctx.state.backlog)
    }

    /// A short phrase for the subject, as in `their app (Kanban)`.
    fn describe_subject(&self, _ctx: &TurnContext<'_>) -> String {
        "their request".to_owned()
    }

    /// The step that ends the task when the model presented and did not end it.
    fn end_step(&self, ctx: &TurnContext<'_>) -> Step {
        Step::End {
            status: EndStatus::Complete,
            reason: "The work is done and was verified.".to_owned(),
            summary: format!("Done and verified: {}.", self.describe_subject(ctx)),
            label: self.label(Stage::Finish, ctx),
        }
    }

    /// Reasoning shown beside what code decides in this stage.
    fn label(&self, stage: Stage, ctx: &TurnContext<'_>) -> String {
        let round = ctx.state.round();
        match stage {
            Stage::WaitForUser => "Waiting for the user.".to_owned(),
            Stage::InfraPause => {
                "Paused: the model provider cannot be reached. The work goes on with the next message.".to_owned()
            }
            Stage::Bootstrap | Stage::WorkRound => format!("Working on it ({round})."),
            Stage::Check => format!("Verifying the result ({round})."),
            Stage::Finish => "The result is verified.".to_owned(),
            Stage::AnswerUser | Stage::BudgetGate | Stage::Idle => String::new(),
        }
    }

    /// An extra block of the full prompt.
    fn task_state(&self, _task: &Task) -> String {
        String::new()
    }

    /// Replaces the text that explains the form of a decision.
    fn select_action_prompt(&self) -> Option<&str> {
        None
    }

    /// Whether the full prompt of a task carries memories.
    fn inject_memory(&self) -> bool {
        false
    }

    /// Whether the full prompt of a task carries skills.
    fn include_skills(&self) -> bool {
        false
    }

    /// Whether the full prompt of a task carries the essentials.
    fn inject_essentials(&self) -> bool {
        false
    }
}

impl<'a> Rules<'a> {
    /// What the recorders need to know of this workflow.
    pub fn of(workflow: &'a (dyn Workflow + 'a)) -> Self {
        Self {
            worker_agent: workflow.worker_agent(),
            has_stage_action: workflow.stage_action().is_some(),
            round_budget: workflow.round_budget(),
            check_attempt_budget: workflow.check_attempt_budget(),
            tool_markers: workflow.tool_markers(),
        }
    }
}
