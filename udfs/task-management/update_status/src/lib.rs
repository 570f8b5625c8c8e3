//! `update_status`: moves a task on. Contract and examples: `spec.md`.

use sdk::prelude::*;
use task_common::task;

/// Sets the status of a task and returns it. Any text is accepted; no transition is checked.
#[udf(reads("tasks"), writes("tasks"), columns(task_common::TASK_COLUMNS))]
fn update_status(
    ctx: &Context,
    /// Id of the task.
    #[arg(default)]
    id: &str,
    /// The new status.
    #[arg(default)]
    status: &str,
) -> Result<Reply, UdfError> {
    task::change(ctx, id, |task| Ok(task.edit().set("status", status)))
}
