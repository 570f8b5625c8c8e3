//! [`Act`]: carries out what a turn of a task decided, in order, each action at most once.

use std::time::Duration;

use sdk::workflow::bounds::{Chosen, DropReason};
use serde_json::{Map, Value, json};

use super::agent_loop::{AgentLoop, NewTask};
use super::agent_type::{AgentType, Place};
use super::error::AgentError;
use super::operations::{CallError, texts};
use super::provider::Provider;
use super::sub_agent::{SubAgentRunner, SubOutcome, SubStatus, shown};
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
    pub(super) provider: &'a dyn Provider,
}

/// Actions that were dropped, each of which is told of by itself.
pub(super) const DROPPED: usize = 10;

/// What the model reads of an action. The outer error is the loop's own: the turn is cut off as by a crash.
type Told = Result<Result<String, String>, AgentError>;

/// Stage of a workflow that waits for its provider, and the phase that this shows as.
const INFRA_PAUSE: (&str, &str) = ("infra_pause", "paused_infra");

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
        let dropped = &decided.batch.dropped;
        for dropped in dropped.iter().take(DROPPED) {
            let why = match dropped.reason {
                DropReason::NotAllowed => "not allowed in this turn",
                DropReason::OverCap => "more actions than a turn takes",
                DropReason::EndWhileWaiting => "the task cannot end while it waits for an answer",
            };
            self.note("dropped", &dropped.action_name, why)?;
        }
        if dropped.len() > DROPPED {
            self.note("dropped", "", &format!("and {} more", dropped.len() - DROPPED))?;
        }
        if decided.side_by_side {
            return self.side_by_side(chosen);
        }
        for Chosen { decision, error } in chosen {
            let name = decision.action_name.as_str();
            if name.is_empty() {
                let (stage, phase) = INFRA_PAUSE;
                let phase = if decided.stage == stage { phase } else { "" };
                self.agent.wait_by_code(self.task, decision.reasoning.to_string(), phase)?;
                continue;
            }
            let parameters = Value::Object(decision.parameters.clone()).to_string();
            self.note("action_start", name, &parameters)?;
            if let Some(error) = error {
                self.note("action_end", name, &format!("error: {error}"))?;
                continue;
            }
            if name == SEND_MESSAGE {
                self.task.file.saying = self.agent.saying(&self.task.file, &decision.parameters);
            }
            self.begin(name)?;
            self.agent.hooks.tell(|listener| {
                listener.action_start(&self.task.file, name, &decision.parameters)
            });
            let text = told(self.one(name, &decision.parameters)?);
            self.end(name, &text)?;
            self.task.file.running = None;
            self.task.save()?;
            if self.task.file.is_ended() || self.agent.is_halted(&self.task.file) {
                break;
            }
        }
        Ok(())
    }

    /// Saves that something is about to be carried out. What a message led to is under way with it.
    fn begin(&mut self, name: &str) -> Result<(), AgentError> {
        self.task.file.running = Some(name.to_owned());
        if let Some(message) = &mut self.task.file.message {
            message.acted = true;
        }
        self.task.save()?;
        Ok(())
    }

    fn end(&mut self, name: &str, text: &str) -> Result<(), AgentError> {
        self.note("action_end", name, text)?;
        self.agent.hooks.tell(|listener| listener.action_end(&self.task.file, name, text));
        Ok(())
    }

    /// Reads do not see each other: they run at the same time, and are told of in order.
    fn side_by_side(mut self, chosen: &[Chosen]) -> Result<(), AgentError> {
        let names: Vec<&str> =
            chosen.iter().map(|chosen| chosen.decision.action_name.as_str()).collect();
        self.begin(&names.join(", "))?;
        for Chosen { decision, .. } in chosen {
            self.agent.hooks.tell(|listener| {
                listener.action_start(&self.task.file, &decision.action_name, &decision.parameters)
            });
        }
        let operations = &*self.agent.operations;
        let answers: Vec<Result<String, String>> = std::thread::scope(|scope| {
            let calls: Vec<_> = chosen
                .iter()
                .map(|Chosen { decision, .. }| {
                    scope.spawn(move || {
                        let address = Address::parse(&decision.action_name)
                            .ok_or_else(|| CallError("there is no such action".to_owned()))?;
                        operations.call(&address, texts(&decision.parameters))
                    })
                })
                .collect();
            calls
                .into_iter()
                .map(|call| match call.join() {
                    Ok(answer) => answer.map(|answer| shown(&answer)).map_err(|e| e.to_string()),
                    Err(_) => Err("the call crashed".to_owned()),
                })
                .collect()
        });
        for (Chosen { decision, .. }, answer) in chosen.iter().zip(answers) {
            let parameters = Value::Object(decision.parameters.clone()).to_string();
            self.note("action_start", &decision.action_name, &parameters)?;
            self.end(&decision.action_name, &told(answer))?;
        }
        self.task.file.running = None;
        self.task.save()?;
        Ok(())
    }

    fn note(&mut self, kind: &str, action: &str, text: &str) -> Result<(), AgentError> {
        self.agent.note(self.task, kind, action, text)
    }

    fn one(&mut self, name: &str, parameters: &Map<String, Value>) -> Told {
        match name {
            SEND_MESSAGE => self.agent.send(self.task),
            SPAWN_SUBAGENT => self.spawn(parameters),
            TASK_START => Ok(self.task_start(parameters)),
            TASK_END => Ok(self.task_end(parameters)),
            WAIT => Ok(self.wait(parameters)),
            operation => Ok(self.operation(operation, parameters)),
        }
    }

    fn wait(&mut self, parameters: &Map<String, Value>) -> Result<String, String> {
        let seconds = match parameters.get("seconds") {
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Null) | None => Some(60),
            Some(value) => value.as_u64(),
        };
        let seconds = seconds.ok_or("`seconds` is not a whole number")?;
        let wait = Duration::from_secs(seconds).min(self.agent.limits.long_stop);
        let runs = self.agent.human().runs(&self.task.file.id).unwrap_or_default();
        self.agent.park(self.task, Why::Timer, "Pausing.".to_owned(), wait);
        if let Some(parked) = &mut self.task.file.parked {
            parked.runs = runs.into_iter().filter(|run| !run.is_over).map(|run| run.id).collect();
        }
        Ok(format!("going on in {} s", wait.as_secs()))
    }

    fn task_start(&self, parameters: &Map<String, Value>) -> Result<String, String> {
        let new = NewTask {
            request: text(parameters, "request"),
            workflow_id: text(parameters, "workflow"),
            project: self.task.file.project.clone(),
            subject: text(parameters, "subject"),
            ..NewTask::default()
        };
        let id = self.agent.start(new).map_err(|error| error.to_string())?;
        Ok(format!("started as {id}"))
    }

    fn task_end(&mut self, parameters: &Map<String, Value>) -> Result<String, String> {
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
        if status == Status::Complete && agent.answer(&self.task.file).is_some() {
            return Err("refused: a question of this task was answered just now".to_owned());
        }
        let before = self.task.file.clone();
        let file = &mut self.task.file;
        file.status = status;
        file.parked = None;
        file.closing = true;
        file.ended = Some(Ending {
            reason: text(parameters, "reason"),
            summary: text(parameters, "summary"),
        });
        // Whoever wrote a moment ago was told that the task will answer.
        match agent.tasks.seal(self.task, status == Status::Complete) {
            Ok(true) => {}
            Ok(false) => {
                self.task.file = before;
                return Err("refused: the user wrote just now; answer that first".to_owned());
            }
            Err(error) => {
                self.task.file = before;
                return Err(error.to_string());
            }
        }
        agent.conclude(self.task).map_err(|error| error.to_string())?;
        Ok("ended".to_owned())
    }

    fn spawn(&mut self, parameters: &Map<String, Value>) -> Told {
        let (agent_type, query) = (text(parameters, "agent_type"), text(parameters, "query"));
        let Some((workflow, _)) = &self.decided.workflow else {
            return Ok(Err("agents belong to workflows, and this task has none".to_owned()));
        };
        let route = self.decided.route.as_ref();
        let place = Place {
            state_dir: route.map(|route| route.state_dir.clone()).unwrap_or_default(),
            task_id: self.task.file.id.clone(),
            workflow_id: self.task.file.workflow_id.clone(),
        };
        // What code spawns was looked at before it was chosen: what cannot be run now is the model's choice.
        let file = &self.task.file;
        let operations = &*self.agent.operations;
        let outcome = match AgentType::usable(&workflow.folder, &agent_type, operations, true) {
            Ok(kind) => SubAgentRunner {
                provider: self.provider,
                operations,
                kind: &kind,
                place: &place,
                is_halted: &|| self.agent.is_halted(file),
            }
            .run(&query),
            Err(message) => Some(SubOutcome { status: SubStatus::Error, result: message }),
        };
        let Some(outcome) = outcome else {
            // Nothing is recorded of an agent that was not let finish: the engine chooses the same step again.
            return match self.agent.stop.is_stopped() {
                true => Err(AgentError::Stopped),
                false => Ok(Err("the task was cancelled".to_owned())),
            };
        };
        let status = outcome.status.word();
        // Only what a workflow step spawned is recorded (decision O8).
        if let Some(route) = route.filter(|_| self.decided.by_code) {
            let client = WorkflowClient::new(&*self.agent.operations, workflow);
            let ended = json!({"agent": agent_type, "status": status, "result": outcome.result});
            if let Err(error) = client.record("record_outcome", &route.state_dir, &ended) {
                return Ok(Err(format!("{status}, but the outcome was not recorded: {error}")));
            }
        }
        Ok(Ok(format!("{status}: {}", shown(&Value::String(outcome.result)))))
    }

    fn operation(&self, name: &str, parameters: &Map<String, Value>) -> Result<String, String> {
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
    fn record_stage(&self, name: &str, answer: &Result<Value, CallError>) -> Result<(), String> {
        let Some((workflow, description)) = &self.decided.workflow else { return Ok(()) };
        let is_stage = self.decided.by_code && description.stage_action.as_deref() == Some(name);
        let Some(route) = self.decided.route.as_ref().filter(|_| is_stage) else { return Ok(()) };
        let failed = |error: String| json!({"status": "error", "step": name, "errors": [error]});
        let result = match answer {
            Ok(Value::Object(answer)) => Value::Object(answer.clone()),
            Ok(answer) => failed(format!("it answered {answer}, which is no outcome")),
            Err(error) => failed(error.to_string()),
        };
        WorkflowClient::new(&*self.agent.operations, workflow)
            .record("record_work_outcome", &route.state_dir, &json!({"result": result}))
            .map_err(|error| format!("the outcome was not recorded: {error}"))?;
        Ok(())
    }
}

fn told(told: Result<String, String>) -> String {
    told.unwrap_or_else(|error| format!("error: {error}"))
}

pub(super) fn text(parameters: &Map<String, Value>, key: &str) -> String {
    match parameters.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}
