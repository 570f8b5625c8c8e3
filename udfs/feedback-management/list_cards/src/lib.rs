//! `list_cards`: cards of a task or of all. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Lists cards in any state, oldest first, exactly as stored.
#[udf(reads("cards"), columns(feedback_common::CARD_COLUMNS))]
fn list_cards(
    ctx: &Context,
    /// Only cards with exactly this task id; empty = all.
    #[arg(default, filters = "taskId")]
    task: &str,
    /// At most this many cards; 0 = all.
    #[arg(default = 0)]
    limit: u32,
    /// Continue after this card: the `cursor` of the last one seen (ask for it in `fields`), or its id.
    #[arg(default)]
    after: &str,
    /// Comma list, or JSON list, of the top-level fields wanted; `*` = all stored ones, `cursor` = its place for `after`.
    #[arg(default)]
    fields: FieldNames,
) -> Result<Reply, UdfError> {
    let cards = ctx.read("cards")?;
    let found = if task.is_empty() { cards.records() } else { cards.matching("taskId", task) };
    Page { limit, after, fields: &fields }.oldest_first(found)?.reply()
}
