//! The interaction card: a question, an approval or a work product waiting for a human.

use sdk::prelude::*;

/// Columns a list of cards has in SQL, also when it is empty (the sql contract §5).
pub const COLUMNS: &[Column] = &[
    Column::text("id"),
    Column::text("project"),
    Column::text("taskId"),
    Column::text("effect"),
    Column::text("status"),
    Column::text("continuationPolicy"),
    Column::text("idempotencyKey"),
    Column::text("summary"),
    Column::json("payload"),
    Column::json("result"),
    Column::text("createdBy"),
    Column::text("sourceRunId"),
    Column::text("resolvedBy"),
    Column::text("createdAt"),
    Column::text("resolvedAt"),
];

/// The effect that makes a card a work product to review; every other effect is a question.
pub const REVIEW: &str = "review_work_product";
/// The policy of a card whose answer wakes the agent that asked.
pub const WAKE: &str = "wake_assignee";

/// Whether the card still waits for its human.
pub fn is_pending(card: &Record) -> bool {
    card.is("status", "pending")
}

/// Whether the answer wakes the asking agent: a missing or unknown policy does not.
pub fn wakes(card: &Record) -> bool {
    card.is("continuationPolicy", WAKE)
}

/// What a caller asks for, checked before any lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Whether the answer wakes the asker; such a card replaces the open one of its task.
    pub wakes: bool,
    /// Whether finished cards with the same key count as the answer to this call.
    pub reuse_finished: bool,
}

impl Terms {
    /// Reads `continuation_policy` and `reissue`.
    ///
    /// # Errors
    /// Any text outside the two closed sets is refused: an unknown policy would supersede the open
    /// question and yet show in no feed (the app-store contract §11, S3 and S11).
    pub fn parse(continuation_policy: &str, reissue: &str) -> Result<Self, UdfError> {
        let wakes = match continuation_policy {
            "" | WAKE => true,
            "none" => false,
            other => {
                return Err(UdfError::raised(format!(
                    "create_card `continuation_policy` must be `wake_assignee` or `none`, got `{other}`"
                )));
            }
        };
        let reuse_finished = match reissue {
            "" => true,
            "dead" => false,
            other => {
                return Err(UdfError::raised(format!(
                    "create_card `reissue` must be empty or `dead`, got `{other}`"
                )));
            }
        };
        Ok(Self { wakes, reuse_finished })
    }

    /// The policy text a new card stores.
    pub fn policy(self) -> &'static str {
        if self.wakes { WAKE } else { "none" }
    }
}

/// The card that already answers this key on this task: the first pending one, else, if finished ones
/// count, the newest in file order. An empty key never hits.
pub fn holder_of_key(
    cards: &CollectionMut<'_, '_>,
    project: &str,
    task_id: &str,
    key: &str,
    terms: Terms,
) -> Option<Record> {
    if key.is_empty() {
        return None;
    }
    let mut held = cards.matching("idempotencyKey", key);
    held.retain(|card| card.is("project", project) && card.is("taskId", task_id));
    match held.iter().position(is_pending) {
        Some(first) => Some(held.swap_remove(first)),
        None => held.pop().filter(|_| terms.reuse_finished),
    }
}

/// Marks every waking pending card of the task as superseded: the human sees one open question of a
/// task at a time. A card without a stored policy counts as waking; who resolved it and when stay.
///
/// # Errors
/// Those of [`CollectionMut::update`].
pub fn supersede_open(
    cards: &mut CollectionMut<'_, '_>,
    project: &str,
    task_id: &str,
) -> Result<(), UdfError> {
    for card in cards.matching("taskId", task_id) {
        if card.is("project", project)
            && is_pending(&card)
            && !card.is("continuationPolicy", "none")
        {
            let edit = card.edit().set("status", "superseded").set_null("result");
            cards.update(&card, edit)?;
        }
    }
    Ok(())
}
