//! `inbox_view`: what waits for a human. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// The inbox: open questions, work products to review, messages and outcomes of tasks, newest first,
/// and the tasks that nobody has taken up yet, in file order.
#[udf(
    reads("tasks", "runs", "cards", "comments", "dismissedFeedbackKeys"),
    columns(&[Column::json("items"), Column::json("pending")])
)]
fn inbox_view(
    ctx: &Context,
    /// Only what belongs to exactly this project; empty = all.
    #[arg(default)]
    project: &str,
) -> Result<Reply, UdfError> {
    feedback_common::inbox::view(ctx, project)
}

#[cfg(test)]
mod tests;
