//! Parameters that carry JSON. They arrive as text; empty is absent (§1).

use serde_json::{Map, Number, Value};

use sdk::FromParam;

use crate::codes::{Code, Refusal};

/// Levels of a parameter. It ends up inside a state, which is read up to 127.
const MOST_LEVELS: usize = 100;

/// A parameter of type JSON, or a text that holds one document. It is kept as text, so that the operation can refuse it
/// with the word of the contract.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonParam(pub String);

impl FromParam<'_> for JsonParam {
    const JSON_TYPE: &'static str = "json";
    fn from_param(text: &str) -> Result<Self, String> {
        Ok(JsonParam(text.to_owned()))
    }
}

/// Exactly one JSON document that is an array; `Ok(None)` if the text is empty.
///
/// # Errors
/// `code` when the text is anything else.
pub(crate) fn json_array(
    text: &str,
    name: &str,
    code: Code,
) -> Result<Option<Vec<Value>>, Refusal> {
    match parse(text, name, code)? {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_kind(name, "an array", &other, code)),
    }
}

/// Exactly one JSON document that is an object; `Ok(None)` if the text is empty.
///
/// # Errors
/// `code` when the text is anything else, `null` included.
pub(crate) fn json_object(
    text: &str,
    name: &str,
    code: Code,
) -> Result<Option<Map<String, Value>>, Refusal> {
    match parse(text, name, code)? {
        None => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members)),
        Some(other) => Err(wrong_kind(name, "an object", &other, code)),
    }
}

/// The `context` of a request: an object, where nothing and `null` are the empty one (§12).
///
/// # Errors
/// `INVALID_CONTEXT`.
pub(crate) fn context(text: &str) -> Result<Map<String, Value>, Refusal> {
    if text.trim() == "null" {
        return Ok(Map::new());
    }
    Ok(json_object(text, "context", Code::InvalidContext)?.unwrap_or_default())
}

/// A step index: a decimal integer, or null when the text is empty.
///
/// # Errors
/// `INVALID_STEP_INDEX`.
pub(crate) fn step_index(text: &str) -> Result<Value, Refusal> {
    if text.is_empty() || text == "null" {
        return Ok(Value::Null);
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    match decimal(digits) {
        Some(Value::Number(number)) if sign == "-" => Ok(parse_number(&format!("-{number}"))),
        Some(number) => Ok(number),
        None => Err(Refusal::new(
            Code::InvalidStepIndex,
            format!("step_index {text:?} is not a decimal integer"),
        )),
    }
}

/// A run of digits as the number it stands for, of any length, leading zeros dropped.
pub(crate) fn decimal(digits: &str) -> Option<Value> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match digits.trim_start_matches('0') {
        "" => Some(Value::from(0)),
        rest => Some(parse_number(rest)),
    }
}

fn parse_number(text: &str) -> Value {
    text.parse::<Number>()
        .map(Value::Number)
        .expect("digits with an optional sign are a JSON number")
}

fn parse(text: &str, name: &str, code: Code) -> Result<Option<Value>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    if crate::json::depth(text) > MOST_LEVELS {
        let message = format!("{name} is nested more than {MOST_LEVELS} levels deep");
        return Err(Refusal::new(code, message));
    }
    crate::json::read(text)
        .map(Some)
        .map_err(|fault| Refusal::new(code, format!("{name} is not one JSON document: {fault}")))
}

fn wrong_kind(name: &str, wanted: &str, found: &Value, code: Code) -> Refusal {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Refusal::new(code, format!("{name} must be {wanted}, not {found}"))
}

/// A scalar for people and for text formats: a string as it is, anything else as its JSON text.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_parameters_hold_exactly_one_document() {
        assert_eq!(json_array("", "options", Code::InvalidOptions), Ok(None));
        assert_eq!(
            json_array("[1]", "options", Code::InvalidOptions),
            Ok(Some(vec![Value::from(1)]))
        );
        for text in ["nope", "{}", "null", "[] []", "[", "\"[]\"", " "] {
            let refusal = json_array(text, "options", Code::InvalidOptions).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidOptions, "{text}");
        }
        for text in ["[1]", "{\"a\":1} {\"b\":2}", "\"boom\"", "null"] {
            let refusal = json_object(text, "metadata", Code::InvalidMetadata).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidMetadata, "{text}");
        }
    }

    #[test]
    fn what_no_state_could_hold_is_refused() {
        let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let state = format!("{{\"feedback_request\":{{\"context\":{}}}}}", deep(100));
        assert!(context(&deep(100)).is_ok() && crate::json::read(&state).is_ok());
        for levels in [101, 126, 128, 100_000] {
            let refusal = context(&deep(levels)).unwrap_err();
            assert_eq!(refusal.message, "context is nested more than 100 levels deep");
        }
        let flat = format!("{{\"a\":[{}{{}}],\"s\":\"{}\"}}", "[],".repeat(300), "[".repeat(300));
        assert!(context(&flat).is_ok());
    }

    #[test]
    fn a_context_may_be_null() {
        assert_eq!(context("null"), Ok(Map::new()));
        assert_eq!(context(""), Ok(Map::new()));
        assert_eq!(context("[]").unwrap_err().code, Code::InvalidContext);
    }

    #[test]
    fn step_indexes_are_decimal_integers() {
        for (text, want) in [
            ("", "null"),
            ("null", "null"),
            ("0", "0"),
            ("4", "4"),
            ("007", "7"),
            ("-1", "-1"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            assert_eq!(step_index(text).map(|v| v.to_string()), Ok(want.to_owned()), "{text}");
        }
        for text in ["abc", "1.0", "1e3", "+1", "--1", " 1", "true", "[]"] {
            assert_eq!(step_index(text).unwrap_err().code, Code::InvalidStepIndex, "{text}");
        }
    }

    #[test]
    fn numbers_keep_their_text() {
        let text = r#"{"a":1.50,"b":1E5,"c":-0.0,"d":12345678901234567890123,"e":"é 🎯"}"#;
        let members = json_object(text, "context", Code::InvalidContext).unwrap().unwrap();
        assert_eq!(Value::Object(members).to_string(), text);
    }
}
