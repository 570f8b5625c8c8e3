//! Appending records that another program made.

use std::collections::HashSet;

use sdk::prelude::*;

/// A parameter that is a JSON array of records; empty text = none.
///
/// # Errors
/// Text that is not JSON, not an array, or has a member that is no object.
pub fn parse(label: &str, list: &str) -> Result<Vec<JsonText>, UdfError> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let list = JsonText::parse(list)
        .map_err(|fault| UdfError::raised(format!("'{label}' is not valid JSON: {fault}")))?;
    let wrong = |value: JsonRef<'_>, place: &str| {
        let found = text::type_name(value);
        UdfError::raised(format!("'{label}' must be a JSON array of records, got {found}{place}"))
    };
    if list.json().kind() != JsonKind::Array {
        return Err(wrong(list.json(), ""));
    }
    match list.json().items().find(|record| !record.is_object()) {
        Some(odd) => Err(wrong(odd, " among its members")),
        None => Ok(list.json().items().map(JsonText::from).collect()),
    }
}

/// Appends each record as given, unless its id is known or came earlier; a record without an id (or with a null
/// one) always goes in. Returns `{"inserted", "skipped"}`.
///
/// # Errors
/// Those of [`CollectionMut::push`].
pub fn append(
    collection: &mut CollectionMut<'_, '_>,
    records: &[JsonText],
) -> Result<Object, UdfError> {
    let mut inserted = 0_usize;
    if !records.is_empty() {
        let stored = collection.records();
        let mut known: HashSet<String> =
            stored.iter().filter_map(|record| id_text(record.json())).collect();
        for record in records {
            if id_text(record.json()).is_none_or(|id| known.insert(id)) {
                collection.push(record)?;
                inserted += 1;
            }
        }
    }
    Ok(Object::new().set("inserted", inserted).set("skipped", records.len() - inserted))
}

/// The id in canonical form, so that a number never equals a text.
fn id_text(record: JsonRef<'_>) -> Option<String> {
    let id = record.get("id").filter(|id| !id.is_null())?;
    Some(text::canonical(id))
}
