//! `find_notify_comment`: the message behind an inbox row. Contract and examples: `spec.md`.

use feedback_common::{Dismissed, comment};
use sdk::prelude::*;

/// Returns the comment with this id exactly as stored, if it is a message to the human (`kind` is
/// `notify`) that was not dismissed; otherwise the ordinary answer `not found`.
#[udf(reads("comments", "dismissedFeedbackKeys"), columns(feedback_common::COMMENT_COLUMNS))]
fn find_notify_comment(
    ctx: &Context,
    /// Id of the comment.
    #[arg(default)]
    comment_id: &str,
) -> Result<Reply, UdfError> {
    if comment_id.is_empty() {
        return Ok(Reply::not_found());
    }
    Ok(match ctx.read("comments")?.get(comment_id) {
        Some(found)
            if comment::is_notify(&found) && !Dismissed::read(ctx)?.contains(comment_id) =>
        {
            Reply::record(found)
        }
        _ => Reply::not_found(),
    })
}
