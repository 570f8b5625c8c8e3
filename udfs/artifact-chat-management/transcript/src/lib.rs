//! `transcript`: what was said in a chat. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Lists the entries of a chat's transcript in file order; lines that cannot be read are passed over. A chat
/// without one has none.
#[udf(logs("artifact-chats"))]
fn transcript(
    ctx: &Context,
    /// Id of the chat.
    #[arg(default)]
    chat_id: &str,
    /// At most this many entries; 0 = all.
    #[arg(default = 0)]
    limit: u32,
    /// How many entries were seen before; empty = none.
    #[arg(default)]
    after: &str,
    /// Comma list, or JSON list, of the top-level fields wanted of entries that are objects; `*` = all, `cursor` = its place for `after`.
    #[arg(default)]
    fields: FieldNames,
) -> Result<Reply, UdfError> {
    let entries = match ctx.log(chat_common::TRANSCRIPTS, chat_id)? {
        Some(log) => log.read()?,
        None => Vec::new(),
    };
    Page { limit, after, fields: &fields }.in_order(entries)?.reply()
}
