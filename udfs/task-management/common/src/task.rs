//! The task.

use sdk::ParseError;
use sdk::prelude::*;

/// Columns a list of tasks has in SQL, also when it is empty (the sql contract §5).
pub const COLUMNS: &[Column] = &[
    Column::text("id"),
    Column::text("project"),
    Column::integer("number"),
    Column::text("title"),
    Column::text("description"),
    Column::text("status"),
    Column::text("agentId"),
    Column::text("createdBy"),
    Column::text("createdAt"),
    Column::text("updatedAt"),
    Column::text("parentId"),
    Column::text("workMode"),
    Column::json("blockedBy"),
    Column::json("runs"),
    Column::boolean("isLive"),
    Column::integer("liveRunCount"),
];

/// Columns a list of comments has in SQL (the sql contract §5).
pub const COMMENT_COLUMNS: &[Column] = &[
    Column::text("id"),
    Column::text("taskId"),
    Column::text("author"),
    Column::text("body"),
    Column::text("createdAt"),
    Column::text("kind"),
    Column::json("widget"),
];

/// Changes the first task with this id, stamps `updatedAt` behind the change, and answers with the
/// task, or with `not found`.
///
/// `change` sees the stored task; an answer of its own (`Err(reply)`) leaves everything as it was.
///
/// # Errors
/// The store refuses.
pub fn change(
    ctx: &Context,
    id: &str,
    change: impl FnOnce(&Record) -> Result<ObjectEdit, Reply>,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["tasks"])?;
    let mut tasks = tx.collection("tasks")?;
    let Some(task) = tasks.get(id) else { return Ok(Reply::not_found()) };
    let edit = match change(&task) {
        Ok(edit) => edit.set("updatedAt", ctx.now()),
        Err(refusal) => return Ok(refusal),
    };
    let task = tasks.update(&task, edit)?;
    tx.commit()?;
    Ok(Reply::record(task))
}

/// The number after the largest positive integer among these tasks' `number`s: numbers of any length
/// count on exactly, anything that is not an integer is passed over.
///
/// # Errors
/// Those of [`JsonText::parse`], which takes every number.
pub fn next_number(tasks: &[Record]) -> Result<JsonText, ParseError> {
    let mut largest = "0".to_owned();
    for task in tasks {
        let Some(number) = task.get("number").filter(|number| number.kind() == JsonKind::Number)
        else {
            continue;
        };
        let digits = number.text();
        if digits.bytes().all(|b| b.is_ascii_digit())
            && (digits.len(), digits) > (largest.len(), largest.as_str())
        {
            largest = digits.to_owned();
        }
    }
    JsonText::parse(plus_one(&largest))
}

fn plus_one(digits: &str) -> String {
    let kept = digits.trim_end_matches('9');
    let nines = digits.len() - kept.len();
    let (head, last) = match kept.char_indices().next_back() {
        Some((at, last)) => (&kept[..at], last),
        None => ("", '0'),
    };
    let raised =
        char::from_digit(last.to_digit(10).map_or(1, |digit| digit + 1), 10).unwrap_or('1');
    format!("{head}{raised}{}", "0".repeat(nines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_on_from_the_largest_integer() {
        let ninety_nines = "9".repeat(400);
        let one_more = format!("1{}", "0".repeat(400));
        for (numbers, want) in [
            (vec![], "1"),
            (vec!["3", "7.5", "\"12\"", "null", "-4", "true", "1e9", "0"], "4"),
            (vec!["9", "10", "08e1"], "11"),
            (vec!["199"], "200"),
            (vec!["99999999999999999999", "100000000000000000000"], "100000000000000000001"),
            (vec![ninety_nines.as_str()], one_more.as_str()),
        ] {
            let tasks: Vec<_> = numbers
                .iter()
                .filter_map(|number| Record::parse(&format!("{{\"number\":{number}}}")).ok())
                .chain([Record::parse("{}").unwrap(), Record::parse("7").unwrap()])
                .collect();
            assert_eq!(next_number(&tasks).unwrap().as_str(), want, "{numbers:?}");
        }
    }
}
