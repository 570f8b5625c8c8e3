//! [`TaskTurn`]: decides one turn of a task (workflow-engine contract §11). It carries nothing out: the loop does.

use sdk::workflow::bounds::{Availability, Batch, candidates, task_batch};
use sdk::workflow::decision::{Decision, Driver};
use sdk::workflow::{Route, Step, texts};
use serde_json::Value;

use super::act;
use super::agent_type::AgentType;
use super::decide::{Ask, Undecided, decide};
use super::operations::{CallError, Operations, WorkflowPlace};
use super::prompt::{self, TaskPrompt};
use super::provider::Provider;
use super::tasks::OpenTask;
use super::tools::{self, SPAWN_SUBAGENT, SUB_TASK_END, Tools};
use super::workflow::{Chosen, Description, WorkflowClient};
use crate::plugins::Address;

/// Decision phases of one turn, each of several attempts.
const PHASES: u32 = 3;

/// What a turn decided.
#[derive(Debug)]
pub(super) struct Decided {
    /// What is to be carried out, in order.
    pub(super) batch: Batch,
    /// Whether code decided it; only then outcomes are recorded.
    pub(super) by_code: bool,
    /// Where the subject's outcomes go.
    pub(super) route: Option<Route>,
    /// The workflow, if the task has one.
    pub(super) workflow: Option<(WorkflowPlace, Description)>,
    /// Whether the workflow found a subject.
    pub(super) has_subject: bool,
    /// Stage of the workflow that chose; empty without one.
    pub(super) stage: String,
    /// Whether everything of the batch only reads, so that it can run at the same time.
    pub(super) side_by_side: bool,
}

/// Why a turn decided nothing.
#[derive(Debug)]
pub(super) enum TurnError {
    /// The provider fails for good.
    Provider(String),
    /// The workflow of the task is not there.
    NoWorkflow(String),
    /// The workflow could not answer, or no decision came of the model.
    Failed(String),
}

/// One turn of a task.
pub(super) struct TaskTurn<'a> {
    pub(super) operations: &'a dyn Operations,
    pub(super) provider: &'a dyn Provider,
    pub(super) task: &'a mut OpenTask,
    /// Operations that a task without a workflow may use besides its own.
    pub(super) conversation: Vec<String>,
}

impl TaskTurn<'_> {
    /// Consults the workflow, and the model if the workflow leaves it something.
    pub(super) fn decide(mut self) -> Result<Decided, TurnError> {
        let id = self.task.file.workflow_id.clone();
        if id.is_empty() {
            let (batch, side_by_side) = self.ask(None, None)?;
            return Ok(Decided {
                batch,
                by_code: false,
                route: None,
                workflow: None,
                has_subject: false,
                stage: String::new(),
                side_by_side,
            });
        }
        let place = self
            .operations
            .workflow(&id)
            .ok_or_else(|| TurnError::NoWorkflow(texts::unknown_workflow(&id)))?;
        let failed = |error: CallError| TurnError::Failed(error.to_string());
        let client = WorkflowClient::new(self.operations, &place);
        let description = client.describe().map_err(failed)?;
        if self.task.file.turns == 1 && description.checker_agent.is_none() {
            tracing::warn!(target: "udf_host::agent", task = %self.task.file.id, workflow = %place.address, "it has no checker: what its worker makes counts as verified");
        }
        let message = self.task.file.message.as_ref().map(|taken| taken.text.clone());
        let chosen =
            client.step(&self.task.file.to_workflow(), message.as_deref()).map_err(failed)?;
        let Chosen { step, route, has_subject, stage } = chosen;
        let mut by_code = None;
        if let Some(decisions) = step.as_ref().and_then(Step::decisions) {
            let batch = task_batch(decisions, None, |name| {
                if description.is_own_action(name) {
                    Availability::Ready
                } else {
                    self.exists(name)
                }
            });
            self.agents(&place, &batch).map_err(TurnError::Failed)?;
            // Nothing of it can run: the model has the turn (contract §2).
            if batch.chosen.iter().any(|chosen| chosen.error.is_none()) {
                by_code = Some(batch);
            }
        }
        let by_model = by_code.is_none();
        let (batch, side_by_side) = match by_code {
            Some(batch) => (batch, false),
            None => {
                let step = step.filter(|step| matches!(step, Step::Llm { .. }));
                self.ask(step.as_ref(), Some((&client, &description)))?
            }
        };
        let workflow = Some((place, description));
        Ok(Decided { batch, by_code: !by_model, route, workflow, has_subject, stage, side_by_side })
    }

    /// Whether the agents that code spawns can be run. One that cannot is a fault of the workflow, not of the work: no
    /// outcome is recorded and no round is spent (decision O9).
    fn agents(&self, place: &WorkflowPlace, batch: &Batch) -> Result<(), String> {
        let spawns = batch.chosen.iter().map(|chosen| &chosen.decision);
        for spawn in spawns.filter(|decision| decision.action_name == SPAWN_SUBAGENT) {
            let kind = act::text(&spawn.parameters, "agent_type");
            AgentType::usable(&place.folder, &kind, self.operations, true)?;
        }
        Ok(())
    }

    /// Whether an action that code chose can run: any operation that is there, and what is built in.
    fn exists(&self, name: &str) -> Availability {
        let is_there = match Address::parse(name) {
            Some(address) => self.operations.tool(&address).is_some(),
            None => name.is_empty() || Tools::is_built_in(name),
        };
        if is_there && name != SUB_TASK_END { Availability::Ready } else { Availability::Unknown }
    }

    fn ask(
        &mut self,
        step: Option<&Step>,
        workflow: Option<(&WorkflowClient<'_>, &Description)>,
    ) -> Result<(Batch, bool), TurnError> {
        let mut compiled = self.task.file.actions.clone();
        if !compiled.is_empty() && workflow.is_none() {
            compiled.append(&mut self.conversation);
        }
        let tools = Tools::of_task(self.operations, &compiled);
        let (directive, allowed) = match step {
            Some(Step::Llm { prompt, allowed_actions, .. }) => {
                (Some(prompt.as_str()), allowed_actions.as_deref())
            }
            _ => (None, None),
        };
        let names: Vec<&str> = tools.names().collect();
        let Some(offered) = candidates(allowed, &names) else {
            return Err(TurnError::Failed(
                "the step allows only actions that this host does not have".to_owned(),
            ));
        };
        let bound = allowed.map(|_| offered.as_slice());
        let mut phase = 1;
        let decisions = loop {
            match self.decide_once(&tools, bound, directive, workflow) {
                Ok(decisions) => break decisions,
                Err(Undecided::Fatal(error)) => return Err(TurnError::Provider(error.to_string())),
                // Replies that cannot be read get more phases; a provider that is away does not.
                Err(Undecided::Exhausted { by_provider: false, .. }) if phase < PHASES => {
                    phase += 1
                }
                Err(error) => return Err(TurnError::Failed(error.to_string())),
            }
        };
        let batch = task_batch(decisions, step, |name| tools.availability(name));
        if let Some(reply) = self.task.session.messages.last() {
            for chosen in &batch.chosen {
                let Some(error) = &chosen.error else { continue };
                let known = tools::known(&chosen.decision.action_name, tools.names());
                let why = format!("is of no use: {error}; there are {known}");
                self.provider.unusable(&reply.text, &why);
            }
        }
        let reads = |chosen: &sdk::workflow::bounds::Chosen| {
            chosen.error.is_none() && tools.is_read(&chosen.decision.action_name)
        };
        let side_by_side = batch.chosen.len() > 1 && batch.chosen.iter().all(reads);
        Ok((batch, side_by_side))
    }

    fn decide_once(
        &mut self,
        tools: &Tools,
        bound: Option<&[&str]>,
        directive: Option<&str>,
        workflow: Option<(&WorkflowClient<'_>, &Description)>,
    ) -> Result<Vec<Decision>, Undecided> {
        let OpenTask { file, session, stream, .. } = &mut *self.task;
        let task: Value = file.to_workflow();
        let actions = tools.text(bound);
        let system =
            workflow.map_or(prompt::SYSTEM, |(_, description)| description.system_prompt.as_str());
        let full = || {
            let state = workflow.map(|(client, _)| client.task_state(&task));
            TaskPrompt {
                id: &file.id,
                query: &file.query,
                task_state: &state.and_then(Result::ok).unwrap_or_default(),
                events: &stream.text(0),
                actions: &actions,
                directive,
                form: workflow.and_then(|(_, d)| d.select_action_prompt.as_deref()),
            }
            .full()
        };
        let ask = Ask {
            system,
            driver: Driver::Task,
            tail: stream.tail(),
            full: &full,
            delta: &|from| prompt::delta(&stream.text(from), bound.map(|_| actions.as_str())),
            directive,
        };
        decide(self.provider, session, &ask)
    }
}
