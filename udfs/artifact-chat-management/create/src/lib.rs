//! `create`: a chat about an artifact. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Returns the chat about this artifact, creating it if there is none. An existing one is returned unchanged: id
/// and session key of this call do not matter then.
#[udf(reads("artifactChats"), writes("artifactChats"), columns(chat_common::CHAT_COLUMNS))]
fn create(
    ctx: &Context,
    /// Id of the chat; not checked for being unique.
    #[arg(default)]
    id: &str,
    /// Project of the artifact.
    #[arg(default)]
    project: &str,
    /// Type of the artifact.
    #[arg(default)]
    artifact_type: &str,
    /// Stem of the artifact: opaque, may hold `/` and `.`; it never becomes a file name.
    #[arg(default)]
    artifact_stem: &str,
    /// Session of the agent that chats.
    #[arg(default)]
    session_key: &str,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["artifactChats"])?;
    let mut chats = tx.collection("artifactChats")?;
    let of_stem = chats.matching("artifactStem", artifact_stem);
    if let Some(chat) = chat_common::about(of_stem, project, artifact_type) {
        return Ok(Reply::record(chat));
    }
    let now = ctx.now();
    let chat = Object::new()
        .set("id", id)
        .set("project", project)
        .set("artifactType", artifact_type)
        .set("artifactStem", artifact_stem)
        .set_null("title")
        .set("createdAt", now)
        .set("lastActivityAt", now)
        .set("messageCount", 0)
        .set("sessionKey", session_key);
    let chat = chats.push(chat)?;
    tx.commit()?;
    Ok(Reply::record(chat))
}
