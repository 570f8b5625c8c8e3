//! `set_blocked_by`: what has to be done first. Contract and examples: `spec.md`.

use sdk::prelude::*;
use task_common::{blockers, task};

/// Replaces the list of tasks that block this one and returns the task. Ids need not exist, circles are not
/// looked for.
#[udf(reads("tasks"), writes("tasks"), columns(task_common::TASK_COLUMNS))]
fn set_blocked_by(
    ctx: &Context,
    /// Id of the task.
    #[arg(default)]
    id: &str,
    /// JSON array of ids, or ids with commas between; empty = none.
    #[arg(default)]
    blocked_by: &str,
) -> Result<Reply, UdfError> {
    task::change(ctx, id, |task| match blockers::parse(blocked_by) {
        Ok(ids) => Ok(task.edit().set("blockedBy", ids)),
        Err(message) => Err(Reply::refused(&message)),
    })
}
