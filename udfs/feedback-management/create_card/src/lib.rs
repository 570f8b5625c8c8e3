//! `create_card`: asks the human. Contract and examples: `spec.md`.

use feedback_common::card::{self, Terms};
use sdk::prelude::*;

/// Puts a card before the human and returns it. A card that wakes its asker replaces the open one of the
/// same project and task, so that a task has one open question at a time; a card of policy `none`
/// replaces nothing. With a key, a repeated call returns the card of the first one.
#[udf(reads("cards"), writes("cards"), columns(feedback_common::CARD_COLUMNS))]
#[expect(clippy::too_many_arguments, reason = "one parameter per field of the contract")]
fn create_card(
    ctx: &Context,
    /// Project the card belongs to; stored as given.
    #[arg(default)]
    project: &str,
    /// Task the card is about; stored as given, it need not exist.
    #[arg(default)]
    task_id: &str,
    /// What the answer does: `reply`, `approval_gate`, `review_work_product`; any text is kept.
    #[arg(default)]
    effect: &str,
    /// `wake_assignee` (also when empty) or `none`.
    #[arg(default)]
    continuation_policy: &str,
    /// Names this ask within project and task, so that a retry asks nobody twice; empty = no key.
    #[arg(default)]
    idempotency_key: &str,
    /// One line for the inbox; empty = null.
    #[arg(default)]
    summary: &str,
    /// What the human sees, as JSON text of any kind. Required.
    #[arg(default)]
    payload: &str,
    /// Agent that asks.
    #[arg(default)]
    created_by: &str,
    /// Run that asks.
    #[arg(default)]
    source_run_id: &str,
    /// `dead`: finished cards with the key do not count, the human is asked anew; empty = they do.
    #[arg(default)]
    reissue: &str,
) -> Result<Reply, UdfError> {
    if payload.is_empty() {
        return Err(UdfError::raised("create_card requires a non-empty JSON `payload`"));
    }
    let payload = JsonText::parse(payload).map_err(|fault| {
        UdfError::raised(format!("create_card `payload` is not valid JSON: {fault}"))
    })?;
    let terms = Terms::parse(continuation_policy, reissue)?;
    let tx = ctx.begin(&["cards"])?;
    let mut cards = tx.collection("cards")?;
    if let Some(held) = card::holder_of_key(&cards, project, task_id, idempotency_key, terms) {
        return Ok(Reply::record(held));
    }
    if terms.wakes {
        card::supersede_open(&mut cards, project, task_id)?;
    }
    let asked = Object::new()
        .set("id", ctx.mint("card_"))
        .set("project", project)
        .set("taskId", task_id)
        .set("effect", effect)
        .set("status", "pending")
        .set("continuationPolicy", terms.policy())
        .set("idempotencyKey", text::non_empty(idempotency_key))
        .set("summary", text::non_empty(summary))
        .set_json("payload", payload)
        .set_null("result")
        .set("createdBy", created_by)
        .set("sourceRunId", source_run_id)
        .set_null("resolvedBy")
        .set("createdAt", ctx.now())
        .set_null("resolvedAt");
    let asked = cards.push(asked)?;
    tx.commit()?;
    Ok(Reply::record(asked))
}

#[cfg(test)]
mod tests;
