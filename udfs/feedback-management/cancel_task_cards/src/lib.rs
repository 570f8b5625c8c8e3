//! `cancel_task_cards`: takes a task's open asks away. Contract and examples: `spec.md`.

use feedback_common::card;
use sdk::prelude::*;

/// Cancels every pending card of a task, whatever its policy and project, and returns those cards in
/// file order. A stored `result` stays as it is.
#[udf(reads("cards"), writes("cards"), columns(feedback_common::CARD_COLUMNS))]
fn cancel_task_cards(
    ctx: &Context,
    /// Task whose cards are cancelled.
    #[arg(default)]
    task: &str,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["cards"])?;
    let mut cards = tx.collection("cards")?;
    let mut swept = Vec::new();
    for open in cards.matching("taskId", task).into_iter().filter(card::is_pending) {
        let edit = open
            .edit()
            .set("status", "cancelled")
            .set("resolvedBy", "user")
            .set("resolvedAt", ctx.now());
        swept.push(cards.update(&open, edit)?);
    }
    tx.commit()?;
    Ok(Reply::records(swept))
}
