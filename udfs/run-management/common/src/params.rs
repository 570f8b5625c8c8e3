//! Parameters that carry JSON inside a text.

use sdk::prelude::*;

/// The members of a JSON array; empty text = none.
///
/// # Errors
/// Text that is not JSON, or JSON that is not an array.
pub fn array(label: &str, list: &str) -> Result<Vec<JsonText>, UdfError> {
    let list = parse(label, text::non_empty(list).unwrap_or("[]"))?;
    if list.json().kind() != JsonKind::Array {
        return Err(wrong(label, "array", list.json()));
    }
    Ok(list.json().items().map(JsonText::from).collect())
}

/// The runs of a JSON array; empty text = none.
///
/// # Errors
/// As [`array()`], and a member that is no object.
pub fn runs(list: &str) -> Result<Vec<JsonText>, UdfError> {
    let runs = array("runs", list)?;
    match runs.iter().find(|run| !run.json().is_object()) {
        Some(odd) => {
            let found = text::type_name(odd.json());
            Err(UdfError::raised(format!(
                "runs must be a JSON array of objects, got {found} among its members"
            )))
        }
        None => Ok(runs),
    }
}

/// The transcripts of a JSON object, run id to entries; empty text = none. A repeated id counts once, with
/// its last entries.
///
/// # Errors
/// Text that is not JSON, JSON that is not an object, or a member that is no array.
pub fn transcripts(object: &str) -> Result<Vec<(String, Vec<JsonText>)>, UdfError> {
    let object = parse("transcripts", text::non_empty(object).unwrap_or("{}"))?;
    if !object.json().is_object() {
        return Err(wrong("transcripts", "object", object.json()));
    }
    let mut transcripts: Vec<(String, Vec<JsonText>)> = Vec::new();
    for (id, entries) in object.json().fields() {
        if entries.kind() != JsonKind::Array {
            let found = text::type_name(entries);
            return Err(UdfError::raised(format!(
                "transcripts must hold JSON arrays, got {found} for `{id}`"
            )));
        }
        let entries = entries.items().map(JsonText::from).collect();
        match transcripts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, last)) => *last = entries,
            None => transcripts.push((id.into_owned(), entries)),
        }
    }
    Ok(transcripts)
}

/// A cost: empty = none, else decimal text around which blanks do not count (`.5`, `5.`, `00012`, `1e-7`, `-0`).
///
/// # Errors
/// Anything else, `nan` and the infinities included (the app-store contract §11, S16).
pub fn cost(text: &str) -> Result<Option<f64>, UdfError> {
    if text.is_empty() {
        return Ok(None);
    }
    let trimmed = text::trim(text);
    let decimal = trimmed.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    match trimmed.parse::<f64>() {
        Ok(cost) if decimal && cost.is_finite() => Ok(Some(cost)),
        _ => Err(UdfError::raised(format!(
            "could not convert string to float: {}",
            text::quoted(text)
        ))),
    }
}

/// The task ids `read` filters by: `None` = no filter.
pub fn task_filter(task_ids: &str) -> Option<Vec<String>> {
    let trimmed = text::trim(task_ids);
    if trimmed.is_empty() {
        return None;
    }
    Some(if trimmed.starts_with('[') {
        // A malformed list names no task: a filter that cannot be read must not show everything.
        let list = JsonText::parse(trimmed);
        list.map(|list| list.json().items().map(text::member_text).collect()).unwrap_or_default()
    } else {
        let ids = trimmed.split(',').map(text::trim).filter(|id| !id.is_empty());
        ids.map(str::to_owned).collect()
    })
}

fn parse(label: &str, json: &str) -> Result<JsonText, UdfError> {
    JsonText::parse(json)
        .map_err(|fault| UdfError::raised(format!("{label} is not valid JSON: {fault}")))
}

fn wrong(label: &str, wanted: &str, found: JsonRef<'_>) -> UdfError {
    UdfError::raised(format!("{label} must be a JSON {wanted}, got {}", text::type_name(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_decimal_texts() {
        for (text, want) in [
            ("", None),
            ("0", Some(0.0)),
            (" .5 ", Some(0.5)),
            ("5.", Some(5.0)),
            ("00012", Some(12.0)),
            ("1e-7", Some(1e-7)),
            ("+2E3", Some(2000.0)),
            ("\u{1f}12345678901234567890", Some(12_345_678_901_234_567_000.0)),
        ] {
            assert_eq!(cost(text), Ok(want), "{text:?}");
        }
        assert_eq!(cost("-0").unwrap().map(f64::to_bits), Some((-0.0_f64).to_bits()));
        for (text, shown) in [
            (" ", "' '"),
            ("nan", "'nan'"),
            ("inf", "'inf'"),
            ("-Infinity", "'-Infinity'"),
            ("1e999", "'1e999'"),
            ("1 2", "'1 2'"),
            ("0x1", "'0x1'"),
            ("it's", "\"it's\""),
        ] {
            let want = format!("could not convert string to float: {shown}");
            assert_eq!(cost(text).unwrap_err().message(), want);
        }
    }

    #[test]
    fn filters_name_tasks_or_nothing() {
        let list = |ids: &[&str]| Some(ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
        for (text, want) in [
            ("", None),
            (" \n", None),
            (",", list(&[])),
            ("[]", list(&[])),
            ("[\"a\"", list(&[])),
            (" [\"a\", 1, true, null, 1.50] ", list(&["a", "1", "True", "None", "1.5"])),
            (" a , b c,,", list(&["a", "b c"])),
        ] {
            assert_eq!(task_filter(text), want, "{text:?}");
        }
    }

    #[test]
    fn shapes_are_named_when_they_are_wrong() {
        let message = |error: Result<usize, UdfError>| error.unwrap_err().message().to_owned();
        let array = |text: &str| message(array("task_ids", text).map(|ids| ids.len()));
        assert_eq!(array("\"t\""), "task_ids must be a JSON array, got str");
        assert_eq!(array("{}"), "task_ids must be a JSON array, got dict");
        assert!(array(" ").contains("line 1 column"), "{}", array(" "));
        let runs = |text: &str| message(runs(text).map(|runs| runs.len()));
        assert_eq!(
            runs("[{}, 7]"),
            "runs must be a JSON array of objects, got int among its members"
        );
        let transcripts = |text: &str| message(transcripts(text).map(|all| all.len()));
        assert_eq!(transcripts("[]"), "transcripts must be a JSON object, got list");
        assert_eq!(
            transcripts("{\"r\": {}}"),
            "transcripts must hold JSON arrays, got dict for `r`"
        );
    }

    #[test]
    fn a_repeated_transcript_counts_once() {
        let all = transcripts(r#"{"a": [1], "b": [], "a": [2, 3]}"#).unwrap();
        let counts: Vec<_> = all.iter().map(|(id, entries)| (id.as_str(), entries.len())).collect();
        assert_eq!(counts, [("a", 2), ("b", 0)]);
    }
}
