//! `delete`: a task and all below it. Contract and examples: `spec.md`.

use sdk::prelude::*;
use task_common::{blockers, cascade};

/// Removes a task, its descendants, and the runs, comments, inbox rows, cards and cost events that
/// name one of them; other tasks are no longer blocked by them. Transcripts and dismissed keys stay.
#[udf(
    reads("tasks", "runs", "comments", "inbox", "cards", "costEvents"),
    writes("tasks", "runs", "comments", "inbox", "cards", "costEvents")
)]
fn delete(
    ctx: &Context,
    /// Id of the task.
    #[arg(default)]
    id: &str,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["cards", "comments", "costEvents", "inbox", "runs", "tasks"])?;
    let mut tasks = tx.collection("tasks")?;
    if id.is_empty() || tasks.get(id).is_none() {
        return Ok(Reply::not_found());
    }
    let family = cascade::family(&tasks, id);
    let mut counts = Object::new().set("deletedTaskIds", cascade::sorted(&family));
    for (collection, count) in [
        ("runs", "runsRemoved"),
        ("comments", "commentsRemoved"),
        ("inbox", "inboxRemoved"),
        ("cards", "cardsRemoved"),
        ("costEvents", "costEventsRemoved"),
    ] {
        let removed = cascade::remove_all(&mut tx.collection(collection)?, "taskId", &family);
        counts = counts.set(count, removed);
    }
    cascade::remove_all(&mut tasks, "id", &family);
    blockers::scrub(&mut tasks, &family)?;
    tx.commit()?;
    Ok(Reply::json(counts))
}
