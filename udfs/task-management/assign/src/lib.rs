//! `assign`: gives a task to an agent. Contract and examples: `spec.md`.

use sdk::prelude::*;
use task_common::task;

/// Sets the agent of a task and returns it. A `pending` task becomes `todo`; any other status stays.
#[udf(reads("tasks"), writes("tasks"), columns(task_common::TASK_COLUMNS))]
fn assign(
    ctx: &Context,
    /// Id of the task.
    #[arg(default)]
    id: &str,
    /// The agent; stored as given, empty text included.
    #[arg(default)]
    agent_id: &str,
) -> Result<Reply, UdfError> {
    task::change(ctx, id, |task| {
        let edit = task.edit().set("agentId", agent_id);
        Ok(if task.is("status", "pending") { edit.set("status", "todo") } else { edit })
    })
}
