//! `list_comments`: what was said about a task. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Lists the comments of a task, of every kind, oldest first. An empty task id has none.
#[udf(reads("comments"), columns(task_common::COMMENT_COLUMNS))]
fn list_comments(
    ctx: &Context,
    /// Id of the task.
    #[arg(default)]
    task_id: &str,
    /// At most this many comments; 0 = all.
    #[arg(default = 0)]
    limit: u32,
    /// Continue after this comment: the `cursor` of the last one seen (ask for it in `fields`), or its id.
    #[arg(default)]
    after: &str,
    /// Comma list, or JSON list, of the top-level fields wanted; `*` = all stored ones, `cursor` = its place for `after`.
    #[arg(default)]
    fields: FieldNames,
) -> Result<Reply, UdfError> {
    if task_id.is_empty() {
        return Ok(Reply::records([]));
    }
    Page { limit, after, fields: &fields }
        .oldest_first(ctx.read("comments")?.matching("taskId", task_id))?
        .reply()
}
