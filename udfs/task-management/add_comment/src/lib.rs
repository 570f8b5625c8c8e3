//! `add_comment`: a word on a task. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Adds a comment to a task and returns it. With kind `notify` it is a message to the human and shows in the
/// inbox. The task need not exist.
#[udf(reads("comments"), writes("comments"), columns(task_common::COMMENT_COLUMNS))]
fn add_comment(
    ctx: &Context,
    /// Id of the task.
    #[arg(default)]
    task_id: &str,
    /// Who says it.
    #[arg(default)]
    author: &str,
    /// What is said.
    #[arg(default)]
    body: &str,
    /// `notify` = a message to the human; any text is kept; empty = no such key.
    #[arg(default)]
    kind: &str,
    /// What to show with it, as JSON text of any kind; empty = no such key.
    #[arg(default)]
    widget: &str,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["comments"])?;
    let mut comment = Object::new()
        .set("id", ctx.mint("cmt_"))
        .set("taskId", task_id)
        .set("author", author)
        .set("body", body)
        .set("createdAt", ctx.now());
    if !kind.is_empty() {
        comment = comment.set("kind", kind);
    }
    if !widget.is_empty() {
        let widget = JsonText::parse(widget).map_err(|fault| {
            UdfError::raised(format!("add_comment `widget` is not valid JSON: {fault}"))
        })?;
        comment = comment.set_json("widget", widget);
    }
    let comment = tx.collection("comments")?.push(comment)?;
    tx.commit()?;
    Ok(Reply::record(comment))
}
