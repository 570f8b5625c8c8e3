//! Cases name the engine's own texts by tokens: `@fallback_failure`, `@self_verify`, `@ledger`.

use sdk::workflow::state::{FALLBACK_FAILURE, SELF_VERIFY};
use sdk::workflow::texts::TRIED_HEADING;
use serde_json::Value;

const FALLBACK: &str = "@fallback_failure";
const SELF: &str = "@self_verify";
const LEDGER: &str = "@ledger";

/// The value with tokens in place of texts.
pub(super) fn to_tokens(value: &Value) -> Value {
    map_texts(value, &|text| {
        if SELF_VERIFY.contains(&text) {
            return SELF.to_owned();
        }
        match text.strip_prefix(FALLBACK_FAILURE) {
            Some(rest) => format!("{FALLBACK}{rest}"),
            None => text.to_owned(),
        }
    })
}

/// The value with texts in place of tokens.
pub(super) fn to_texts(value: &Value) -> Value {
    map_texts(value, &|text| match text.strip_prefix(FALLBACK) {
        _ if text == SELF => SELF_VERIFY[2].to_owned(),
        Some(rest) => format!("{FALLBACK_FAILURE}{rest}"),
        None => text.to_owned(),
    })
}

/// Whether a text holds what a token or a plain text stands for.
pub(super) fn holds(text: &str, part: &str) -> bool {
    match part {
        LEDGER => text.contains(TRIED_HEADING),
        SELF => SELF_VERIFY.iter().any(|order| text.contains(order)),
        _ => match part.strip_prefix(FALLBACK) {
            Some(rest) => text.contains(&format!("{FALLBACK_FAILURE}{rest}")),
            None => text.contains(part),
        },
    }
}

fn map_texts(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, item)| (key.clone(), map_texts(item, change)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
