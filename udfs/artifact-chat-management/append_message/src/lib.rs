//! `append_message`: one more line of a chat. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Appends one entry to a chat's transcript, counts it, and returns the chat. An unusable or unknown id is
/// the ordinary answer `not found`; no line is written then.
#[udf(
    reads("artifactChats"),
    writes("artifactChats"),
    logs("artifact-chats"),
    columns(chat_common::CHAT_COLUMNS)
)]
fn append_message(
    ctx: &Context,
    /// Id of the chat.
    #[arg(default)]
    chat_id: &str,
    /// The entry as JSON text of any kind; empty = `{}`.
    #[arg(default)]
    entry_json: &str,
) -> Result<Reply, UdfError> {
    let Some(log) = chat_common::transcript_to_write(ctx, chat_id)? else {
        return Ok(Reply::not_found());
    };
    let tx = ctx.begin(&["artifactChats"])?;
    let mut chats = tx.collection("artifactChats")?;
    let Some(chat) = chats.get(chat_id) else { return Ok(Reply::not_found()) };
    let entry = JsonText::parse(text::non_empty(entry_json).unwrap_or("{}")).map_err(|fault| {
        UdfError::raised(format!("append_message `entry_json` is not valid JSON: {fault}"))
    })?;
    log.append(entry)?;
    let edit = chat
        .edit()
        .set("messageCount", chat_common::next_count(chat.get("messageCount")))
        .set("lastActivityAt", ctx.now());
    let chat = chats.update(&chat, edit)?;
    tx.commit()?;
    Ok(Reply::record(chat))
}
