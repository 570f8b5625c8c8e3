//! [`Act`]: carries out what a turn of a task decided, in order, each action at most once.

use std::time::Duration;

use sdk::workflow::bounds::{Chosen, DropReason};
use serde_json::{Map, Value, json};

use super::agent_loop::{AgentError, AgentLoop, NewTask};
use super::agent_type::{AgentType, Place};
use super::human::evidence;
use super::operations::texts;
use super::sub_agent::{SubAgentRunner, shown};
use super::task_file::{Ending, Status, Why};
use super::task_turn::Decided;
use super::tasks::OpenTask;
use super::tools::{SEND_MESSAGE, SPAWN_SUBAGENT, TASK_END, TASK_START, WAIT};
use super::workflow::WorkflowClient;
use crate::plugins::Address;

/// Carries out one turn's decisions.
pub(super) struct Act<'a> {
    pub(super) agent: &'a AgentLoop,
    pub(super) task: &'a mut OpenTask,
    pub(super) decided: &'a Decided,
}

/// What the model reads of an action.
type Told = Result<String, String>;

impl Act<'_> {
    pub(super) fn carry_out(mut self) -> Result<(), AgentError> {
        let decided = self.decided;
        let chosen = &decided.batch.chosen;
        let reasoning = chosen.first().map(|first| first.decision.reasoning.clone());
        let waits_by_code =
            decided.by_code && chosen.iter().all(|c| c.decision.action_name.is_empty());
        if !waits_by_code {
            self.note("reasoning", "", &reasoning.unwrap_or_default())?;
        }
        for dropped in &decided.batch.dropped {
            let why = match dropped.reason {
                DropReason::NotAllowed => "not allowed in this turn",
                DropReason::OverCap => "more actions than a turn takes",
                DropReason::EndWhileWaiting => "the task cannot end while it waits for an answer",
            };
            self.note("dropped", &dropped.action_name, why)?;
        }
        for Chosen { decision, error } in chosen {
            let name = decision.action_name.as_str();
            if name.is_empty() {
                let agent = self.agent;
                let (note, wait) = (decision.reasoning.clone(), agent.limits.long_stop);
                // A card that is asked stays the one that is waited for.
                let card = self.task.file.parked.take().and_then(|parked| parked.card);
                agent.park(self.task, Why::User, note, card, wait);
                continue;
            }
            let parameters = Value::Object(decision.parameters.clone()).to_string();
            self.note("action_start", name, &parameters)?;
            if let Some(error) = error {
                self.note("action_end", name, &format!("error: {error}"))?;
                continue;
            }
            self.task.file.running = Some(name.to_owned());
            self.task.save()?;
            self.agent.hooks.tell(|listener| {
                listener.action_start(&self.task.file, name, &decision.parameters)
            });
            let text = match self.one(name, &decision.parameters) {
                Ok(text) => text,
                Err(error) => format!("error: {error}"),
            };
            self.note("action_end", name, &text)?;
            self.agent.hooks.tell(|listener| listener.action_end(&self.task.file, name, &text));
            self.task.file.running = None;
            self.task.save()?;
            if self.task.file.is_ended() {
                break;
            }
        }
        Ok(())
    }

    fn note(&mut self, kind: &str, action: &str, text: &str) -> Result<(), AgentError> {
        self.agent.note(self.task, kind, action, text)
    }

    fn one(&mut self, name: &str, parameters: &Map<String, Value>) -> Told {
        match name {
            SEND_MESSAGE => self.send_message(parameters),
            TASK_START => self.task_start(parameters),
            TASK_END => self.task_end(parameters),
            SPAWN_SUBAGENT => self.spawn(parameters),
            WAIT => {
                let seconds = match parameters.get("seconds") {
                    Some(Value::String(text)) => text.trim().parse().ok(),
                    Some(value) => value.as_u64(),
                    None => Some(60),
                };
                let seconds = seconds.ok_or("`seconds` is not a whole number")?;
                let wait = Duration::from_secs(seconds).min(self.agent.limits.long_stop);
                self.agent.park(self.task, Why::Timer, "Pausing.".to_owned(), None, wait);
                Ok(format!("going on in {} s", wait.as_secs()))
            }
            operation => self.operation(operation, parameters),
        }
    }

    fn send_message(&mut self, parameters: &Map<String, Value>) -> Told {
        let message = text(parameters, "message");
        if message.trim().is_empty() {
            return Err("`message` is empty".to_owned());
        }
        let waits = match parameters.get("wait_for_user_reply") {
            Some(Value::Bool(waits)) => *waits,
            Some(Value::String(waits)) => waits.trim().eq_ignore_ascii_case("true"),
            _ => false,
        };
        let agent = self.agent;
        if !waits {
            agent.human().say(&self.task.file.id, &message).map_err(|error| error.to_string())?;
            return Ok("sent".to_owned());
        }
        let payload = self.payload(&message);
        let file = &self.task.file;
        let key = format!("{}-turn-{}", file.id, file.turns);
        let card = agent
            .human()
            .ask(&file.project, &file.id, &key, &message, &payload)
            .map_err(|error| error.to_string())?;
        agent.park(self.task, Why::User, message, Some(card.clone()), agent.limits.long_stop);
        Ok(format!("asked as {card}; the task waits for the answer"))
    }

    /// What a question shows: of stuck work also what was tried, and whether failures shrink.
    fn payload(&self, message: &str) -> Value {
        let plain = json!({"message": message});
        let Some((place, _)) = &self.decided.workflow else { return plain };
        let client = WorkflowClient::new(&*self.agent.operations, place);
        let task = self.task.file.to_workflow();
        match (client.state(&task), client.journal(&task, 500)) {
            (Ok(state), Ok(journal)) => evidence(message, &state, &journal),
            _ => plain,
        }
    }

    fn task_start(&mut self, parameters: &Map<String, Value>) -> Told {
        let new = NewTask {
            request: text(parameters, "request"),
            workflow_id: text(parameters, "workflow"),
            project: self.task.file.project.clone(),
            subject: String::new(),
        };
        let id = self.agent.start(new).map_err(|error| error.to_string())?;
        Ok(format!("started as {id}"))
    }

    fn task_end(&mut self, parameters: &Map<String, Value>) -> Told {
        let agent = self.agent;
        let status = match text(parameters, "status").as_str() {
            "" | "complete" => Status::Complete,
            "abort" => Status::Abort,
            other => return Err(format!("`status` is `{other}`; complete or abort")),
        };
        if status == Status::Complete {
            if let Some((place, _)) = &self.decided.workflow {
                let client = WorkflowClient::new(&*agent.operations, place);
                let gate = client.end_gate(&self.task.file.to_workflow());
                // A gate that cannot be read is closed: the state may well be unverified.
                if let Some(refusal) = gate.map_err(|error| error.to_string())? {
                    return Err(format!("refused: {refusal}"));
                }
            }
            if let Some(refusal) = agent.hooks.refusal(&self.task.file) {
                return Err(format!("refused: {refusal}"));
            }
        }
        let file = &mut self.task.file;
        file.status = status;
        file.parked = None;
        file.ended = Some(Ending {
            reason: text(parameters, "reason"),
            summary: text(parameters, "summary"),
        });
        agent.store_status(file);
        Ok("ended".to_owned())
    }

    fn spawn(&mut self, parameters: &Map<String, Value>) -> Told {
        let (agent_type, query) = (text(parameters, "agent_type"), text(parameters, "query"));
        let Some((workflow, _)) = &self.decided.workflow else {
            return Err("agents belong to workflows, and this task has none".to_owned());
        };
        let route = self.decided.route.as_ref();
        let place = Place {
            state_dir: route.map(|route| route.state_dir.clone()).unwrap_or_default(),
            task_id: self.task.file.id.clone(),
            workflow_id: self.task.file.workflow_id.clone(),
        };
        // A type that cannot be read is the end of its agent: the recorders count it like any other failure.
        let outcome = match AgentType::read(&workflow.folder, &agent_type) {
            Ok(kind) => SubAgentRunner {
                provider: &*self.agent.provider,
                operations: &*self.agent.operations,
                kind: &kind,
                place: &place,
            }
            .run(&query),
            Err(message) => super::sub_agent::SubOutcome {
                status: super::sub_agent::SubStatus::Error,
                result: message,
            },
        };
        let status = outcome.status.word();
        // Only what a workflow step spawned is recorded (decision O8).
        if let Some(route) = route.filter(|_| self.decided.by_code) {
            let client = WorkflowClient::new(&*self.agent.operations, workflow);
            let ended = json!({"agent": agent_type, "status": status, "result": outcome.result});
            client
                .record("record_outcome", &route.state_dir, &ended)
                .map_err(|error| format!("{status}, but the outcome was not recorded: {error}"))?;
        }
        Ok(format!("{status}: {}", shown(&Value::String(outcome.result))))
    }

    fn operation(&mut self, name: &str, parameters: &Map<String, Value>) -> Told {
        let own = self.decided.workflow.as_ref().filter(|_| self.decided.by_code);
        let answer = match own.filter(|(_, description)| description.is_own_action(name)) {
            Some((workflow, _)) => {
                let state_dir = self.decided.route.as_ref().map_or("", |route| &route.state_dir);
                let (task, parameters) =
                    (self.task.file.to_workflow(), Value::Object(parameters.clone()));
                WorkflowClient::new(&*self.agent.operations, workflow).own_action(
                    name,
                    &task,
                    state_dir,
                    &parameters,
                )
            }
            None => {
                let address =
                    Address::parse(name).ok_or_else(|| format!("there is no action `{name}`"))?;
                self.agent.operations.call(&address, texts(parameters))
            }
        };
        self.record_stage(name, &answer)?;
        answer.map(|answer| shown(&answer)).map_err(|error| error.to_string())
    }

    /// The result of the stage action is the work outcome.
    fn record_stage(
        &self,
        name: &str,
        answer: &Result<Value, super::operations::CallError>,
    ) -> Result<(), String> {
        let Some((workflow, description)) = &self.decided.workflow else { return Ok(()) };
        let is_stage = self.decided.by_code && description.stage_action.as_deref() == Some(name);
        let Some(route) = self.decided.route.as_ref().filter(|_| is_stage) else { return Ok(()) };
        let result = match answer {
            Ok(answer) => answer.clone(),
            Err(error) => json!({"status": "error", "step": name, "errors": [error.to_string()]}),
        };
        WorkflowClient::new(&*self.agent.operations, workflow)
            .record("record_work_outcome", &route.state_dir, &json!({"result": result}))
            .map_err(|error| format!("the outcome was not recorded: {error}"))?;
        Ok(())
    }
}

fn text(parameters: &Map<String, Value>, key: &str) -> String {
    match parameters.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}
