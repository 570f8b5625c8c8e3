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

/// The count of messages after one more. What is no number, or an infinite one, counts as none; text of an integer
/// as that integer, a fraction is cut off (the app-store contract §11, S26). No integer is too large.
pub fn next_count(stored: Option<JsonRef<'_>>) -> JsonText {
    let whole = stored.filter(|count| !count.is_falsy()).and_then(whole).unwrap_or_default();
    JsonText::from(JsonRef::trusted(&successor(&whole)))
}

/// The digits of a count, with a `-` before them if it is negative.
fn whole(stored: JsonRef<'_>) -> Option<String> {
    match stored.kind() {
        JsonKind::Number if text::is_integer(stored.text()) => Some(stored.text().to_owned()),
        // Without an exponent, whatever its size.
        JsonKind::Number => {
            stored.as_f64().filter(|count| count.is_finite()).map(|c| format!("{:.0}", c.trunc()))
        }
        JsonKind::String => {
            let said = stored.as_str()?;
            let said = text::trim(&said);
            let said = said.strip_prefix('+').filter(|rest| !rest.starts_with('-')).unwrap_or(said);
            text::is_integer(said).then(|| said.to_owned())
        }
        JsonKind::Bool => Some("1".to_owned()),
        JsonKind::Null | JsonKind::Array | JsonKind::Object => None,
    }
}

/// One more than an integer of any length; nothing is none.
fn successor(whole: &str) -> String {
    let (negative, digits) = match whole.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, whole),
    };
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return "1".to_owned();
    }
    // From the end: digits that are borrowed from, or carried over, then one that takes it.
    let (passed, passes) = if negative { ('0', "9") } else { ('9', "0") };
    let kept = digits.trim_end_matches(passed);
    let turned = passes.repeat(digits.len() - kept.len());
    let (before, taken) = kept.split_at(kept.len().saturating_sub(1));
    let taken = taken.parse::<u8>().unwrap_or(0);
    let taken = if negative { taken - 1 } else { taken + 1 };
    let next = format!("{before}{taken}{turned}");
    match next.trim_start_matches('0') {
        "" => "0".to_owned(),
        next => format!("{}{next}", if negative { "-" } else { "" }),
    }
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
            ("\"+5\"", 6),
            ("\"+-5\"", 1),
            ("\"\"", 1),
            ("-0", 1),
            ("-1", 0),
            ("-10", -9),
            ("-100", -99),
            ("\"007\"", 8),
            ("99", 100),
            ("1e2", 101),
            ("0.5", 1),
            ("-0.5", 1),
            ("9007199254740993", 9_007_199_254_740_994_i64),
        ] {
            assert_eq!(next(stored), want.to_string(), "{stored}");
        }
        assert_eq!(next_count(None).as_str(), "1");
    }

    #[test]
    fn a_count_is_as_large_as_it_is() {
        let (nines, zeros) = ("9".repeat(60), "0".repeat(60));
        assert_eq!(next(&nines), format!("1{zeros}"));
        assert_eq!(next(&format!("\"{nines}\"")), format!("1{zeros}"));
        assert_eq!(next(&format!("-1{zeros}")), format!("-{nines}"));
        assert_eq!(next("1e23"), "99999999999999991611393");
        // Infinite to a reader of numbers, so no count.
        for stored in ["1e400", "-1e400", "NaN", "-Infinity"] {
            assert_eq!(next(stored), "1", "{stored}");
        }
    }

    fn next(stored: &str) -> String {
        next_count(Some(JsonRef::trusted(stored))).as_str().to_owned()
    }
}
