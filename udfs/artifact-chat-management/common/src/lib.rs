//! What the operations of `artifact-chat-management` share. Behaviour: the app-store contract §7 (records), §8.2
//! (operations), §10 (transcripts).

use sdk::prelude::*;

/// Columns a list of chats has in SQL, also when it is empty (the sql contract §5).
pub const CHAT_COLUMNS: &[Column] = &[
    Column::text("id"),
    Column::text("project"),
    Column::text("artifactType"),
    Column::text("artifactStem"),
    Column::text("title"),
    Column::text("createdAt"),
    Column::text("lastActivityAt"),
    Column::integer("messageCount"),
    Column::text("sessionKey"),
];

/// Where the transcripts of chats lie, below the app directory.
pub const TRANSCRIPTS: &str = "artifact-chats";

/// The transcript a writer is about to change; `None` for an id that cannot name one. Its directory is
/// created for any id but the empty one, as the contract has it (§3).
///
/// # Errors
/// The operation does not declare the directory, or the disk refuses.
pub fn transcript_to_write<'c>(
    ctx: &'c Context,
    chat_id: &str,
) -> Result<Option<Log<'c>>, UdfError> {
    if chat_id.is_empty() {
        return Ok(None);
    }
    ctx.create_log_directory(TRANSCRIPTS)?;
    ctx.log(TRANSCRIPTS, chat_id)
}

/// The first chat about exactly this artifact. The stem is opaque: it may hold `/` and `.`.
///
/// `of_stem` are the chats with this `artifactStem`, in file order.
pub fn about(of_stem: Vec<Record>, project: &str, artifact_type: &str) -> Option<Record> {
    let mut chats = of_stem.into_iter();
    chats.find(|chat| chat.is("project", project) && chat.is("artifactType", artifact_type))
}

/// The count of messages after one more. What is no number counts as none, text of an integer as that
/// integer, a fraction is cut off (the app-store contract §11, S26).
pub fn next_count(stored: Option<JsonRef<'_>>) -> i128 {
    let Some(stored) = stored.filter(|count| !count.is_falsy()) else { return 1 };
    let count = match stored.kind() {
        JsonKind::Number if text::is_integer(stored.text()) => stored.text().parse().unwrap_or(0),
        #[expect(clippy::cast_possible_truncation, reason = "cutting the fraction off is the rule")]
        JsonKind::Number => stored.as_f64().unwrap_or(0.0) as i128,
        JsonKind::String => text::trim(&stored.as_str().unwrap_or_default()).parse().unwrap_or(0),
        JsonKind::Bool => 1,
        JsonKind::Null | JsonKind::Array | JsonKind::Object => 0,
    };
    count.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_from_whatever_is_stored() {
        for (stored, want) in [
            ("null", 1),
            ("false", 1),
            ("true", 2),
            ("0", 1),
            ("2", 3),
            ("2.9", 3),
            ("-2.9", -1),
            ("\"5\"", 6),
            ("\" 5 \"", 6),
            ("\"2.9\"", 1),
            ("\"many\"", 1),
            ("[1]", 1),
            ("{\"n\":1}", 1),
            ("9007199254740993", 9_007_199_254_740_994),
        ] {
            assert_eq!(next_count(Some(JsonText::parse(stored).unwrap().json())), want, "{stored}");
        }
        assert_eq!(next_count(None), 1);
    }
}
