//! `has_unresolved_message`: is the human still being asked about this task? Contract and examples: `spec.md`.

use feedback_common::{Dismissed, card, comment};
use sdk::prelude::*;

/// Whether the task has a work product waiting for review, or a message that was not dismissed.
/// An empty task id has neither.
#[udf(reads("cards", "comments", "dismissedFeedbackKeys"), columns(&[Column::boolean("value")]))]
fn has_unresolved_message(
    ctx: &Context,
    /// Id of the task.
    #[arg(default)]
    task_id: &str,
) -> Result<Reply, UdfError> {
    if task_id.is_empty() {
        return Ok(Reply::value(&false));
    }
    let cards = ctx.read("cards")?.matching("taskId", task_id);
    let open = cards.iter().any(|c| card::is_pending(c) && c.is("effect", card::REVIEW)) || {
        let dismissed = Dismissed::read(ctx)?;
        let comments = ctx.read("comments")?.matching("taskId", task_id);
        comments.iter().any(|c| comment::is_notify(c) && !dismissed.hides(c))
    };
    Ok(Reply::value(&open))
}
