//! [`WorkflowClient`]: the loop's side of a workflow operation.

use sdk::workflow::{Route, Step};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operations::{CallError, Operations, WorkflowPlace};
use super::task_file::Status;

/// What a workflow says of itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Description {
    /// Its id.
    pub name: String,
    /// Replaces the general system prompt.
    pub system_prompt: String,
    /// Replaces the text about the form of a decision.
    pub select_action_prompt: Option<String>,
    /// Agent that works.
    pub worker_agent: String,
    /// Agent that checks; without one a result counts as verified.
    pub checker_agent: Option<String>,
    /// Action whose result is the work outcome.
    pub stage_action: Option<String>,
    /// Action that tells others the result is ready.
    pub notify_action: Option<String>,
}

impl Description {
    /// Whether this is an action of the workflow's own: a plain name, served by the workflow operation as a
    /// `call` of that name. Only its own steps can choose it.
    #[must_use]
    pub fn is_own_action(&self, name: &str) -> bool {
        let own = [&self.stage_action, &self.notify_action];
        !name.is_empty()
            && !name.contains('.')
            && own.iter().any(|action| action.as_deref() == Some(name))
    }
}

/// What a workflow chose for a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The step; `None` leaves the turn to the model.
    pub step: Option<Step>,
    /// Where the outcomes of the agents it spawns go.
    pub route: Option<Route>,
    /// Whether the task has a subject.
    pub has_subject: bool,
    /// The stage that chose; empty without a subject.
    pub stage: String,
}

/// What a recorder left to the loop.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Recorded {
    /// The pause or gate that parked the task is over.
    pub unparks: bool,
}

/// One workflow, as the loop asks it.
#[derive(Clone, Copy)]
pub struct WorkflowClient<'a> {
    operations: &'a dyn Operations,
    place: &'a WorkflowPlace,
}

impl<'a> WorkflowClient<'a> {
    /// The workflow at this place.
    #[must_use]
    pub fn new(operations: &'a dyn Operations, place: &'a WorkflowPlace) -> Self {
        Self { operations, place }
    }

    fn call(
        &self,
        call: &str,
        task: &Value,
        state_dir: &str,
        arguments: &Value,
        message: &str,
    ) -> Result<Value, CallError> {
        let mut params = vec![("call".to_owned(), call.to_owned())];
        let mut add = |name: &str, text: String| {
            if !text.is_empty() && text != "null" {
                params.push((name.to_owned(), text));
            }
        };
        add("task", task.to_string());
        add("message", message.to_owned());
        add("state_dir", state_dir.to_owned());
        add("arguments", arguments.to_string());
        self.operations.call(&self.place.address, params)
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// The call failed, the answer is none, its name is not that of its operation, or its system prompt or worker is
    /// blank.
    pub fn describe(&self) -> Result<Description, CallError> {
        let answer = self.call("describe", &Value::Null, "", &Value::Null, "")?;
        let description: Description = read(answer, "describe")?;
        let op = &*self.place.address.op;
        if description.name != op {
            return Err(CallError(format!(
                "the workflow `{op}` calls itself `{}`: its name must be that of its operation",
                description.name
            )));
        }
        if description.system_prompt.trim().is_empty() {
            return Err(CallError(format!("the workflow `{op}` has a blank system prompt")));
        }
        if description.worker_agent.trim().is_empty() {
            return Err(CallError(format!("the workflow `{op}` names no worker")));
        }
        Ok(description)
    }

    /// Id and state directory of the task's subject, if it has one.
    ///
    /// # Errors
    /// The call failed.
    pub fn subject(&self, task: &Value) -> Result<Option<(String, String)>, CallError> {
        let answer = self.call("subject", task, "", &Value::Null, "")?;
        let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(text("id").zip(text("state_dir")))
    }

    /// Chooses the step of a turn.
    ///
    /// # Errors
    /// The engine or the domain could not answer.
    pub fn step(&self, task: &Value, message: Option<&str>) -> Result<Chosen, CallError> {
        let answer = self.call("step", task, "", &Value::Null, message.unwrap_or_default())?;
        let step = match Step::from_value(answer.get("step").unwrap_or(&Value::Null)) {
            Ok(step) => step,
            // A step that is none leaves the turn to the model (contract §2).
            Err(error) => {
                tracing::error!(target: "udf_host::agent", workflow = %self.place.address, "a step cannot be read: {error}");
                None
            }
        };
        if let Some(fault) = answer.get("fault").and_then(Value::as_str) {
            tracing::warn!(target: "udf_host::agent", workflow = %self.place.address, "{fault}");
        }
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let route = answer.get("route").and_then(|route| {
            Some(Route { workflow: text(route, "workflow")?, state_dir: text(route, "state_dir")? })
        });
        let has_subject = answer.get("subject") == Some(&Value::Bool(true));
        let stage = text(&answer, "stage").unwrap_or_default();
        Ok(Chosen { step, route, has_subject, stage })
    }

    /// Carries out an action of the workflow's own for a task.
    ///
    /// # Errors
    /// What the operation answers.
    pub fn own_action(
        &self,
        name: &str,
        task: &Value,
        state_dir: &str,
        parameters: &Value,
    ) -> Result<Value, CallError> {
        self.call(name, task, state_dir, parameters, "")
    }

    /// Tells it that a task came to its end, in whatever way.
    ///
    /// # Errors
    /// It could not end what ran for the task.
    pub fn task_ended(&self, task: &Value, status: Status) -> Result<(), CallError> {
        self.call("task_ended", task, "", &json!({"status": status}), "").map(|_| ())
    }

    /// Tells it which of its tasks did not end, when a host starts.
    ///
    /// # Errors
    /// It could not look after what runs.
    pub fn boot_restore(&self, running: &[&str]) -> Result<(), CallError> {
        self.call("boot_restore", &Value::Null, "", &json!({"running": running}), "").map(|_| ())
    }

    /// Calls a recorder for a state directory.
    ///
    /// # Errors
    /// It could not record.
    pub fn record(
        &self,
        recorder: &str,
        state_dir: &str,
        arguments: &Value,
    ) -> Result<Recorded, CallError> {
        read(self.call(recorder, &Value::Null, state_dir, arguments, "")?, recorder)
    }

    /// Whether the task may end as complete; `Some` is the refusal.
    ///
    /// # Errors
    /// The state could not be read.
    pub fn end_gate(&self, task: &Value) -> Result<Option<String>, CallError> {
        let answer = self.call("task_end_gate", task, "", &json!({"status": "complete"}), "")?;
        if answer.get("allowed") == Some(&Value::Bool(true)) {
            return Ok(None);
        }
        let refusal = answer.get("refusal").and_then(Value::as_str);
        Ok(Some(refusal.unwrap_or("the workflow does not allow the end").to_owned()))
    }

    /// The extra block of the full prompt.
    ///
    /// # Errors
    /// The call failed.
    pub fn task_state(&self, task: &Value) -> Result<String, CallError> {
        let answer = self.call("task_state", task, "", &Value::Null, "")?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    /// State, ledger and phase.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn state(&self, task: &Value) -> Result<Value, CallError> {
        self.call("state", task, "", &Value::Null, "")
    }

    /// The last lines of the journal.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn journal(&self, task: &Value, limit: usize) -> Result<Vec<Value>, CallError> {
        read(self.call("journal", task, "", &json!({"limit": limit}), "")?, "journal")
    }
}

impl std::fmt::Debug for WorkflowClient<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WorkflowClient").field(&self.place.address).finish()
    }
}

fn read<T: serde::de::DeserializeOwned>(answer: Value, call: &str) -> Result<T, CallError> {
    serde_json::from_value(answer).map_err(|error| {
        CallError(format!("the workflow's answer to `{call}` is unusable: {error}"))
    })
}
