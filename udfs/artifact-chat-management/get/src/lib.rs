//! `get`: the chat about one artifact. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Returns the chat about exactly this artifact, or null. Empty parameters are compared like any other.
#[udf(reads("artifactChats"), columns(chat_common::CHAT_COLUMNS))]
fn get(
    ctx: &Context,
    /// Project of the artifact.
    #[arg(default)]
    project: &str,
    /// Type of the artifact.
    #[arg(default)]
    artifact_type: &str,
    /// Stem of the artifact: opaque, may hold `/` and `.`.
    #[arg(default)]
    artifact_stem: &str,
) -> Result<Reply, UdfError> {
    let of_stem = ctx.read("artifactChats")?.matching("artifactStem", artifact_stem);
    Ok(match chat_common::about(of_stem, project, artifact_type) {
        Some(chat) => Reply::record(chat),
        None => Reply::null(),
    })
}
