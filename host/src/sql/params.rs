//! Parameters: `$name` in code, in texts, in identifiers and in arguments (the SQL contract §3).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::error::SqlError;
use super::lexer::Quoting;
use super::refs::Part;

/// The values of a request's parameters.
pub type Params = Map<String, Value>;

/// Writes the parameter `name` down where it stands.
pub fn write(
    params: &Params,
    name: &str,
    quoting: Quoting,
    out: &mut String,
) -> Result<(), SqlError> {
    let value = find(params, name)?;
    if matches!(value, Value::Array(_) | Value::Object(_)) {
        return Err(SqlError::refused(format!(
            "the parameter `${name}` is a {}; one can only be given to an operation, as `{{{{op?key=${name}}}}}`",
            if value.is_array() { "list" } else { "object" },
        )));
    }
    if quoting == Quoting::Code {
        out.push(' ');
        literal(value, out);
        out.push(' ');
    } else {
        let text = text(value);
        check_text(name, &text)?;
        for c in text.chars() {
            let doubled = match quoting {
                Quoting::Code => false,
                Quoting::Text => c == '\'',
                Quoting::EscapeText => c == '\'' || c == '\\',
                Quoting::Identifier => c == '"',
            };
            if doubled {
                out.push(c);
            }
            out.push(c);
        }
        return Ok(());
    }
    if let Value::String(text) = value {
        check_text(name, text)?;
    }
    Ok(())
}

/// The text of an argument's value, parameters put in.
pub fn argument(params: &Params, parts: &[Part<'_>]) -> Result<String, SqlError> {
    if let [Part::Param(name)] = parts {
        // A list or an object is allowed as the whole value, and becomes its JSON.
        return Ok(text(find(params, name)?).into_owned());
    }
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Param(name) => match find(params, name)? {
                Value::Array(_) | Value::Object(_) => {
                    return Err(SqlError::refused(format!(
                        "the parameter `${name}` is a list or an object, so it must be the whole value of its argument"
                    )));
                }
                value => out.push_str(&text(value)),
            },
        }
    }
    Ok(out)
}

/// The text of a value: a text itself, null as the empty text, anything else as its JSON.
pub fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

fn find<'a>(params: &'a Params, name: &str) -> Result<&'a Value, SqlError> {
    params.get(name).ok_or_else(|| {
        SqlError::refused(format!(
            "the parameter `${name}` has no value; given: {}",
            super::error::names(params.keys())
        ))
    })
}

fn check_text(name: &str, text: &str) -> Result<(), SqlError> {
    if text.contains('\0') {
        return Err(SqlError::refused(format!(
            "the parameter `${name}` holds a NUL character, which cannot stand in SQL"
        )));
    }
    Ok(())
}

/// The literal of a value in code.
fn literal(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => {
            let number = number.to_string();
            // `10 -$n` would start a comment.
            if number.starts_with('-') {
                out.push_str(&format!("({number})"));
            } else {
                out.push_str(&number);
            }
        }
        Value::String(text) => {
            out.push('\'');
            out.push_str(&text.replace('\'', "''"));
            out.push('\'');
        }
        Value::Array(_) | Value::Object(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place() {
        let params: Params = serde_json::from_str(
            r#"{"t": "it's \"\\", "n": -5, "f": 1.50, "b": true, "z": null, "l": ["a", 1], "nul": "\u0000"}"#,
        )
        .expect("valid");
        let written = |name, quoting| {
            let mut out = String::new();
            write(&params, name, quoting, &mut out).map(|()| out)
        };
        for (name, quoting, want) in [
            ("t", Quoting::Code, r#" 'it''s "\' "#),
            ("t", Quoting::Text, r#"it''s "\"#),
            ("t", Quoting::EscapeText, r#"it''s "\\"#),
            ("t", Quoting::Identifier, r#"it's ""\"#),
            ("n", Quoting::Code, " (-5) "),
            ("n", Quoting::Text, "-5"),
            ("f", Quoting::Code, " 1.50 "),
            ("b", Quoting::Code, " true "),
            ("b", Quoting::Text, "true"),
            ("z", Quoting::Code, " NULL "),
            ("z", Quoting::Text, ""),
        ] {
            assert_eq!(written(name, quoting).as_deref(), Ok(want), "{name} {quoting:?}");
        }
        for name in ["l", "nul", "missing"] {
            for quoting in [Quoting::Code, Quoting::Text, Quoting::Identifier] {
                assert_eq!(written(name, quoting).map_err(|e| e.status()), Err(400), "{name}");
            }
        }
    }

    #[test]
    fn arguments() {
        let params: Params =
            serde_json::from_str(r#"{"ids": ["a", 1], "n": 5, "z": null}"#).expect("valid");
        let check = |parts: &[Part<'_>]| argument(&params, parts).map_err(|e| e.status());
        assert_eq!(check(&[Part::Param("ids")]).as_deref(), Ok(r#"["a",1]"#));
        assert_eq!(check(&[Part::Text("a "), Part::Param("n")]).as_deref(), Ok("a 5"));
        assert_eq!(check(&[Part::Param("z")]).as_deref(), Ok(""));
        assert_eq!(check(&[Part::Text("a "), Part::Param("ids")]), Err(400));
        assert_eq!(check(&[Part::Param("nope")]), Err(400));
    }
}
