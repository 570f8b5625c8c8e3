//! The files of a new workflow: a produce-and-verify job whose worker and checker use operations that are there.

pub(in crate::cli::new) fn library(op: &str) -> String {
    LIBRARY.replace("@op@", op)
}

pub(in crate::cli::new) fn spec(project: &str, op: &str) -> String {
    SPEC.replace("@op@", op).replace("@project@", project)
}

/// Path and text of each agent type.
pub(in crate::cli::new) const AGENTS: [(&str, &str); 2] =
    [("agents/worker.toml", WORKER), ("agents/checker.toml", CHECKER)];

const LIBRARY: &str = r##"//! `@op@`: a workflow. Contract and examples: `spec.md`. The agents it spawns are described in `agents/`.

use sdk::prelude::*;
use sdk::workflow::{Answer, Request, Subject, Task, TurnContext, Workflow, serve};

/// Has something produced and verified. `call` says what is wanted.
#[udf(folders)]
fn @op@(
    ctx: &Context,
    call: &str,
    #[arg(default)] task: Json<Value>,
    #[arg(default)] message: &str,
    #[arg(default)] state_dir: &str,
    #[arg(default)] arguments: Json<Value>,
) -> Result<Reply, UdfError> {
    serve(ctx, &Work, &Request { call, task: &task, message, state_dir, arguments: &arguments })
}

struct Work;

impl Workflow for Work {
    fn name(&self) -> &str {
        "@op@"
    }
    fn system_prompt(&self) -> &str {
        "You look after a piece of work that others do and check for the user. You never do or judge it yourself."
    }
    fn worker_agent(&self) -> &str {
        "worker"
    }
    fn checker_agent(&self) -> Option<&str> {
        Some("checker")
    }
    fn resolve_subject(&self, task: &Task) -> Answer<Option<Subject>> {
        Ok((!task.id.is_empty()).then(|| Subject::new(&task.id)))
    }
    fn state_dir(&self, subject: &Subject) -> String {
        format!("workflows/@op@/{}", subject.id)
    }
    fn is_bootstrapped(&self, _: &TurnContext<'_>) -> Answer<bool> {
        Ok(true) // There is nothing to set up.
    }
    fn work_query(&self, ctx: &TurnContext<'_>) -> Answer<String> {
        Ok(format!("Do this, and post the result as a comment:\n{}", ctx.task.query))
    }
    fn check_query(&self, ctx: &TurnContext<'_>) -> Answer<String> {
        Ok(format!("Check whether the newest comment of the worker does this:\n{}", ctx.task.query))
    }
}

#[cfg(test)]
mod tests {
    use sdk::testing::TestHost;

    use super::*;

    #[test]
    fn work_is_done_checked_put_right_and_handed_over() {
        let host = TestHost::new();
        let call = |call: &str, arguments: Value| {
            let (task, arguments) = (r#"{"id": "t", "query": "Name a tea"}"#, arguments.to_string());
            host.call_json(UDF, &[("call", call), ("task", task), ("arguments", &arguments)])
        };
        let ended = |agent: &str, result: &str| {
            call("record_outcome", json!({"agent": agent, "status": "completed", "result": result}));
        };
        let stage = || call("step", Value::Null)["stage"].clone();
        assert_eq!(stage(), "work_round");
        ended("worker", "posted Assam");
        assert_eq!(stage(), "check");
        ended("checker", "VERDICT: FAIL\n- The name — FAIL — misspelt");
        let again = call("step", Value::Null);
        assert_eq!((&again["stage"], &again["round"]), (&json!("work_round"), &json!(2)));
        assert_eq!(call("task_end_gate", Value::Null)["allowed"], false);
        ended("worker", "put it right");
        assert_eq!(stage(), "check");
        ended("checker", "VERDICT: PASS\n- The name — PASS");
        assert_eq!(stage(), "finish");
        assert_eq!(call("task_end_gate", Value::Null)["allowed"], true);
    }
}
"##;

const WORKER: &str = r#"# The worker. An action is an operation; what is pinned is not the model's to choose.

prompt = """
You are a careful worker. You do exactly what is asked, you put right what a check found, and you post every result as \
a comment; nobody sees anything else.
"""
max_iterations = 20
max_wall_seconds = 1200

[[actions]]
name = "post"
doc = "Posts a result."
operation = "_core.task-management.add_comment"
pinned = { task_id = "{task_id}", author = "worker" }
params = ["body"]

[[actions]]
name = "read"
doc = "All comments so far, oldest first."
operation = "_core.task-management.list_comments"
pinned = { task_id = "{task_id}" }
params = []
"#;

const CHECKER: &str = r#"# The checker: judges the result and cannot change it.

prompt = """
You are a strict checker. You look at the result itself, never at what its author says of it, and you report what you \
saw, point by point.
"""
max_iterations = 20
max_wall_seconds = 1200

[[actions]]
name = "read"
doc = "All comments so far, oldest first."
operation = "_core.task-management.list_comments"
pinned = { task_id = "{task_id}" }
params = []
"#;

const SPEC: &str = r#"# @op@

Has something produced and verified: a worker (`agents/worker.toml`) does what the task asks, a checker (`agents/checker.toml`) judges it, and what it finds goes back to the worker until it passes.

Run one with `udf-host agent run --workflow @op@ --request TEXT`; any other loop can drive it through the calls below.

## Inputs

| Name | Type | Default | Meaning |
|---|---|---|---|
| `call` | string | required | `step`, `record_outcome`, `record_user_lead`, `task_end_gate`, `state`, `journal`, `describe` and the other calls of a workflow |
| `task` | json | `null` | `{"id", "query", "waiting"}` |
| `message` | string | `""` | what the user said this turn |
| `state_dir` | string | `""` | where the state lies; empty is that of the task |
| `arguments` | json | `null` | arguments of a recorder by name |

## Output

`step` says what to do next; the recorders say what came of it.

```json
{"unparks": false, "phase": "checking"}
```

## Errors

- An unknown `call`: it is named with those that are known.

## Collections

Reads none, writes none. State, journal and ledger lie in `workflows/@op@/<task>/` of the state folder.

## Examples

```json
{"project": "@project@", "udf": "@op@", "overrides": {"call": "step", "task": {"id": "t1", "query": "Name a tea"}}}
```

```json
{
  "data": {
    "subject": true, "state_dir": "workflows/@op@/t1", "stage": "work_round", "kind": "actions",
    "step": {
      "kind": "actions", "label": "Working on it (1).",
      "actions": [
        {"action_name": "spawn_subagent", "parameters": {"agent_type": "worker", "query": "<any>"}}
      ]
    },
    "round": 1, "route": {"workflow": "@op@", "state_dir": "workflows/@op@/t1"}, "fault": null
  },
  "error": null
}
```
"#;
