//! The inbox feed: what waits for a human, newest first (the app-store contract §9).

mod feed;
mod item;
mod join;

use sdk::prelude::*;

use feed::Feed;

/// The feed of one project, or of all when `project` is empty: `{"items": [...], "pending": [...]}`.
/// Damaged records and collections are passed over; one bad row never blanks the inbox.
///
/// # Errors
/// The operation does not declare that it reads `tasks`, `runs`, `cards`, `comments` and
/// `dismissedFeedbackKeys`.
pub fn view(ctx: &Context, project: &str) -> Result<Reply, UdfError> {
    let mut feed = Feed::new(ctx, project)?;
    feed.add_cards(&ctx.read("cards")?);
    feed.add_messages(&ctx.read("comments")?);
    feed.add_outcomes(&ctx.read("runs")?);
    let pending = feed.pending();
    Ok(Reply::json(Object::new().set("items", feed.into_items()).set("pending", pending)))
}
