//! `blockedBy`: which tasks have to be done first.

use std::collections::HashSet;

use sdk::prelude::*;

/// Reads the `blocked_by` parameter: a JSON array whose members become text, or a comma list.
/// Ids need not exist, nothing is sorted out twice.
///
/// # Errors
/// A text that starts like JSON and is no JSON array gives the message for the caller.
pub fn parse(blocked_by: &str) -> Result<Vec<String>, String> {
    let trimmed = text::trim(blocked_by);
    if !trimmed.starts_with(['[', '{']) {
        let ids = trimmed.split(',').map(text::trim).filter(|id| !id.is_empty());
        return Ok(ids.map(str::to_owned).collect());
    }
    match JsonText::parse(trimmed) {
        Ok(list) if list.json().kind() == JsonKind::Array => {
            Ok(list.json().items().map(text::member_text).collect())
        }
        _ => Err(format!("invalid blocked_by JSON: {}", text::quoted(blocked_by))),
    }
}

/// Drops the removed ids from the `blockedBy` of the tasks that hold one; all else of those tasks, their
/// `updatedAt` included, stays.
///
/// # Errors
/// Those of [`CollectionMut::update`].
pub fn scrub(tasks: &mut CollectionMut<'_, '_>, removed: &HashSet<String>) -> Result<(), UdfError> {
    if removed.is_empty() {
        return Ok(());
    }
    let gone = |id: &JsonRef<'_>| id.as_str_exact().is_some_and(|id| removed.contains(id.as_ref()));
    for task in tasks.records() {
        let Some(blockers) = task.get("blockedBy") else { continue };
        if blockers.items().any(|id| gone(&id)) {
            let kept: Vec<_> = blockers.items().filter(|id| !gone(id)).collect();
            tasks.update(&task, task.edit().set("blockedBy", kept))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_arrays_and_torn_arrays() {
        let list = |ids: &[&str]| Ok(ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
        let torn = |shown: &str| Err(format!("invalid blocked_by JSON: {shown}"));
        for (text, want) in [
            ("", list(&[])),
            (" \u{1c}\n", list(&[])),
            (" a, b c ,,a\u{1f},", list(&["a", "b c", "a"])),
            ("a]", list(&["a]"])),
            (" [ \"x\", \" y \", \"\" ] ", list(&["x", " y ", ""])),
            ("[1, -0, 2.50, 1e3, true, null]", list(&["1", "0", "2.5", "1000.0", "True", "None"])),
            ("{\"a\": 1}", torn("'{\"a\": 1}'")),
            (" [\"it's\" ", torn("' [\"it\\'s\" '")),
            ("[it's", torn("\"[it's\"")),
            ("[NaN]", torn("'[NaN]'")),
        ] {
            assert_eq!(parse(text), want, "{text:?}");
        }
    }
}
