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
/// As [`array`], and a member that is no object.
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
