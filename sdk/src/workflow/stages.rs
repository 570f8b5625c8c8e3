//! Stages only read state and choose a step (workflow-engine contract §3). The table of them is the
//! order of a turn; the first that answers wins.
//!
//! A stage writes in four cases only, each a durable mark that is saved before its step is returned:
//! `notify_step_issued`, `presentation_asked`, self-verification, and exhausted checks handed back.

use serde_json::{Map, Value};

use super::ledger::{self, LedgerEffect};
use super::recorders::Hook;
use super::state::{Unchecked, WorkState};
use super::step::{ANSWER_USER, ActionCall, BUDGET_GATE_ASK, PRESENTATION, Step};
use super::texts;
use super::workflow::{Answer, BootstrapMode, Subject, Task, TurnContext, Workflow};

/// The stages of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The task waits and nobody wrote.
    WaitForUser,
    /// Somebody wrote.
    AnswerUser,
    /// The model provider is down.
    InfraPause,
    /// Nothing was produced yet.
    Bootstrap,
    /// The budget is spent.
    BudgetGate,
    /// Something is to be produced or put right.
    WorkRound,
    /// Something is to be checked.
    Check,
    /// The result is to be handed over.
    Finish,
    /// No stage had anything to do.
    Idle,
}

impl Stage {
    /// The word in traces and journal.
    pub fn word(self) -> &'static str {
        match self {
            Self::WaitForUser => "wait_for_user",
            Self::AnswerUser => "answer_user",
            Self::InfraPause => "infra_pause",
            Self::Bootstrap => "bootstrap",
            Self::BudgetGate => "budget_gate",
            Self::WorkRound => "work_round",
            Self::Check => "check",
            Self::Finish => "finish",
            Self::Idle => "idle",
        }
    }
}

/// What a turn works on; only the state can change.
pub(super) struct Consultation<'a> {
    pub(super) workflow: &'a dyn Workflow,
    pub(super) subject: &'a Subject,
    pub(super) task: &'a Task,
    pub(super) state_dir: &'a str,
    pub(super) user_message: Option<&'a str>,
    pub(super) ledger: &'a str,
    pub(super) state: WorkState,
    /// A stage left a mark in the state.
    pub(super) marked: bool,
    pub(super) effects: Vec<LedgerEffect>,
    pub(super) hooks: Vec<Hook>,
}

/// `None`: not this stage's turn. `Some(None)`: the model has the turn.
type Choice = Option<Option<Step>>;
type StageFn = fn(&mut Consultation<'_>) -> Answer<Choice>;

const STAGES: [(Stage, StageFn); 8] = [
    (Stage::WaitForUser, wait_for_user),
    (Stage::AnswerUser, answer_user),
    (Stage::InfraPause, infra_pause),
    (Stage::Bootstrap, bootstrap),
    (Stage::BudgetGate, budget_gate),
    (Stage::WorkRound, work_round),
    (Stage::Check, check),
    (Stage::Finish, finish),
];

impl Consultation<'_> {
    pub(super) fn context(&self) -> TurnContext<'_> {
        TurnContext {
            subject: self.subject,
            task: self.task,
            state: &self.state,
            state_dir: self.state_dir,
            user_message: self.user_message,
            ledger: self.ledger,
        }
    }

    /// Asks the stages in order; when all are silent the task waits.
    pub(super) fn choose(&mut self) -> Answer<(Stage, Option<Step>)> {
        for (stage, ask) in STAGES {
            if let Some(step) = ask(self)? {
                return Ok((stage, step));
            }
        }
        Ok((Stage::Idle, Some(Step::Wait { label: self.label(Stage::Idle) })))
    }

    fn label(&self, stage: Stage) -> String {
        self.workflow.label(stage, &self.context())
    }

    fn spawn(&self, stage: Stage, agent: &str, query: String) -> Step {
        let mut parameters = Map::new();
        parameters.insert("agent_type".into(), agent.into());
        parameters.insert("query".into(), query.into());
        self.action(stage, "spawn_subagent", parameters)
    }

    fn action(&self, stage: Stage, name: &str, parameters: Map<String, Value>) -> Step {
        let call = ActionCall { action_name: name.to_owned(), parameters };
        Step::Actions { label: self.label(stage), actions: vec![call] }
    }

    fn spawn_worker(&self, stage: Stage) -> Answer<Step> {
        let brief = self.workflow.work_query(&self.context())?;
        let path = format!("{}/{}", self.state_dir, ledger::path(self.workflow.ledger_key()));
        let query = texts::work_query(&brief, &self.state, self.ledger, &path);
        Ok(self.spawn(stage, self.workflow.worker_agent(), query))
    }

    /// Work that is built needs its stage action only (decision O2), anything else a worker.
    fn work(&self, stage: Stage) -> Answer<Step> {
        match self.workflow.stage_action() {
            Some(action) if self.state.built => {
                Ok(self.action(stage, action, self.workflow.stage_params(&self.context())?))
            }
            _ => self.spawn_worker(stage),
        }
    }
}

fn wait_for_user(c: &mut Consultation<'_>) -> Answer<Choice> {
    let waits = c.task.waiting && c.user_message.is_none();
    Ok(waits.then(|| Some(Step::Wait { label: c.label(Stage::WaitForUser) })))
}

fn answer_user(c: &mut Consultation<'_>) -> Answer<Choice> {
    Ok(c.user_message.map(|message| {
        let prompt = c.workflow.answer_user_prompt(&c.context(), message);
        Some(question(ANSWER_USER, prompt, &["send_message"]))
    }))
}

fn infra_pause(c: &mut Consultation<'_>) -> Answer<Choice> {
    Ok(c.state.infra_blocked.then(|| Some(Step::Wait { label: c.label(Stage::InfraPause) })))
}

fn bootstrap(c: &mut Consultation<'_>) -> Answer<Choice> {
    if c.workflow.is_bootstrapped(&c.context())? {
        return Ok(None);
    }
    // First work that failed until the budget was spent ends as any other: nothing is begun before a person was asked
    // (contract §5).
    if c.state.awaiting_user_decision && !c.state.verified && !c.ledger.is_empty() {
        return Ok(None);
    }
    Ok(Some(match c.workflow.bootstrap_mode() {
        BootstrapMode::Model => None,
        BootstrapMode::Worker => Some(c.spawn_worker(Stage::Bootstrap)?),
    }))
}

fn budget_gate(c: &mut Consultation<'_>) -> Answer<Choice> {
    if c.state.verified || !c.state.awaiting_user_decision {
        return Ok(None);
    }
    let prompt = c.workflow.budget_gate_prompt(&c.context());
    Ok(Some(Some(question(BUDGET_GATE_ASK, prompt, &["send_message"]))))
}

fn work_round(c: &mut Consultation<'_>) -> Answer<Choice> {
    if c.state.verified || c.state.staged {
        return Ok(None);
    }
    c.work(Stage::WorkRound).map(|step| Some(Some(step)))
}

fn check(c: &mut Consultation<'_>) -> Answer<Choice> {
    if c.state.verified || !c.state.staged {
        return Ok(None);
    }
    let Some(checker) = c.workflow.checker_agent() else {
        c.state.verified = true;
        c.marked = true;
        c.effects.push(LedgerEffect::Settle("verified".to_owned()));
        c.hooks.push(Hook::Verified);
        return Ok(None);
    };
    if c.state.check_attempts >= c.workflow.check_attempt_budget() {
        c.state.exhaust_checks(Unchecked::Blocked);
        c.marked = true;
        return c.work(Stage::Check).map(|step| Some(Some(step)));
    }
    let brief = c.workflow.check_query(&c.context())?;
    let query = texts::check_query(&brief, &c.state);
    Ok(Some(Some(c.spawn(Stage::Check, checker, query))))
}

fn finish(c: &mut Consultation<'_>) -> Answer<Choice> {
    if !c.state.verified {
        return Ok(None);
    }
    if let Some(action) = c.workflow.notify_action()
        && !c.state.notify_step_issued
    {
        let parameters = c.workflow.notify_params(&c.context())?;
        c.state.notify_step_issued = true;
        c.marked = true;
        return Ok(Some(Some(c.action(Stage::Finish, action, parameters))));
    }
    if !c.state.presentation_asked {
        let prompt = c.workflow.presentation_prompt(&c.context());
        c.state.presentation_asked = true;
        c.marked = true;
        return Ok(Some(Some(question(PRESENTATION, prompt, &["send_message", "task_end"]))));
    }
    Ok(Some(Some(c.workflow.end_step(&c.context()))))
}

fn question(purpose: &str, prompt: String, allowed: &[&str]) -> Step {
    let allowed = allowed.iter().map(|name| (*name).to_owned()).collect();
    Step::Llm { purpose: purpose.to_owned(), prompt, allowed_actions: Some(allowed) }
}
