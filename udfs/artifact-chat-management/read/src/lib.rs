//! `read`: chats about artifacts. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Lists chats, oldest first, exactly as stored, whichever agent they belong to.
#[udf(reads("artifactChats"), columns(chat_common::CHAT_COLUMNS))]
fn read(
    ctx: &Context,
    /// Only chats of exactly this project; empty = all.
    #[arg(default, filters = "project")]
    project: &str,
    /// Only chats about artifacts of exactly this type; empty = all.
    #[arg(default, filters = "artifactType")]
    artifact_type: &str,
    /// Only chats about artifacts of exactly this stem; empty = all.
    #[arg(default, filters = "artifactStem")]
    artifact_stem: &str,
    /// At most this many chats; 0 = all.
    #[arg(default = 0)]
    limit: u32,
    /// Continue after this chat: the `cursor` of the last one seen (ask for it in `fields`), or its id.
    #[arg(default)]
    after: &str,
    /// Comma list, or JSON list, of the top-level fields wanted; `*` = all stored ones, `cursor` = its place for `after`.
    #[arg(default)]
    fields: FieldNames,
) -> Result<Reply, UdfError> {
    let filters =
        [("artifactStem", artifact_stem), ("project", project), ("artifactType", artifact_type)];
    let mut filters = filters.into_iter().filter(|(_, wanted)| !wanted.is_empty());
    let chats = ctx.read("artifactChats")?;
    let mut found = match filters.next() {
        Some((field, wanted)) => chats.matching(field, wanted),
        None => chats.records(),
    };
    for (field, wanted) in filters {
        found.retain(|chat| chat.is(field, wanted));
    }
    Page { limit, after, fields: &fields }.oldest_first(found)?.reply()
}
