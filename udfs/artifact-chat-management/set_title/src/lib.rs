//! `set_title`: names a chat. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Sets the title of a chat and returns it; an empty one becomes null. The time of last activity stays.
#[udf(reads("artifactChats"), writes("artifactChats"), columns(chat_common::CHAT_COLUMNS))]
fn set_title(
    ctx: &Context,
    /// Id of the chat.
    #[arg(default)]
    chat_id: &str,
    /// The title; empty = null.
    #[arg(default)]
    title: &str,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["artifactChats"])?;
    let mut chats = tx.collection("artifactChats")?;
    let Some(chat) = chats.get(chat_id) else { return Ok(Reply::not_found()) };
    let chat = chats.update(&chat, chat.edit().set("title", text::non_empty(title)))?;
    tx.commit()?;
    Ok(Reply::record(chat))
}
