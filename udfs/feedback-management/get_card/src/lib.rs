//! `get_card`: one card by id. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Returns the card with this id exactly as stored; its keys stay camelCase.
/// An empty or unknown id is an ordinary answer (`not found`), never an error.
#[udf(reads("cards"), columns(feedback_common::CARD_COLUMNS))]
fn get_card(
    ctx: &Context,
    /// Id of the card.
    #[arg(default)]
    id: &str,
) -> Result<Reply, UdfError> {
    if id.is_empty() {
        return Ok(Reply::not_found());
    }
    Ok(match ctx.read("cards")?.get(id) {
        Some(card) => Reply::record(card),
        None => Reply::not_found(),
    })
}
