//! `clear`: starts a chat over. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Empties a chat and returns it: no messages, no title, a fresh session key, no transcript. An unusable or
/// unknown id is the ordinary answer `not found`; a transcript without a chat is kept.
#[udf(
    reads("artifactChats"),
    writes("artifactChats"),
    logs("artifact-chats"),
    columns(chat_common::CHAT_COLUMNS)
)]
fn clear(
    ctx: &Context,
    /// Id of the chat.
    #[arg(default)]
    chat_id: &str,
) -> Result<Reply, UdfError> {
    let Some(log) = chat_common::transcript_to_write(ctx, chat_id)? else {
        return Ok(Reply::not_found());
    };
    let tx = ctx.begin(&["artifactChats"])?;
    let mut chats = tx.collection("artifactChats")?;
    let Some(chat) = chats.get(chat_id) else { return Ok(Reply::not_found()) };
    let edit = chat
        .edit()
        .set("messageCount", 0)
        .set("lastActivityAt", ctx.now())
        .set("sessionKey", ctx.uuid())
        .set_null("title");
    let chat = chats.update(&chat, edit)?;
    tx.commit_then_remove(&[&log])?;
    Ok(Reply::record(chat))
}
