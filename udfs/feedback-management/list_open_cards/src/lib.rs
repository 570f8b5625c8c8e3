//! `list_open_cards`: what agents wait for. Contract and examples: `spec.md`.

use feedback_common::card;
use sdk::prelude::*;

/// Lists the cards whose answer will wake an agent (pending, policy `wake_assignee`), oldest first.
#[udf(reads("cards"), columns(feedback_common::CARD_COLUMNS))]
fn list_open_cards(
    ctx: &Context,
    /// Only cards of exactly this project; empty = all.
    #[arg(default, filters = "project")]
    project: &str,
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
    let mut open = ctx.read("cards")?.matching("status", "pending");
    open.retain(|card| card::wakes(card) && (project.is_empty() || card.is("project", project)));
    Page { limit, after, fields: &fields }.oldest_first(open)?.reply()
}
