//! `is_feedback_key_dismissed`: was this row waved away? Contract and examples: `spec.md`.

use feedback_common::Dismissed;
use sdk::prelude::*;

/// Whether exactly this key is among the dismissed ones. The empty key never is.
#[udf(reads("dismissedFeedbackKeys"), columns(&[Column::boolean("value")]))]
fn is_feedback_key_dismissed(
    ctx: &Context,
    /// Key of the row: a comment id or a `derived:…` id of the inbox.
    #[arg(default)]
    id: &str,
) -> Result<Reply, UdfError> {
    Ok(Reply::value(&(!id.is_empty() && Dismissed::read(ctx)?.contains(id))))
}
